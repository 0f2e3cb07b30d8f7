"""Runs a program without network access and without the korbert that is installed.

    python -c THIS REPORT PROGRAM ARGUMENT...

REPORT gets JSON lines: {"network": attempt}, which fails as on a machine without network, and {"memory": peak bytes}.
Only calls through Python are seen, not other processes or C code. Imports only the standard library.
"""

import json
import runpy
import sys
from pathlib import Path
from typing import Any

_NETWORK = {
    "socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname",
    "socket.gethostbyaddr",
}  # fmt: skip


def main() -> None:
    report, program, *arguments = sys.argv[1:]
    folder = Path(program).resolve().parent
    file = Path(report).open("a", buffering=1, encoding="utf-8")  # noqa: SIM115 (for as long as the program runs)

    def watch(event: str, values: tuple[Any, ...]) -> None:
        if event in _NETWORK:
            address = next((value for value in values if isinstance(value, str | bytes | tuple)), "")
            print(json.dumps({"network": f"{event} {address!r}"}), file=file)
            raise OSError("there is no network here")

    sys.argv = [program, *arguments]
    sys.path[0] = str(folder)
    if not (folder / "korbert").exists():
        sys.modules["korbert"] = None  # type: ignore[assignment]  # importing it is an error
    sys.addaudithook(watch)
    try:
        runpy.run_path(program, run_name="__main__")
    finally:  # ru_maxrss would include the memory of the parent before the fork
        status = Path("/proc/self/status")
        lines = status.read_text(encoding="ascii", errors="replace").splitlines() if status.is_file() else []
        peak = next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), None)
        print(json.dumps({"memory": peak}), file=file)


if __name__ == "__main__":
    main()
