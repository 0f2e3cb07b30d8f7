"""Error responses in the format of OpenAI."""

from typing import Any

__all__ = ["Refusal", "error_body"]

_TYPES = {401: "authentication_error", 404: "not_found_error", 429: "overloaded_error"}


class Refusal(Exception):
    """An error response to a request, or for one of its texts. The message says what is wrong and what to do.

    status: of HTTP. param: the place in the request, such as input[3]. retry_after: seconds.
    """

    def __init__(self, status: int, message: str, param: str | None = None, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.retry_after = status, message, param, retry_after


def error_body(status: int, message: str, param: str | None = None) -> dict[str, Any]:
    """{"error": {"message", "type", "param"}}"""
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": param}}
