"""Installed packages: versions, which artifacts record where they shape their bytes, and packages of an extra."""

import importlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

from korbert.errors import ModelError


def optional(name: str, extra: str, reason: str) -> ModuleType:
    """Imports a package of an extra. ModelError if it is not installed; reason: what needs it, for the message."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ModelError(f"{reason} needs {name}: pip install 'korbert[{extra}]'") from None


@cache
def installed_version(package: str) -> str:
    """The version without its local label (2.13.0+cpu is 2.13.0); "absent" if the package is not installed."""
    try:
        return version(package).partition("+")[0]
    except PackageNotFoundError:
        return "absent"
