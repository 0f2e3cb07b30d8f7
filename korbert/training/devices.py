"""Device, precision, memory, and the record of what trained bytes depend on."""

import ctypes
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from korbert.errors import SettingsError
from korbert.messages import argument
from korbert.system import processor_name
from korbert.training.plan import PrecisionName

Batch = Mapping[str, Any]
"""Tensors, which are moved to the device, and facts about them that stay on CPU.

Reading a value back (a number, `all()`, `nonzero()`) waits for all work queued on the device; the facts avoid that.
"""

_TRIM_THRESHOLD = -1  # of mallopt(3)
_MMAP_MAX = -4
_keeping = 0  # how many `memory_kept` are open


def choose_device(name: str = "auto") -> torch.device:
    """auto: the GPU if PyTorch sees one, else CPU. SettingsError for "cuda" without a GPU."""
    if name not in ("auto", "cpu", "cuda"):
        raise SettingsError("device {name!r}: there are auto, cpu and cuda", name=name)
    has_gpu = torch.cuda.is_available()
    if name == "cuda" and not has_gpu:
        raise SettingsError(
            "device 'cuda': PyTorch sees no GPU here; use {option} cpu, or install a build with CUDA",
            option=argument("device"),
        )
    if name == "auto":
        name = "cuda" if has_gpu else "cpu"
    return torch.device(name)


def device_of(network: nn.Module) -> torch.device:
    """The device of a network's weights."""
    return next(network.parameters()).device


def choose_precision(device: torch.device, precision: PrecisionName) -> PrecisionName:
    """fp32 or bf16. auto: the faster one.

    With AVX512_BF16 but no AMX, matrix products in bf16 run at half the speed of fp32 on Intel, and at 2.5 times on AMD
    (benchmarks/RESULTS.md, "A step of pretraining"). SettingsError for bf16 on hardware without bf16 instructions.
    """
    if precision == "bf16" and not has_bf16(device):
        raise SettingsError(
            "precision 'bf16': this {type} has no bf16 instructions; use auto or fp32", type=device.type
        )
    if precision == "auto":
        slow = device.type == "cpu" and "Intel" in processor_name() and not has_instructions("amx_tile")
        return "bf16" if has_bf16(device) and not slow else "fp32"
    return precision


def has_bf16(device: torch.device) -> bool:
    """Whether the hardware has bf16 instructions."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return has_instructions("avx512_bf16") or has_instructions("amx_tile")


def has_instructions(name: str) -> bool:
    """Whether this processor has a set of instructions, by its name in torch.cpu.get_capabilities."""
    return bool(torch.cpu.get_capabilities().get(name))


def autocast(device: torch.device, precision: PrecisionName) -> AbstractContextManager[object]:
    """The context of forward passes: matrix products in bf16 or fp32, whatever the precision around it."""
    if choose_precision(device, precision) == "fp32":
        has_autocast = torch.amp.is_autocast_available(device.type)
        return torch.autocast(device.type, enabled=False) if has_autocast else nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16)


def to_device(batch: Batch, device: torch.device) -> Batch:
    """The batch with its tensors on the device."""
    return {
        name: value.to(device, non_blocking=True) if isinstance(value, Tensor) else value
        for name, value in batch.items()
    }


def pin_memory(batch: Batch) -> Batch:
    """The batch in page-locked memory, from which a GPU copies asynchronously."""
    return {name: value.pin_memory() if isinstance(value, Tensor) else value for name, value in batch.items()}


@contextmanager
def memory_kept(device: torch.device) -> Iterator[Callable[[], None]]:
    """Inside, freed memory stays with the process. Yields a function that returns unused memory; call it now and then.

    By default glibc maps each large tensor anew, page by page: 140,000 page faults, a tenth of the time of a step of
    4 layers x 256 with 102,400 entries. With memory kept, batches of changing sizes leave holes between the kernels
    that oneDNN caches for each size: 10 MB a step of 4 layers x 256, until they are returned.
    Nested uses have no effect: the outermost one ends it. No effect on a GPU or with another C library.
    """
    global _keeping
    library: Any = ctypes.CDLL(None) if os.name == "posix" else None
    if device.type != "cpu" or not hasattr(library, "mallopt"):
        yield lambda: None
        return
    _keeping += 1
    if _keeping == 1:
        library.mallopt(_MMAP_MAX, 0)
        library.mallopt(_TRIM_THRESHOLD, -1)  # never trim
    try:
        yield lambda: library.malloc_trim(0)
    finally:
        _keeping -= 1
        if not _keeping:
            library.mallopt(_MMAP_MAX, 65_536)
            library.mallopt(_TRIM_THRESHOLD, 128 * 1024)
            library.malloc_trim(0)


def numerics(device: torch.device, precision: PrecisionName, threads: int) -> dict[str, str | int]:
    """What trained bytes depend on besides settings and inputs. On CPU, equal records mean equal bytes."""
    gpu = {"gpu": torch.cuda.get_device_name(device)} if device.type == "cuda" else {}
    return {
        "processor": processor_name(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "torch": torch.__version__,
        "threads": threads,
        "device": device.type,
        "precision": choose_precision(device, precision),
        **gpu,
    }
