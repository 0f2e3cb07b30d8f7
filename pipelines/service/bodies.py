"""Reading the body of a request as a form, within limits of size and time."""

import asyncio
from typing import TypeVar

from pydantic import ValidationError
from starlette.requests import Request

from pipelines.service.forms import Form
from pipelines.service.limits import Limits
from pipelines.service.refusals import Refusal

__all__ = ["read_form"]

_F = TypeVar("_F", bound=Form)
_TAGS = ("one", "many")  # of forms.py: not in the request


async def read_form(request: Request, form: type[_F], limits: Limits) -> _F:
    """Reads and validates the body of a request.

    Refusal 413 for a body that is too large, 408 for a slow one, 400 for invalid JSON, 422 for an invalid field.
    ClientDisconnect if the client leaves.
    """
    too_large = Refusal(413, f"the body is larger than {limits.body_bytes:,} bytes: send the texts in several requests")
    announced = request.headers.get("content-length", "0")
    if (
        len(announced) > 18 or int(announced) > limits.body_bytes
    ):  # the server has already refused anything but a number
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limits.body_bytes:
                    raise too_large
    except TimeoutError:
        raise Refusal(408, f"the body took longer than {limits.body_seconds:g} s") from None

    try:
        return form.model_validate_json(bytes(body))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        if first["type"] == "json_invalid":
            raise Refusal(400, f"the body is not JSON in UTF-8: {first['ctx']['error']}") from None
        param = ""  # ("input", "many", 3) -> input[3]
        for position, part in enumerate(first["loc"]):
            if (position and part in _TAGS) or part in ("str", "dict[str,json-or-python[any]]"):
                continue
            param += f"[{part}]" if isinstance(part, int) else f".{part}" if param else part
        raise Refusal(422, f"{param or 'the body'}: {first['msg']}", param or None) from None
