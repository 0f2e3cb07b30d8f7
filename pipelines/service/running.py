"""The process of the service: address, threads, shutdown."""

import asyncio
import errno
import ipaddress
import logging
import math
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

import korbert
from korbert.errors import SettingsError
from korbert.messages import Message
from korbert.pipelines.service.gate import Gate
from korbert.pipelines.service.http11 import protocol_of
from korbert.pipelines.service.limits import Limits
from korbert.pipelines.service.refusals import Refusal, refusal_response
from korbert.pipelines.service.routes import ROUTES
from korbert.pipelines.service.shared import Served, Service

# With the default of 5 ms, the model would wait for the event loop at each of its hundred operations.
_SWITCH_SECONDS = 0.0005


def run(
    load: Callable[[], tuple[Mapping[str, Served], Served | None]], host: str, port: int, *,
    limits: Limits, token: str | None, page: Callable[[str], str] | None = None, said: Callable[[str], None],
) -> None:  # fmt: skip
    """Serves models until a signal arrives; then requests in progress are answered and later ones refused.

    load: returns the models, the default first, and the index of /similar; until then the service reports that it is
    loading. page: Accept-Language -> the body of `GET /`. said: called with the address once the models are loaded.
    Raises SettingsError if the address cannot be bound, and the errors of `load`.
    """
    listening = _listening_socket(host, port)
    sys.setswitchinterval(_SWITCH_SECONDS)
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    service = Service(limits, page, token)
    failed: list[BaseException] = []

    def begin() -> None:
        try:
            service.models, service.index = load()
            if service.status == "loading":
                service.status = "ready"
            said(f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}")
        except BaseException as error:  # raised in the main thread
            failed.append(error)
            server.should_exit = True

    # Models load in a thread, so that /health answers meanwhile and a signal ends the process at once.
    thread = threading.Thread(target=begin, name="loader", daemon=True)
    # Against DNS rebinding: a page of another host must not reach a service that only this machine may use.
    hosts = {"localhost", "127.0.0.1", "[::1]", host.lower()} if is_loopback(host) else None
    server = _Server(service, application(service, thread.start, hosts))
    try:
        server.run([listening])
    finally:
        listening.close()
    if failed:
        raise failed[0]


class _Server(uvicorn.Server):
    """A uvicorn server that answers new requests with 503 until those in progress are done, and only then closes."""

    def __init__(self, service: Service, gate: Gate) -> None:
        super().__init__(
            uvicorn.Config(
                gate,
                http=protocol_of(service.limits),
                ws="none",
                log_config=None,
                access_log=False,  # a path may hold text of a user
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=math.ceil(service.limits.head_seconds),
                timeout_graceful_shutdown=5,
            )
        )
        self._service = service
        self._gate = gate

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.status = "ending"
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._service.limits.seconds
        while self._gate.running and not self.force_exit and loop.time() < deadline:
            await asyncio.sleep(0.05)
        await super().shutdown(sockets)


def is_loopback(host: str) -> bool:
    """Whether an address is reachable only from this machine."""
    with suppress(ValueError):  # a name, not an address
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    return False


def _listening_socket(host: str, port: int) -> socket.socket:
    """A socket listening at the address, opened before anything is loaded. Raises SettingsError if that fails."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # With an explicit protocol, asyncio sets TCP_NODELAY; else small answers wait 40 ms for an acknowledgement.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except (OSError, UnicodeError) as error:  # UnicodeError: a part of the name has more than 63 characters
        raise SettingsError(
            "--host {host}: {strerror}: give an address of this machine",
            host=host,
            strerror=getattr(error, "strerror", None) or error,
        ) from None
    try:
        # Without SO_REUSEADDR a port stays taken for a minute after its service has ended.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(2_048)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise SettingsError(
                "port {port} of {host} is in use, perhaps by another service: stop it, or use another port, as "
                "in --port {port2}",
                port=port,
                host=host,
                port2=port + 1 if port < 65535 else port - 1,
            ) from None
        raise SettingsError(
            "{host}, port {port}: {strerror}: use another --host or --port",
            host=host,
            port=port,
            strerror=error.strerror,
        ) from None
    return listening


_UNROUTED = {
    404: Message("no such path: see /docs"),
    405: Message("this method is not allowed on this path: see /docs"),
}


class _Application(FastAPI):
    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document, which also describes the token that the gate checks."""
        document = super().openapi()
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{}, {"token": []}]
        return document


def application(service: Service, start: Callable[[], None], hosts: Collection[str] | None = None) -> Gate:
    """Builds the application, whose threads end with it. start: called once the event loop runs. hosts: see Gate."""

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
    """The response to a refusal, an unknown path (404), another method (405), or a failure (500; the gate logs it)."""
    browser = request.headers.get("accept-language", "")
    if isinstance(error, Refusal):
        return refusal_response(error, browser)
    if not isinstance(error, HTTPException):
        return refusal_response(Refusal(500, Message("the service failed on this request")), browser)
    response = refusal_response(Refusal(error.status_code, _UNROUTED.get(error.status_code, error.detail)), browser)
    for name, value in (error.headers or {}).items():
        response.headers[name] = value.replace("GET", "GET, HEAD")  # the gate turns HEAD into GET
    return response
