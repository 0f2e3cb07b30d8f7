import ctypes
from types import SimpleNamespace

import pytest
import torch

from korbert.errors import SettingsError
from korbert.training import devices
from korbert.training.devices import autocast, choose_device, choose_precision, memory_kept, numerics

CPU = torch.device("cpu")


def test_choose_device_by_name(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_device("auto") == choose_device("cpu") == CPU
    for name, said in (("cuda", "PyTorch sees no GPU here; use device cpu"), ("gpu", "there are auto, cpu and cuda")):
        with pytest.raises(SettingsError, match=f"device '{name}': {said}"):
            choose_device(name)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device("auto") == torch.device("cuda")


@pytest.mark.parametrize(
    ("name", "has_bf16", "has_amx", "chosen"),
    [
        ("AMD EPYC", True, False, "bf16"),
        ("AMD EPYC", False, False, "fp32"),
        ("Intel(R) Xeon(R)", True, True, "bf16"),
        ("Intel(R) Xeon(R)", True, False, "fp32"),
    ],
)
def test_auto_precision_goes_by_the_hardware(monkeypatch, name, has_bf16, has_amx, chosen):
    monkeypatch.setattr(devices, "has_bf16", lambda device: has_bf16)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_tile": has_amx})
    monkeypatch.setattr(devices, "processor_name", lambda: name)
    assert choose_precision(CPU, "auto") == chosen
    assert choose_precision(CPU, "fp32") == "fp32"
    with autocast(CPU, "auto"):
        assert torch.is_autocast_enabled("cpu") is (chosen == "bf16")
    monkeypatch.setattr(devices, "has_bf16", lambda device: False)
    with pytest.raises(SettingsError, match="precision 'bf16': this cpu has no bf16 instructions; use auto or fp32"):
        choose_precision(CPU, "bf16")


def test_fp32_inside_of_bf16_is_fp32():
    matrix = torch.ones(2, 2)
    with torch.autocast("cpu", torch.bfloat16):
        with autocast(CPU, "fp32"):
            assert (matrix @ matrix).dtype == torch.float32
        assert (matrix @ matrix).dtype == torch.bfloat16


def test_memory_is_kept_inside_and_returned_after_the_outermost(monkeypatch):
    calls = []  # what is asked of the C library
    glibc = SimpleNamespace(
        mallopt=lambda option, value: calls.append((option, value)),
        malloc_trim=lambda kept: calls.append(("trim", kept)),
    )
    monkeypatch.setattr(ctypes, "CDLL", lambda name: glibc)
    with memory_kept(CPU):
        assert calls == [(-4, 0), (-1, -1)]
        with memory_kept(CPU) as give_back:
            give_back()
        assert calls[2:] == [("trim", 0)]
    assert calls[3:] == [(-4, 65_536), (-1, 131_072), ("trim", 0)]
    with memory_kept(torch.device("cuda")) as give_back:
        give_back()
    assert len(calls) == 6


def test_numerics_name_all_that_bytes_depend_on():
    record = numerics(CPU, "fp32", threads=2)
    assert record == record | {"torch": torch.__version__, "threads": 2, "device": "cpu", "precision": "fp32"}
    assert record["processor"]
    assert record["instructions"]
