"""Reading the body of a request as JSON, within limits of size and time."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic_core import from_json
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect

from pipelines.service.limits import Limits
from pipelines.service.refusals import Refusal

__all__ = ["JsonRoute"]


class JsonRoute(APIRoute):
    """A route whose body is JSON, whatever its Content-Type says: `curl -d` sends that of a form."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_json(request: Request) -> Response:
            MutableHeaders(scope=request.scope)["content-type"] = "application/json"
            return await handle(_JsonRequest(request.scope, request.receive))

        return handle_json


class _JsonRequest(Request):
    async def body(self) -> bytes:
        """Refusal 413 for a body that is too large, 408 for a slow one, 415 for a compressed one."""
        limits: Limits = self.app.state.service.limits
        if (coding := self.headers.get("content-encoding", "identity").lower()) != "identity":
            raise Refusal(415, f"Content-Encoding: {coding} is not supported: send JSON as it is")
        too_large = Refusal(
            413, f"the body is larger than {limits.body_bytes:,} bytes: send the texts in several requests"
        )
        announced = self.headers.get("content-length", "0")  # digits, as the server has checked
        if len(announced) > 18 or int(announced) > limits.body_bytes:
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(limits.body_seconds):
                async for chunk in self.stream():
                    body += chunk
                    if len(body) > limits.body_bytes:
                        raise too_large
        except TimeoutError:
            raise Refusal(408, f"the body took longer than {limits.body_seconds:g} s") from None
        except ClientDisconnect:
            raise Refusal(499, "the client left") from None
        self._body = bytes(body)
        return self._body or b"\n"  # FastAPI would not ask for the JSON of an empty body

    async def json(self) -> Any:
        """Refusal 400 unless it is JSON in UTF-8 without lone surrogates, which Python's own parser accepts."""
        try:
            value = from_json(self._body)
        except ValueError as error:
            raise Refusal(400, f"the body is not JSON in UTF-8: {error}") from None
        if not isinstance(value, dict):
            raise Refusal(422, "the body: Input should be an object")
        return value
