"""What the machine computes with: records name it, since trained bytes depend on it."""

import platform
from pathlib import Path

__all__ = ["processor_name"]


def processor_name() -> str:
    """The name that Linux gives the processor; elsewhere the name of its architecture."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()
