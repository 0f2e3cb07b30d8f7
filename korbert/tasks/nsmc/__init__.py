"""NSMC, the Naver sentiment movie corpus: data.py reads its files, settings.py holds the defaults of its stage."""

from typing import TYPE_CHECKING

from korbert._lazy import attach

if TYPE_CHECKING:
    from korbert.tasks.nsmc.data import COLUMNS, LABELS, read
    from korbert.tasks.nsmc.settings import NsmcSettings

__all__ = [
    "COLUMNS",
    "LABELS",
    "NsmcSettings",
    "read",
]

__getattr__ = attach(
    __name__,
    {
        "COLUMNS": "data",
        "LABELS": "data",
        "NsmcSettings": "settings",
        "read": "data",
    },
)
