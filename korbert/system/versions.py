"""Versions of installed packages, which artifacts record where they shape their bytes."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def installed_version(package: str) -> str:
    """The version without its local label (2.13.0+cpu is 2.13.0); "absent" if the package is not installed."""
    try:
        return version(package).partition("+")[0]
    except PackageNotFoundError:
        return "absent"
