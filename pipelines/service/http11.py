"""uvicorn's HTTP/1.1 protocol with a time limit for request heads, and a limit on open connections."""

import asyncio
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from korbert.pipelines.service.limits import Limits
from korbert.pipelines.service.refusals import Refusal, refused


def protocol_of(limits: Limits) -> type[asyncio.Protocol]:
    """The protocol class for uvicorn. A head may have 64 KiB (the limit of h11) and take head_seconds."""
    return type("Protocol", (_Protocol,), {"limits": limits})


class _Protocol(H11Protocol):
    limits: ClassVar[Limits]
    _watch: asyncio.TimerHandle | None = None
    _unread = 0  # unsent bytes of the answer at the last check

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            self._refuse(503, f"{self.limits.connections:,} connections are open: try again later")
            return
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._watch is not None:
            self._watch.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait_for_head()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "the request is not valid HTTP/1.1")

    def _wait_for_head(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
        self._watch = self.loop.call_later(self.limits.head_seconds, self._cut_off)

    def _cut_off(self) -> None:
        """Closes a connection without a request, or one that still sends the body of a request already answered."""
        if self.cycle is None:
            self._refuse(408, f"the head of the request took longer than {self.limits.head_seconds:g} s")
        elif self.cycle.response_complete:
            left = self.transport.get_write_buffer_size()
            if left and left != self._unread:  # the client reads its answer
                self._unread = left
                self._wait_for_head()
            elif left:
                self.transport.abort()
            else:
                self.transport.close()

    def _refuse(self, status: int, message: str) -> None:
        """Sends an error before there is a request, and closes the connection."""
        body = bytes(refused(Refusal(status, message)).body)
        headers: Any = [
            ("content-type", "application/json"),
            ("content-length", str(len(body))),
            ("x-content-type-options", "nosniff"),
            ("connection", "close"),
        ]
        try:
            head = self.conn.send(h11.Response(status_code=status, headers=headers))
            self.transport.write((head or b"") + (self.conn.send(h11.Data(data=body)) or b""))
            self.conn.send(h11.EndOfMessage())
        except h11.LocalProtocolError:  # in the middle of a response
            pass
        self.transport.close()
