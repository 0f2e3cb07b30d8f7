"""The language of pages, help and results in the terminal: English, or Korean for `--lang ko` or a Korean locale."""

import os
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

VARIABLE = "KORBERT_LANG"  # `--lang`, in the environment, as worker processes have to know, too
_NUMBER = re.compile(r"(?:\u2212|(?<= )[+-])?\d+(?:[.,]\d+)*")  # as in look/data.js


def language(browser: str | None = None) -> str:
    """ "ko" or "en": by `--lang`, else by the browser's Accept-Language if it is given, else by the locale."""
    locale = os.environ.get("LC_ALL") or os.environ.get("LC_MESSAGES") or os.environ.get("LANG") or ""
    asked = os.environ.get(VARIABLE) or (locale if browser is None else browser)
    return "ko" if asked.lower().startswith("ko") else "en"


@cache
def table() -> Mapping[str, str]:
    """English -> Korean, with {} in place of each number."""
    texts = tomllib.loads((Path(__file__).parent / "ko.toml").read_text(encoding="utf-8"))
    return {_NUMBER.sub("{}", english): korean for english, korean in texts.items()}


def t(text: str, lang: str | None = None) -> str:
    """The text in the language, with its own numbers in their order; as it is if the table lacks it."""
    if (lang or language()) == "en" or (korean := table().get(_NUMBER.sub("{}", text))) is None:
        return text
    numbers = iter(_NUMBER.findall(text))
    return re.sub(r"\{\}", lambda _: next(numbers), korean)
