"""Nothing beyond this machine is reached: for the tests' own process, and for every Python that they start.

Python imports this module when it starts, as tests/conftest.py puts its folder on PYTHONPATH.
"""

import socket
from typing import Any

_HERE = ("127.0.0.1", "::1", "localhost")


def _guarded(method: Any) -> Any:
    def call(self: socket.socket, address: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in _HERE:
            raise AssertionError(f"a test tried to reach {address}")
        return method(self, address)

    return call


for _name in ("connect", "connect_ex"):
    setattr(socket.socket, _name, _guarded(getattr(socket.socket, _name)))
