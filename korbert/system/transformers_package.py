"""The package `transformers`, which only adapters, imports and checks need."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def quietly() -> Iterator[None]:
    """Silences bars, hints and load reports of `transformers`."""
    logging: Any = importlib.import_module("transformers.utils.logging")
    shown = logging.is_progress_bar_enabled()
    verbosity = logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if shown:
            logging.enable_progress_bar()


def reason_of(error: Exception) -> str:
    """The message of an error of `transformers`, in one line of at most 300 characters."""
    return " ".join(str(error).split())[:300]
