"""The package `transformers`, which only adapters, imports and checks need."""

import importlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from korbert.errors import ModelError
from korbert.extras import package


def transformers(reason: str) -> Any:
    """Imports the package. SettingsError if it is not installed; reason: what needs it, for the message."""
    return package("transformers", reason)


@contextmanager
def quietly() -> Iterator[None]:
    """Silences bars, hints and load reports of `transformers`."""
    logging: Any = importlib.import_module("transformers.utils.logging")
    shown, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if shown:
            logging.enable_progress_bar()


def their_json(path: Path) -> Any:
    """The value in a JSON file of `transformers`, which may hold Infinity. ModelError if it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path}: cannot be read ({error}): name a folder that transformers has written") from None


def reason_of(error: Exception) -> str:
    """The message of an error of `transformers`, in one line of at most 300 characters."""
    return " ".join(str(error).split())[:300]
