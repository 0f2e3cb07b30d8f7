"""Around every request: checks of host, origin and token; security headers and a request id; metrics; failures."""

import logging
import random
import re
import time
from collections.abc import Collection

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.types import Message as Sent
from starlette.types import Receive, Scope, Send

from korbert.messages import Message
from korbert.pipelines.service.batching import trace
from korbert.pipelines.service.refusals import Refusal, refusal_response
from korbert.pipelines.service.shared import Service

_logger = logging.getLogger(__name__)

# Need no token, as they reveal nothing about models and texts.
_OPEN = ("/", "/docs", "/openapi.json", "/health", "/ready")
_WHILE_ENDING = ("/health", "/ready", "/metrics")
_HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"cache-control": b"no-store",
    b"referrer-policy": b"no-referrer",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
}


class Gate:
    """Wraps the application, which sees only requests that pass these checks.

    paths: those of the routes, for metrics. hosts: accepted names in the Host header, against DNS rebinding; None: any.
    Requests from pages of other origins are refused as well, and all but a few while the service is "ending".
    running: number of requests in progress.
    """

    def __init__(self, app: FastAPI, service: Service, paths: Collection[str], hosts: Collection[str] | None) -> None:
        self._app = app
        self._service = service
        self._paths = paths
        self._hosts = hosts
        self.running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # HEAD is handled as GET, and the server drops the body. An absolute target is split into path and Host header
        # (RFC 9112, 3.2.2).
        scope = {**scope, "method": "GET" if scope["method"] == "HEAD" else scope["method"]}
        if absolute := re.match(r"https?://([^/]*)(.*)", scope["path"], re.IGNORECASE | re.DOTALL):
            scope["path"] = absolute[2] or "/"
            scope["headers"] = [header for header in scope["headers"] if header[0] != b"host"]
            scope["headers"].append((b"host", absolute[1].encode()))
        began = time.monotonic()
        code = 499
        request_id = b"req_%024x" % random.getrandbits(96)

        async def answer(message: Sent) -> None:
            nonlocal code
            if message["type"] == "http.response.start":
                code = message["status"]
                headers = _HEADERS | dict(message["headers"]) | {b"x-request-id": request_id}
                if self._service.status == "ending":
                    headers[b"connection"] = b"close"
                message["headers"] = list(headers.items())
            await send(message)

        self.running += 1
        try:
            self._check(scope)
            await self._app(scope, receive, answer)
        except Refusal as refusal:
            await refusal_response(refusal)(scope, receive, answer)
        except Exception as error:  # answered with 500; its text may quote the request
            _logger.error(
                "%s: %s %s failed: %s", request_id.decode(), scope["method"], self._route(scope), trace(error)
            )
        finally:
            self.running -= 1
            metrics = self._service.batcher.metrics
            metrics.requests.labels(self._route(scope), str(code)).inc()
            metrics.seconds["request"].observe(time.monotonic() - began)

    def _route(self, scope: Scope) -> str:
        """The route of a request, as a label for metrics, which must have few labels."""
        return scope["path"] if scope["path"] in self._paths else getattr(scope.get("route"), "path", "other")

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        path = scope["path"]
        host = headers.get("host", "").lower()
        name = host.rpartition(":")[0] if ":" in host.rpartition("]")[2] else host  # [::1]:8000 -> [::1]
        if self._hosts is not None and name.removesuffix(".") not in self._hosts:
            raise Refusal(
                403,
                Message("the Host header names another server: use {hosts}", hosts=" or ".join(sorted(self._hosts))),
            )
        # A browser sends Origin with requests of pages; the page of this service has the same host.
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2].lower() != host:
            raise Refusal(403, Message("pages of other origins may not use this service"))
        if self._service.status == "ending" and path not in _WHILE_ENDING:
            raise Refusal(503, Message("the service is shutting down: use another one"), headers={"retry-after": "10"})
        if path not in _OPEN and not self._service.may_ask(headers):
            raise Refusal(
                401,
                Message("the token is missing or wrong: send the header Authorization: Bearer TOKEN"),
                headers={"www-authenticate": "Bearer"},
            )
