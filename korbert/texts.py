"""Validates text arguments, one or many."""

from collections.abc import Iterable, Mapping

from korbert.errors import SettingsError


def as_texts(value: object, name: str) -> tuple[list[str], bool]:
    """The texts as a list, and whether a single one was given. name: of the argument, for errors.

    A table of pandas is its column `text`. Raises SettingsError for a table without one, and for anything else but a
    string or an iterable of strings.
    """
    if isinstance(value, str):
        return [value], True
    if hasattr(value, "columns"):  # a table iterates over the names of its columns
        if "text" not in value.columns:
            columns = ", ".join(map(str, value.columns))
            raise SettingsError(f"{name} is a table with the columns {columns}: give one of them, or call it 'text'")
        value = value["text"]  # type: ignore[index]
    if isinstance(value, bytes | bytearray | Mapping) or not isinstance(value, Iterable):
        raise SettingsError(f"{name} is {_shown(value)}: give a string, or a list of strings")
    texts = list(value)
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise SettingsError(f"{name}[{place}] is {_shown(text)}: give only strings")
    return texts, False


def _shown(value: object) -> str:
    return "None" if value is None else f"{type(value).__name__} {value!r:.40}"
