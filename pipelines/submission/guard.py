"""Runs a program without network access and without the korbert that is installed: guard.py PROGRAM ARGUMENT...

Only calls through Python are seen, not those of other processes or C code. Imports only the standard library.
"""

import os
import runpy
import sys
from pathlib import Path
from typing import Any

_NETWORK = {
    "socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname",
    "socket.gethostbyaddr",
}  # fmt: skip


def _watch(event: str, values: tuple[Any, ...]) -> None:
    if event in _NETWORK:
        address = next((value for value in values if isinstance(value, str | bytes | tuple)), "")
        print(f"it used the network ({event} {address!r}): put what it needs into the folder", file=sys.stderr)
        sys.stderr.flush()
        os._exit(1)  # whatever the program makes of errors


if __name__ == "__main__":
    del sys.argv[0]
    folder = Path(sys.argv[0]).resolve().parent
    sys.path[0] = str(folder)
    if not (folder / "korbert").exists():
        sys.modules["korbert"] = None  # type: ignore[assignment]  # importing it is an error
    sys.addaudithook(_watch)
    runpy.run_path(sys.argv[0], run_name="__main__")
