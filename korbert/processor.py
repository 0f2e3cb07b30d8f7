"""What the machine computes with: records name the processor, since trained bytes depend on it."""

import os
import platform
from pathlib import Path

__all__ = ["cores", "processor_name"]


def processor_name() -> str:
    """The name that Linux gives the processor; elsewhere the name of its architecture."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
