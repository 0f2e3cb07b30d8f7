"""Recipe files: finds them, reads their TOML with that of the recipes they extend, and applies `--set`."""

import math
import os
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from korbert.errors import SettingsError
from korbert.messages import Message, argument, reason
from korbert.names import did_you_mean, on_disk
from korbert.system import JsonObject, read_small

SHIPPED = Path(__file__).parent
_MOST_BYTES = 1 << 19  # of a recipe
_MOST_DOTS = 100  # of a line: tomllib's time grows with the square of a key's depth


def find(name: str) -> Path:
    """The file of a recipe, given as a path, a path without `.toml`, or the name of a shipped recipe.

    Raises SettingsError if there is no such recipe, if the name is ambiguous, or if it cannot name an artifact folder.
    """
    path = on_disk(Path(name))
    own_file = on_disk(Path(f"{name}.toml"))
    if path.suffix != ".toml" and not path.is_file():
        path = own_file
        if name in shipped_names():
            path = SHIPPED / f"{name}.toml"
            if own_file.is_file():
                raise SettingsError(
                    "{name}: is a shipped recipe, and {own} exists, too: name {own} to use yours, or rename it",
                    name=name,
                    own=own_file,
                )
        elif not own_file.is_file():
            raise SettingsError(
                "{name}: no such recipe: give a .toml file, or one of {shipped}{hint}",
                name=name,
                shipped=", ".join(shipped_names()),
                hint=nearest_hint(name, [*shipped_names(), *(path.stem for path in Path().glob("*.toml"))]),
            )
    check_name(path)
    return path


def shipped_names() -> list[str]:
    """The names of the recipes that come with korbert."""
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def check_name(path: Path) -> None:
    """Raises SettingsError if the name of the recipe cannot name an artifact folder."""
    if path.stem.startswith(".") or not path.stem.isprintable():
        raise SettingsError(
            "{path!r}: the artifact folder is named after the recipe, and {stem!r} cannot name a folder: "
            "choose another name",
            path=str(path),
            stem=path.stem,
        )


def read_tables(path: Path, extended_by: tuple[Path, ...] = ()) -> tuple[JsonObject, tuple[Path, ...]]:
    """The tables of a recipe file, and the files that it extends, nearest first.

    Its own tables are laid over those of the recipe that it `extends`, less the keys that `without` lists. extended_by:
    the files that extend this one, directly or not.
    """
    own_tables = _parse_toml(path)
    base = own_tables.pop("extends", "")
    without = own_tables.pop("without", [])
    is_list = isinstance(without, list) and all(isinstance(key, str) for key in without)
    if not isinstance(base, str) or not is_list or (without and not base):
        raise SettingsError(
            '{path}: extends and without: write them as extends = "small" and without = ["nsmc", "vocab.size"]',
            path=path,
        )
    if not base:
        return own_tables, ()

    base_path = on_disk(path.parent / base) if base.endswith(".toml") else SHIPPED / f"{base}.toml"
    if not base_path.is_file():
        raise SettingsError(
            "{path}: extends: there is no recipe {base}: give a .toml file, relative to this one, or one "
            "of {shipped}{near}",
            path=path,
            base=base,
            shipped=", ".join(shipped_names()),
            near=nearest_hint(base, shipped_names()),
        )
    # A circle of links or of names would recurse for ever.
    if os.path.realpath(base_path) in map(os.path.realpath, (path, *extended_by)):
        raise SettingsError(
            "{path}: extends: {base_path} extends this recipe: remove one of the two", path=path, base_path=base_path
        )
    tables, bases = read_tables(base_path, (*extended_by, path))
    for key in without:
        *outer, last = key.split(".")
        holder: Any = tables
        for name in outer:
            holder = holder.get(name) if isinstance(holder, dict) else None
        if not isinstance(holder, dict) or holder.pop(last, None) is None:
            raise SettingsError(
                "{path}: without: {base_path} has no {key!r}: remove it from the list",
                path=path,
                base_path=base_path,
                key=key,
            )
    return _merge_tables(tables, own_tables), (base_path, *bases)


