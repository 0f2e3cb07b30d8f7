"""Services in processes of their own, and people who ask them."""

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


class Started:
    """A service that runs. lines: what it has said; those of standard error follow at the end."""

    def __init__(self, arguments: list[str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
        )
        self.log: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline()
        self.address = self.said.rpartition(" ")[2].strip()
        self.port = int(self.address.rpartition(":")[2] or 0)

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.log.extend(self.process.stderr)

    def ask(self, path: str, body: Any = None, **headers: str) -> Reply:
        """The reply. body: bytes, or what becomes JSON; None: a GET."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request("GET" if data is None else "POST", path, data, named)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, found, answer.read())
        finally:
            connection.close()

    def raw(self, data: bytes, seconds: float = 30) -> bytes:
        """All that comes back for these bytes until the service closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as connection:
            connection.sendall(data)
            found = b""
            while part := connection.recv(65_536):
                found += part
            return found

    def end(self, number: int = signal.SIGTERM) -> int:
        """Ends it; its exit code."""
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
    """A service of toy_service.py."""
    service = Started([str(SCRIPT), json.dumps(how)])
    try:
        yield service
    finally:
        service.end()
