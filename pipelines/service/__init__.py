"""`korbert serve`: models behind HTTP, in one process.

1. running.py binds the address, starts uvicorn, and ends it gracefully; http11.py cuts off slow connections.
2. gate.py stands before every request: host, origin, token, security headers, counts, errors as JSON.
3. routes.py reads a request (bodies.py: size, time, fields as forms.py has them), waits (shared.py), and writes its
   answer.
4. batching.py holds what waits, and makes batches by pieces: one thread tokenizes, one computes.
5. models.py loads the models (served.py: their names); operations.py says what one does with a batch.
6. description.py is the OpenAPI document of all routes, and its page.

Used by all: limits.py, refusals.py (what is answered instead of a result), metrics.py (Prometheus).
"""
