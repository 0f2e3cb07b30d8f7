"""`korbert serve`: models behind HTTP, in one process.

1. running.py binds the address, starts uvicorn and shuts it down gracefully; http11.py cuts off slow connections.
2. gate.py checks every request (host, origin, token) and adds security headers, metrics and errors as JSON.
3. routes.py handles a request: it reads the body (bodies.py: size and time; forms.py: fields), waits for the batcher
   (shared.py), and writes the response.
4. batching.py queues texts and forms batches by pieces: one thread tokenizes, one computes.
5. models.py loads the models (served.py: their names); operations.py defines what each model does with a batch.
6. description.py builds the OpenAPI document of all routes, and a page of it.

Used by all: limits.py, refusals.py (error responses), metrics.py (Prometheus).
"""
