"""Lazy public names: a package imports the module of a name at its first use."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def attach(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """A module-level `__getattr__` (PEP 562) for `package`.

    modules: public name -> the submodule that defines it. An unknown name raises AttributeError.
    """

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{modules[name]}"), name)

    return load
