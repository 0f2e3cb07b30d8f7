"""JSON that is read with care: records of ours that tell whether a byte was changed, and objects that anyone wrote."""

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["read_object", "sealed", "unsealed"]

_SEAL = "record_sha256"


def sealed(record: Mapping[str, Any]) -> bytes:
    """A JSON file whose last entry is the SHA-256 of all before it. One content has one such file."""
    return _as_json({**record, _SEAL: hashlib.sha256(_as_json(record)).hexdigest()})


def unsealed(data: bytes) -> dict[str, Any]:
    """What sealed() was given. Raises ValueError, in words, where `data` is anything that it did not return."""
    try:
        record = json.loads(data)
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    if not isinstance(record, dict) or _SEAL not in record:
        raise ValueError(f"has no {_SEAL}: it is no record, or was written by an older korbert")
    del record[_SEAL]
    if data != sealed(record):
        raise ValueError("is not as it was written")
    return record


def _as_json(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False, indent=1).encode()


def read_object(path: Path) -> dict[str, Any]:
    """A JSON object of a file, {} where it holds something else. Raises OSError, and ValueError for what is no JSON.

    NaN, infinity and numbers that no float64 can hold are no JSON.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"), parse_float=_finite, parse_constant=_finite)
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    return found if isinstance(found, dict) else {}


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no finite number")
    return number
