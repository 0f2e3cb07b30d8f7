"""Memory of the machine, and its speed on large matrix products."""

import os
import re
import time
from pathlib import Path

import torch

from korbert.training.devices import choose_precision
from korbert.training.settings import PrecisionName

__all__ = ["memory_of", "product_rate"]

_REPEATS = 12


def product_rate(device: torch.device, precision: PrecisionName) -> float:
    """Floating point operations per second, from the fastest of 12 products of large square matrices."""
    size = 1_024 if device.type == "cpu" else 8_192
    kind = torch.bfloat16 if choose_precision(device, precision) == "bf16" else torch.float32
    left, right = (torch.ones(size, size, dtype=kind, device=device) for _ in range(2))
    seconds = []
    for _ in range(_REPEATS):
        began = time.perf_counter()
        (left @ right)[0, 0].item()  # waits for the device
        seconds.append(time.perf_counter() - began)
    return 2 * size**3 / min(seconds)


def memory_of(device: torch.device) -> tuple[int, int]:
    """Total and free memory of the device, in bytes. On a CPU, a container limit (cgroup) counts as the total."""
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        return total, free
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit, about = Path("/sys/fs/cgroup/memory.max"), Path("/proc/meminfo")
    if limit.is_file() and (allowed := limit.read_text(encoding="ascii").strip()).isdecimal():
        total = min(total, int(allowed))
    available = re.search(r"MemAvailable: +(\d+) kB", about.read_text(encoding="ascii") if about.is_file() else "")
    return total, min(total, 1024 * int(available[1])) if available else total
