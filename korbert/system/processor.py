"""The processor: trained bytes depend on it, so records name it."""

import os
import platform
import sys
from functools import cache
from pathlib import Path


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
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def peak_memory(*, of_children: bool = False) -> int | None:
    """Returns the peak memory, in bytes, of the largest among this process and the children that it has waited for.

    of_children: leaves this process out. None on Windows, which does not count it.
    """
    try:
        import resource
    except ModuleNotFoundError:
        return None
    whose = [resource.RUSAGE_CHILDREN] if of_children else [resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF]
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * max(resource.getrusage(who).ru_maxrss for who in whose)


def bound_spinning() -> None:
    """Limits how long waiting OpenMP threads spin, to about half a millisecond. Takes effect before torch is imported.

    By default, waiting threads spin for so long that, on a machine with other work, they hold the cores that the
    threads they wait for need: two fine-tunings on two cores ran 8 times slower (benchmarks/RESULTS.md). A setting of
    the user's stays.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "10000")
