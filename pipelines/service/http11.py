"""uvicorn's HTTP/1.1 protocol with time limits for heads and unread bodies, and a limit on open connections."""

import asyncio
from contextlib import suppress
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from korbert.messages import Message
from korbert.pipelines.service.limits import Limits
from korbert.pipelines.service.refusals import Refusal, refusal_response


def protocol_of(limits: Limits) -> type[asyncio.Protocol]:
    """The protocol class for uvicorn. A head may have 64 KiB (the limit of h11) and take head_seconds."""
    return type("Protocol", (_Protocol,), {"limits": limits})


class _Transport:
    """A transport that stays open after the answer, and discards the rest of the body, until the client has sent it.

    A socket closed with unread bytes in it resets the connection, and a client that writes its whole body before it
    reads loses the answer.
    """

    def __init__(self, transport: asyncio.Transport, conn: h11.Connection) -> None:
        self._transport = transport
        self._conn = conn
        self.is_ended = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def close(self) -> None:
        if self._conn.their_state is not h11.SEND_BODY:
            self._transport.close()
        elif not self.is_closing():
            self.is_ended = True
            with suppress(OSError):  # the client has left
                self._transport.write_eof()
            self._transport.resume_reading()

    def is_closing(self) -> bool:
        return self.is_ended or self._transport.is_closing()


class _Protocol(H11Protocol):
    limits: ClassVar[Limits]
    _watch: asyncio.TimerHandle | None = None
    _unread = 0  # unsent bytes of the answer at the last check
    _answered = 0.0  # time of the last answer, by the clock of the loop
    _received = False  # whether any bytes have come since the last check

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(_Transport(transport, self.conn))  # type: ignore[arg-type]  # all that is used
        if len(self.connections) > self.limits.connections:
            self._refuse(
                503, Message("{number:,} connections are open: try again later", number=self.limits.connections)
            )
            return
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._watch is not None:
            self._watch.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._received = True
        if not self.transport.is_closing():
            super().data_received(data)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._answered = self.loop.time()
        self._wait_for_head()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, Message("the request is not valid HTTP/1.1"))

    def _wait_for_head(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
        self._received = False
        self._watch = self.loop.call_later(self.limits.head_seconds, self._cut_off)

    def _cut_off(self) -> None:
        """Closes a connection without a request, but leaves time to read the last answer and send the last body."""
        if self.cycle is None:
            self._refuse(
                408,
                Message("the head of the request took longer than {seconds:g} s", seconds=self.limits.head_seconds),
            )
        elif self.cycle.response_complete:
            # Keep waiting while the client reads its answer and, for a limited time, while it still sends its body.
            unsent = self.transport.get_write_buffer_size()
            is_sending = self.conn.their_state is h11.SEND_BODY
            has_time = self._received and self.loop.time() < self._answered + self.limits.unread_seconds
            if (unsent and unsent != self._unread) or (is_sending and has_time):
                self._unread = unsent
                self._wait_for_head()
            elif unsent or is_sending:
                self.transport.abort()
            else:
                self.transport.close()

    def _refuse(self, status: int, message: Message) -> None:
        """Sends an error before there is a request, and closes the connection."""
        body = bytes(refusal_response(Refusal(status, message)).body)
        headers = [
            ("content-type", "application/json"),
            ("content-length", str(len(body))),
            ("x-content-type-options", "nosniff"),
            ("connection", "close"),
        ]
        with suppress(h11.LocalProtocolError):  # in the middle of a response
            head = self.conn.send(h11.Response(status_code=status, headers=headers))
            self.transport.write((head or b"") + (self.conn.send(h11.Data(data=body)) or b""))
            self.conn.send(h11.EndOfMessage())
        self.transport.close()
