"""Optional packages, and the extra of korbert that installs each."""

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from korbert.errors import SettingsError

EXTRAS = {  # extra -> what it installs, as imported
    "excel": ("defusedxml", "openpyxl"),
    "hf": ("huggingface_hub", "sentence_transformers", "tokenizers", "transformers"),
    "look": ("captum",),
    "onnx": ("onnx", "onnxruntime"),
    "pipeline": (
        "datasets", "duckdb", "fsspec", "google", "matplotlib", "mwparserfromhell", "pandas", "pebble",
        "tensorboard", "upath", "zstandard",
    ),
    "ray": ("ray",),
    "serve": ("fastapi", "prometheus_client", "uvicorn"),
}  # fmt: skip


class MissingPackage(SettingsError):
    """A package of an extra is not installed."""


def package(name: str, reason: str) -> Any:
    """Imports a package, or a module of it, as `needed_for` does. Telemetry is off unless the environment sets it."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # since 1.29, ONNX Runtime reports models and machines
    with needed_for(reason):
        return importlib.import_module(name)


@contextmanager
def needed_for(reason: str) -> Iterator[None]:
    """Turns the failed import of a package of an extra into a MissingPackage that says what to install.

    reason: what needs it, as in "clean needs duckdb: pip install 'korbert[pipeline]'". Decorates functions, too.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        extra = next((extra for extra, packages in EXTRAS.items() if missing in packages), None)
        if extra is None:
            raise
        raise MissingPackage(f"{reason} needs {missing}: pip install 'korbert[{extra}]'") from None
