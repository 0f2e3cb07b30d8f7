"""The checks before every request (host, origin, token); security headers, metrics and errors as JSON for all."""

import hmac
import logging
import time
from collections.abc import Collection, MutableMapping
from typing import Any

from pydantic_core import to_json
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pipelines.service.batching import trace
from pipelines.service.metrics import Metrics
from pipelines.service.refusals import Refusal, error_body

__all__ = ["OPEN", "Gate", "Json", "may_ask", "refused"]

_logger = logging.getLogger(__name__)

OPEN = (
    "/",
    "/docs",
    "/openapi.json",
    "/health",
    "/ready",
)  # need no token, as they reveal nothing about models and texts
_WHILE_ENDING = ("/health", "/ready", "/metrics")
_HEADERS = {
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}


class Json(Response):
    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return to_json(content)


def refused(refusal: Refusal) -> Json:
    """A refusal as a response."""
    headers = {} if refusal.retry_after is None else {"retry-after": str(refusal.retry_after)}
    return Json(error_body(refusal.status, refusal.message, refusal.param), refusal.status, headers)


def may_ask(headers: Headers, token: str | None) -> bool:
    """Whether the request has the token, if one is needed. Compared in constant time."""
    given = headers.get("authorization", "").encode("latin-1")
    return token is None or hmac.compare_digest(given, f"Bearer {token}".encode())


class Gate:
    """The application behind these checks.

    hosts: accepted names in the Host header, against DNS rebinding; None: any. Requests from pages of other origins are
    refused as well. token: see may_ask. running: number of accepted requests without an answer yet. ending: whether new
    requests are refused.
    """

    def __init__(
        self, application: ASGIApp, metrics: Metrics, paths: Collection[str], hosts: Collection[str] | None,
        token: str | None,
    ) -> None:  # fmt: skip
        self._application, self._metrics, self._paths, self._hosts = application, metrics, paths, hosts
        self._token = token
        self.running = 0
        self.ending = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        route = scope["path"] if scope["path"] in self._paths else "other"
        began, code = time.monotonic(), 499

        async def answer(message: Message) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                code = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if self.ending:
                    headers["connection"] = "close"
            await send(message)

        try:
            await self._answer(scope, receive, answer)
        except ClientDisconnect:
            code = 499
        except Exception as error:  # its text may quote the request
            _logger.error("%s %s failed: %s", scope["method"], route, trace(error))
            if code == 499:
                await refused(Refusal(500, "the service failed on this request"))(scope, receive, answer)
        finally:
            self._metrics.requests.labels(route, str(code)).inc()
            self._metrics.request_seconds.observe(time.monotonic() - began)

    async def _answer(self, scope: Scope, receive: Receive, answer: Send) -> None:
        try:
            self._check(scope)
        except Refusal as refusal:
            response = refused(refusal)
            if refusal.status == 401:
                response.headers["www-authenticate"] = "Bearer"
            await response(scope, receive, answer)
            return
        self.running += 1
        try:
            await self._application(scope, receive, answer)
        finally:
            self.running -= 1

    def _check(self, scope: MutableMapping[str, Any]) -> None:
        headers = Headers(scope=scope)
        host, path = headers.get("host", ""), scope["path"]
        name = host.rpartition(":")[0] if ":" in host.rpartition("]")[2] else host  # [::1]:8000 -> [::1]
        if self._hosts is not None and name not in self._hosts:
            raise Refusal(403, f"the Host header names another server: use {' or '.join(sorted(self._hosts))}")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            raise Refusal(403, "pages of other origins may not use this service")
        if self.ending and path not in _WHILE_ENDING:
            raise Refusal(503, "the service is shutting down: use another one", retry_after=10)
        if path not in OPEN and not may_ask(headers, self._token):
            raise Refusal(401, "the token is missing or wrong: send the header Authorization: Bearer TOKEN")
