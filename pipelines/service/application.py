"""The routes as one ASGI application behind the gate."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pipelines.service.gate import Gate, refused
from pipelines.service.refusals import Refusal
from pipelines.service.routes import ROUTES
from pipelines.service.shared import Service

__all__ = ["application"]


def application(
    service: Service, start: Callable[[], None], hosts: Collection[str] | None = None, token: str | None = None
) -> Gate:
    """The application; its threads end with it. start: called once the event loop runs. hosts, token: see Gate."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        service.batcher.start()
        start()
        yield
        service.batcher.stop()

    def endpoint(handler: Callable[[Service, Request], Awaitable[Response]]) -> Any:
        async def answer(request: Request) -> Response:
            try:
                return await handler(service, request)
            except Refusal as refusal:
                return refused(refusal)

        return answer

    async def unknown(request: Request, error: Exception) -> Response:
        """404 for an unknown path, 405 for another method."""
        assert isinstance(error, HTTPException)
        message = (
            "no such path: see /docs"
            if error.status_code == 404
            else "this method is not allowed on this path: see /docs"
        )
        response = refused(Refusal(error.status_code, message))
        response.headers.update(error.headers or {})
        return response

    async def failed(request: Request, error: Exception) -> Response:
        """500 for an internal error, which the gate logs."""
        return refused(Refusal(500, "the service failed on this request"))

    routes = [Route(one.path, endpoint(one.handler), methods=[one.method]) for one in ROUTES]
    routed = Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: unknown, Exception: failed})
    routed.router.redirect_slashes = False
    return Gate(routed, service.batcher.metrics, {one.path for one in ROUTES}, hosts, token)