def _parse_toml(path: Path) -> JsonObject:
    try:
        text = read_small(path, _MOST_BYTES).decode("utf-8-sig")
        if any(line.count(".") > _MOST_DOTS for line in text.splitlines()):
            raise ValueError(Message("a line has more than {dots} dots", dots=_MOST_DOTS))
        return tomllib.loads(text)
    except FileNotFoundError as error:
        raise SettingsError(
            "{path}: no such file: `korbert new NAME` writes a recipe to start from", path=path
        ) from error
    except (ValueError, RecursionError) as error:
        raise SettingsError("{path}: is not TOML: {error}: correct it there", path=path, error=reason(error)) from error
    except OSError as error:
        raise SettingsError(
            "{path}: cannot be read ({strerror}): give a file of TOML", path=path, strerror=error.strerror
        ) from error


def _merge_tables(base: JsonObject, extension: JsonObject) -> JsonObject:
    """Merges tables key by key; other values, lists among them, are those of `extension`, the extending recipe."""
    merged = dict(base)
    for key, value in extension.items():
        inner = base.get(key)
        merged[key] = _merge_tables(inner, value) if isinstance(value, dict) and isinstance(inner, dict) else value
    return merged


def apply_change(raw: JsonObject, change: str) -> None:
    """Applies a `--set` of KEY=VALUE to parsed TOML."""
    key, equals, text = change.partition("=")
    if not equals or not re.fullmatch(r"[\w-]+(\.[\w-]+)*", key):
        raise SettingsError(
            "{option} {change}: write it as section.key=value, such as vocab.size=32000",
            change=change,
            option=argument("set"),
        )
    *outer, last = key.split(".")
    holder: Any = raw
    for index, name in enumerate(outer):
        if isinstance(holder, list) and name.isdecimal() and int(name) < len(holder):
            holder = holder[int(name)]
        elif isinstance(holder, dict):
            holder = holder.setdefault(name, {})
        else:
            raise SettingsError(
                "{option} {change}: {before} has no {name!r} in the recipe: change it in the file",
                change=change,
                before=".".join(outer[:index]),
                name=name,
                option=argument("set"),
            )
    if not isinstance(holder, dict):
        raise SettingsError(
            "{option} {change}: {outer} is not a table in the recipe: change it in the file",
            change=change,
            outer=".".join(outer),
            option=argument("set"),
        )
    # A value that is not TOML is taken as text, so that a path needs no quotes.
    try:
        holder[last] = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        holder[last] = text
    except (ValueError, RecursionError) as error:
        raise SettingsError(
            "{option} {key}: {short}: too many digits or brackets: give a smaller one",
            key=key,
            short=shorten(text),
            option=argument("set"),
        ) from error


def refuse_boundless(value: object, path: Path, key: str = "") -> None:
    """Raises SettingsError for inf, nan and integers of more than 64 bits, which no setting can have."""
    if isinstance(value, dict | list | tuple):
        for part, inner in value.items() if isinstance(value, dict) else enumerate(value):
            refuse_boundless(inner, path, f"{key}.{part}".removeprefix("."))
    elif (isinstance(value, float) and not math.isfinite(value)) or (isinstance(value, int) and abs(value) >= 1 << 63):
        raise SettingsError(
            "{path}: {key}: {short} is not a number that a setting can have: change it",
            path=path,
            key=key,
            short=shorten(str(value)),
        )


def nearest_hint(word: str, known: Sequence[str]) -> str:
    """Returns the known name that is most like a word, as a hint in brackets; "" if none is."""
    hint = did_you_mean(word, known, 0.5)
    return Message(" ({hint})", hint=hint) if hint else ""


def shorten(text: str) -> str:
    """Shortens a text to 60 characters, to show it in an error."""
    return text if len(text) <= 60 else text[:57] + "..."
