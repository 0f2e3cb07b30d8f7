"""`korbert serve`: models behind HTTP, in one process. A FastAPI application.

1. running.py binds the address, starts uvicorn with the application and shuts it down gracefully; http11.py cuts off
   slow connections.
2. gate.py checks every request (host, origin, token) and adds security headers and metrics.
3. routes.py handles a request: its body (schemas.py: fields) becomes items for the batcher (shared.py), and their
   answers the response.
4. batching.py queues texts and forms batches by pieces: one thread tokenizes, one computes.
5. operations.py loads the models and defines what each does with a batch.

Used by all: limits.py, refusals.py (error responses), metrics.py (Prometheus).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
