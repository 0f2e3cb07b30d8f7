"""Runs a program without network access, and records what it writes.

    python -c THIS REPORT PROGRAM ARGUMENT...

REPORT gets JSON lines: {"network": attempt}, which fails as on a machine without network, {"wrote": path} for each
file or folder that is opened for writing, created or renamed, {"memory": peak bytes of the process}, {"ended": true}.
Only calls through Python are seen, not other processes or C code. Imports only the standard library.
"""

import json
import os
import runpy
import stat
import sys
from pathlib import Path
from typing import Any

_NETWORK = {
    "socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname",
    "socket.gethostbyaddr",
}  # fmt: skip
_MADE = {"os.mkdir": 0, "os.rename": 1, "os.link": 1, "os.symlink": 1}  # which argument is the new path
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def main() -> None:
    report, program, *arguments = sys.argv[1:]
    descriptor = os.open(report, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    written: set[str] = set()

    def say(**line: Any) -> None:
        os.write(descriptor, json.dumps(line).encode() + b"\n")

    def watch(event: str, given: tuple[Any, ...]) -> None:
        if event in _NETWORK:
            address = next((one for one in given if isinstance(one, str | bytes | tuple)), "")
            say(network=f"{event} {address!r}")
            raise OSError("there is no network here")
        path = given[_MADE[event]] if event in _MADE else given[0] if event == "open" and _writes(given) else None
        if isinstance(path, str | bytes):
            place = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 (a Path may not exist yet while one is made)
            if place not in written:
                written.add(place)
                say(wrote=place, before=_state(place))

    sys.argv = [program, *arguments]
    sys.path[0] = str(Path(program).resolve().parent)
    sys.addaudithook(watch)
    try:
        runpy.run_path(program, run_name="__main__")
    finally:
        say(memory=_peak_bytes(), ended=True)


def _writes(given: tuple[Any, ...]) -> bool:
    return isinstance(given[2], int) and bool(given[2] & _WRITING)


def _state(path: str) -> list[int] | None:
    """Size and mtime of a file; zeros for a folder, as others may write into it; None if absent."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return [0, 0] if stat.S_ISDIR(found.st_mode) else [found.st_size, found.st_mtime_ns]


def _peak_bytes() -> int | None:
    """Peak memory from /proc; ru_maxrss would include the memory of the parent before the fork."""
    try:
        for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


if __name__ == "__main__":
    main()
