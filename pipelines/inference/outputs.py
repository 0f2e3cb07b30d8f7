"""Which files a command may write over: those that say, or show by their form, that the same command wrote them."""

import json
import re
from pathlib import Path
from typing import Any

from korbert.durable import read_object
from korbert.tasks.files import ROLES

_GENERATOR = b'<meta name="generator" content="korbert">'  # in templates/base.html and look.html
_HEAD_BYTES = 1_000
_LINE_BYTES = 1 << 20


def is_nothing_else(path: Path) -> bool:
    """False: of files whose form nobody can tell from others (arrays, official answer files)."""
    return False


def is_page(path: Path) -> bool:
    """Whether a file is a page of korbert."""
    with path.open("rb") as file:
        return _GENERATOR in file.read(_HEAD_BYTES)


def is_evaluation(path: Path) -> bool:
    """Whether a file has the lines of `korbert evaluate --output`: rows by role, with a prediction at the end."""
    keys = list(_first_line(path))
    return len(keys) > 1 and keys[-1] == "prediction" and ROLES.keys() >= set(keys[:-1])


def is_layer_table(path: Path) -> bool:
    """Whether a file is layers.json of `korbert layers`."""
    return {"task", "scored_on", "features", "num_layers", "models", "best"} <= _object(path).keys()


def is_questions(path: Path) -> bool:
    """Whether a file was written by `korbert questions`."""
    with path.open("rb") as file:
        if file.read(_HEAD_BYTES).startswith(b'{"version": "korbert questions"'):
            return True
    first = _first_line(path)
    named = list(first) == ["id", "title", "context", "question", "answers"]
    return named and re.fullmatch(r"[0-9a-f]{20}-\d+", str(first["id"])) is not None


def is_vectors(path: Path) -> bool:
    """Whether a file is a .parquet file of `korbert embed`. An array (.npy) does not say who wrote it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.suffix != ".parquet":
        return False
    try:
        return list(pq.read_schema(path).names) == ["line", "id", "error", "vector"]
    except (OSError, pa.ArrowException):
        return False


def _first_line(path: Path) -> dict[str, Any]:
    """The JSON object in the first line; {} if it is something else."""
    try:
        with path.open("rb") as file:
            value = json.loads(file.readline(_LINE_BYTES))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _object(path: Path) -> dict[str, Any]:
    try:
        return read_object(path)
    except ValueError:
        return {}
