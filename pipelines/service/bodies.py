"""From the body of a request to an instance of its schema, within limits of size and time, and from answers to JSON."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, get_type_hints

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect

from pipelines.service.limits import Limits
from pipelines.service.refusals import Refusal


class JsonRoute(APIRoute):
    """A route whose handler takes a body and the request.

    FastAPI describes it, but pydantic reads and writes JSON directly: that is stricter (no lone surrogates), costs half
    the time, and takes JSON of whatever Content-Type: `curl -d` sends that of a form.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        schema: type[BaseModel] = get_type_hints(self.endpoint)["body"]

        async def handle(request: Request) -> Response:
            data = await _read(request, request.app.state.service.limits)
            try:
                body = schema.model_validate_json(data)
            except ValidationError as error:
                first = error.errors(include_url=False, include_input=False)[0]
                if first["type"] == "json_invalid":
                    raise Refusal(400, f"the body is not JSON in UTF-8: {first['ctx']['error']}") from None
                # ("input", the tag of a union, 3, ..) -> input[3]
                name, *rest = first["loc"] or ("",)
                param = f"{name}{''.join(f'[{part}]' for part in rest if isinstance(part, int))}"
                raise Refusal(422, f"{param or 'the body'}: {first['msg']}", param or None) from None
            answer: BaseModel = await self.endpoint(body, request)
            text = answer.model_dump_json(exclude_unset=self.response_model_exclude_unset)
            return Response(text, media_type="application/json")

        return handle


async def _read(request: Request, limits: Limits) -> bytes:
    """Refusal 413 for a body that is too large, 408 for a slow one, 415 for a compressed one."""
    if (coding := request.headers.get("content-encoding", "identity").lower()) != "identity":
        raise Refusal(415, f"Content-Encoding: {coding} is not supported: send the JSON uncompressed")
    announced = request.headers.get("content-length", "0")  # digits, as the server has checked
    if len(announced) > 18 or int(announced) > limits.body_bytes:
        raise _too_large(limits)
    body = bytearray()
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limits.body_bytes:
                    raise _too_large(limits)
    except TimeoutError:
        raise Refusal(408, f"the body took longer than {limits.body_seconds:g} s") from None
    except ClientDisconnect:
        raise Refusal(499, "the client left") from None
    return bytes(body)


def _too_large(limits: Limits) -> Refusal:
    return Refusal(413, f"the body is larger than {limits.body_bytes:,} bytes: send the texts in several requests")
