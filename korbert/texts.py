"""Validates text arguments, one or many."""

from collections.abc import Iterable, Mapping

from korbert.errors import SettingsError


def as_texts(given: object, name: str) -> tuple[list[str], bool]:
    """The texts as a list, and whether a single one was given. name: of the argument, for errors.

    A table of pandas is its column `text`. Raises SettingsError for a table without one, and for anything else but a
    string or an iterable of strings.
    """
    if isinstance(given, str):
        return [given], True
    if hasattr(given, "columns"):  # a table iterates over the names of its columns
        if "text" not in given.columns:
            columns = ", ".join(map(str, given.columns))
            raise SettingsError(f"{name} is a table with the columns {columns}: give one of them, or call it 'text'")
        given = given["text"]  # type: ignore[index]
    if isinstance(given, bytes | bytearray | Mapping) or not isinstance(given, Iterable):
        raise SettingsError(f"{name} is {_shown(given)}: give a string, or a list of strings")
    texts = list(given)
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise SettingsError(f"{name}[{place}] is {_shown(text)}: give only strings")
    return texts, False


def _shown(value: object) -> str:
    return "None" if value is None else f"{type(value).__name__} {value!r:.40}"
