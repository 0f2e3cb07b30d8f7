"""Services in processes of their own, and requests to them."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.running import wait_until

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = Path(__file__).with_name("toy_service.py")


class Reply(NamedTuple):
    code: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> Any:
        return self.json["error"]


def ask(port: int, path: str, body: Any = None, **headers: str) -> Reply:
    """body: bytes, or a value to send as JSON; None: a GET. headers: with _ for -."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("GET" if data is None else "POST", path, data, named)
        answer = connection.getresponse()
        return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
    finally:
        connection.close()


class Started:
    """A running service. said: its first line on standard output. log: lines of standard error."""

    def __init__(self, arguments: list[str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
        )
        self.log: list[str] = []
        self._reader = threading.Thread(target=self.log.extend, args=[self.process.stderr], daemon=True)
        self._reader.start()
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline()
        self.address = self.said.rpartition(" ")[2].strip()
        self.port = int(self.address.rpartition(":")[2] or 0)

    def ask(self, path: str, body: Any = None, **headers: str) -> Reply:
        return ask(self.port, path, body, **headers)

    def raw(self, data: bytes, seconds: float = 30) -> bytes:
        """Sends bytes, and returns all that comes back until the service closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as connection:
            connection.sendall(data)
            return b"".join(iter(lambda: connection.recv(65_536), b""))

    def wait_for(self, metric: str, seconds: float = 30) -> None:
        """Until /metrics says this."""
        wait_until(lambda: metric in self.ask("/metrics").body.decode(), seconds)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Sends a signal, waits, and returns the exit code."""
        if self.process.poll() is None:
            os.kill(self.process.pid, number)
        code = self.process.wait(timeout=60)
        self._reader.join(timeout=10)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        return code


@contextmanager
def started(*arguments: str) -> Iterator[Started]:
    """`korbert serve` with these arguments, at a free port unless they name one."""
    port = [] if "--port" in arguments else ["--port", "0"]
    service = Started(["-m", "korbert", "serve", *arguments, *port])
    try:
        yield service
    finally:
        service.end()


@contextmanager
def toy(**how: Any) -> Iterator[Started]:
    service = Started([str(SCRIPT), json.dumps(how)])
    try:
        yield service
    finally:
        service.end()
