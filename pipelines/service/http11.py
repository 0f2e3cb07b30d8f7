"""HTTP/1.1 for people with little patience: uvicorn's protocol, with a limit for heads that never end."""

import asyncio
from typing import Any, ClassVar

import h11
from pydantic_core import to_json
from uvicorn.protocols.http.h11_impl import H11Protocol

from pipelines.service.limits import Limits
from pipelines.service.refusals import error_body

__all__ = ["protocol_of"]


def protocol_of(limits: Limits) -> type[asyncio.Protocol]:
    """The protocol class for uvicorn. A head has at most 64 KiB, as h11 has it, and may take head_seconds."""
    return type("Protocol", (_Protocol,), {"limits": limits})


class _Protocol(H11Protocol):
    limits: ClassVar[Limits]
    _watch: asyncio.TimerHandle | None = None

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
        self._refuse(400, "the request is no HTTP/1.1 that can be read")

    def _wait_for_head(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
        self._watch = self.loop.call_later(self.limits.head_seconds, self._cut_off)

    def _cut_off(self) -> None:
        """Without a request by now the connection ends; so does one whose answered request still sends a body."""
        if self.cycle is None:
            self._refuse(408, f"the head of the request took longer than {self.limits.head_seconds:g} s")
        elif self.cycle.response_complete:
            self.transport.close()

    def _refuse(self, status: int, message: str) -> None:
        """An answer before there is a request, and the end of the connection."""
        body = to_json(error_body(status, message))
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
        except h11.LocalProtocolError:  # in the middle of an answer
            pass
        self.transport.close()
