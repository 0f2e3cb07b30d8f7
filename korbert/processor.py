"""The processor: trained bytes depend on it, so records name it."""

import os
import platform
from functools import cache
from pathlib import Path

__all__ = ["cores", "processor_name"]


@cache
def processor_name() -> str:
    """The model name on Linux, the architecture on other systems."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
