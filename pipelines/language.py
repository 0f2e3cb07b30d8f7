"""The language of pages, help and results in the terminal: English, or Korean for `--lang ko` or a Korean locale."""

import os
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

VARIABLE = "KORBERT_LANG"  # `--lang`, in the environment, as worker processes have to know, too
_NUMBER = re.compile(r"(?:\u2212|(?<= )[+-])?\d+(?:[.,]\d+)*")  # as in look/data.js
_LONGEST = 1_000  # characters: patterns take cubic time on a text of many colons
_ANY = r"(?:(?!\. [A-Z]|; | · ).)+?"  # within a sentence


def language(browser: str | None = None) -> str:
    """ "ko" or "en": by `--lang`, else by the browser's Accept-Language if it is given, else by the locale."""
    locale = os.environ.get("LC_ALL") or os.environ.get("LC_MESSAGES") or os.environ.get("LANG") or ""
    asked = os.environ.get(VARIABLE) or (locale if browser is None else browser)
    return "ko" if asked.lower().startswith("ko") else "en"


@cache
def table(part: str = "texts") -> Mapping[str, str]:
    """English -> Korean, with {} in place of each number."""
    texts = tomllib.loads((Path(__file__).parent / "ko.toml").read_text(encoding="utf-8"))[part]
    return {_NUMBER.sub("{}", english): korean for english, korean in texts.items()}


@cache
def _patterns() -> Mapping[re.Pattern[str], str]:
    """The texts with {name} and {PHRASE} in place of any text, those with the most words and fewest names first.

    A name would match a number, too.
    """
    found = {}
    for english, korean in sorted(
        table("patterns").items(),
        key=lambda pair: (-len(re.sub(r"{\w*}", "", pair[0])), len(re.findall(r"{\w", pair[0]))),
    ):
        parts = re.split(r"{(\w*)}", english)
        parts[::2] = (re.escape(words).replace(r"\ ", "[ \u00a0]") for words in parts[::2])
        parts[1::2] = (f"(?P<{name}>{_ANY})" if name else f"({_NUMBER.pattern})" for name in parts[1::2])
        found[re.compile("".join(parts), re.DOTALL)] = korean
    return found


def t(text: str, lang: str | None = None) -> str:
    """The text in the language, with its own numbers and names in their places; as it is if the table lacks it."""
    return text if (lang or language()) == "en" else _korean(text)


def _korean(text: str) -> str:
    """By the table, else by a pattern, whose {PHRASE}s are translated, too, else sentence by sentence."""
    if (korean := table().get(_NUMBER.sub("{}", text))) is not None:
        numbers = iter(_NUMBER.findall(text))
        return re.sub(r"\{\}", lambda _: next(numbers), korean)
    if len(text) > _LONGEST:
        return text
    for pattern, korean in _patterns().items():
        if found := pattern.fullmatch(text):
            places = {name: _korean(part) if name.isupper() else part for name, part in found.groupdict().items()}
            named = pattern.groupindex.values()
            numbers = (part for place, part in enumerate(found.groups(), 1) if place not in named)
            return korean.format(*numbers, **places)
    parts = re.split(r"( · |; |(?<=\.) )", text)
    parts = parts if len(parts) > 1 else re.split(r"(\.+$)", text)
    return text if len(parts) == 1 else "".join(part if at % 2 else _korean(part) for at, part in enumerate(parts))
