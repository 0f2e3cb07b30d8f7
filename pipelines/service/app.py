"""The application: all routes behind the gate, with errors in the format of OpenAI."""

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

import korbert
from pipelines.service.gate import Gate
from pipelines.service.refusals import Refusal, refused
from pipelines.service.routes import ROUTES
from pipelines.service.shared import Service

_UNROUTED = {404: "no such path: see /docs", 405: "this method is not allowed on this path: see /docs"}


class _Application(FastAPI):
    def openapi(self) -> dict[str, Any]:
        """The document, with the token, which the gate checks."""
        document = super().openapi()
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{}, {"token": []}]
        return document


def application(service: Service, start: Callable[[], None], hosts: Collection[str] | None = None) -> Gate:
    """The application; its threads end with it. start: called once the event loop runs. hosts: see Gate."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.batcher.start()
        start()
        yield
        service.batcher.stop()

    app = _Application(
        title="korbert serve",
        version=korbert.__version__,
        description="Korean BERT models with morpheme tokenization.",
        lifespan=lifespan,
        openapi_url=None,
        redirect_slashes=False,
        routes=[*ROUTES],
        exception_handlers={HTTPException: _answered, Exception: _answered},
    )
    app.state.service = service
    return Gate(app, service, {route.path for route in ROUTES}, hosts)


async def _answered(request: Request, error: Exception) -> Response:
    """Refusals, 404 for an unknown path, 405 for another method, 500 for an internal error, which the gate logs."""
    if isinstance(error, Refusal):
        return refused(error)
    if not isinstance(error, HTTPException):
        return refused(Refusal(500, "the service failed on this request"))
    response = refused(Refusal(error.status_code, _UNROUTED.get(error.status_code, error.detail)))
    for name, value in (error.headers or {}).items():
        response.headers[name] = value.replace("GET", "GET, HEAD")  # which the gate makes a GET
    return response
