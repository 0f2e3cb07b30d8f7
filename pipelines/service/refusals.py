"""Error responses in the format of OpenAI."""

from collections.abc import Mapping

from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from korbert.messages import in_language, language
from korbert.system import shorten

CODES = {
    400: "The body is not JSON.",
    401: "The token is missing or wrong.",
    403: "The Host header names another server, or the request comes from another origin.",
    404: "No such model, or one that cannot do this.",
    408: "The body took too long.",
    413: "Too large: the body, the number of texts, or a text.",
    415: "The body is compressed.",
    422: "A field is invalid; `param` names it.",
    429: "The queue is full; Retry-After says when to try again.",
    500: "The model failed.",
    503: "The models are loading, the answer took too long, or the service is ending.",
}
_TYPES = {401: "authentication_error", 404: "not_found_error", 429: "overloaded_error"}
_OPENAI_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}


class ErrorDetail(BaseModel):
    message: str = Field(description="what is wrong, and what to do")
    type: str
    param: str | None = Field(description="the place in the request, such as input[3]")
    code: str | None = Field(description="OpenAI's: invalid_api_key, model_not_found, rate_limit_exceeded; else null")


class ErrorResponse(BaseModel):
    error: ErrorDetail


class Refusal(HTTPException):
    """An error response to a request, or for one of its texts. The message says what is wrong and what to do.

    param: the place in the request, such as input[3]. headers: of the response.
    """

    def __init__(
        self, status: int, message: str, param: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, message, headers)
        self.param = param


def refusal_response(refusal: Refusal, browser: str = "") -> Response:
    """A refusal as a response. browser: the request's Accept-Language, which sets the language of the message."""
    status = refusal.status_code
    is_unknown_model = status == 404 and refusal.param == "model"
    detail = ErrorDetail(
        message=shorten(in_language(refusal.detail, language(browser))).encode("utf-8", "backslashreplace").decode(),
        type=_TYPES.get(status) or ("server_error" if status >= 500 else "invalid_request_error"),
        param=refusal.param,
        code="model_not_found" if is_unknown_model else _OPENAI_CODES.get(status),
    )
    return Response(ErrorResponse(error=detail).model_dump_json(), status, refusal.headers, "application/json")
