"""Messages: English templates and values, which become words in the language of the reader where they are shown.

Code that finds something out makes a `Message`. What shows it (`say`, the log, a page) calls `in_language`, which takes
the translation from the gettext catalogue in korbert/locale. Nothing reads a sentence to learn what it says.
"""

import gettext
import os
import string
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from korbert.messages.particles import with_particle

VARIABLE = "KORBERT_LANG"  # `--lang`, in the environment, since worker processes have to know it
LOCALES = Path(__file__).parent.parent / "locale"
_PARSER = string.Formatter()


class Message(str):
    """A sentence in English that can also be shown in another language.

    The string is the English sentence, so a program may print, compare and store a message as any text.

    template: English with named fields, as in "{file}: {count:,} rows". It is the key of the catalogue.
    plural: the template for any count but 1; empty if there is only one. It needs a value named `count`.
    values: what the fields stand for. A value that is itself a message is translated with it.

    Examples:
        >>> str(Message("{file}: {count:,} rows", file="a.csv", count=1200))
        'a.csv: 1,200 rows'
    """

    template: str
    plural: str
    values: Mapping[str, Any]

    def __new__(cls, template: str, plural: str = "", /, **values: object) -> "Message":
        chosen = plural if plural and values["count"] != 1 else template
        message = super().__new__(cls, _fill_template(chosen, values, "en") if values else chosen)
        message.template = template
        message.plural = plural
        message.values = values
        return message

    def __reduce__(self) -> tuple[Any, ...]:
        return Message.from_json, (self.as_json(),)

    def as_json(self) -> dict[str, Any]:
        """Template and values, for an artifact that keeps the message to show it later."""
        values = {name: _as_json(value) for name, value in self.values.items()}
        return {"template": self.template, "plural": self.plural, "values": values}

    def map_texts(self, change: Callable[[str], str]) -> "Message":
        """The same message with its texts and paths changed, those of messages inside it included."""
        values = {name: _change_value(value, change) for name, value in self.values.items()}
        return Message(self.template, self.plural, **values)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Message":
        """The message that `as_json` described."""
        values = {
            name: cls.from_json(value) if isinstance(value, Mapping) else value
            for name, value in record["values"].items()
        }
        return cls(record["template"], record["plural"], **values)


def _as_json(value: object) -> Any:
    if isinstance(value, Message):
        return value.as_json()
    return value if isinstance(value, str | int | float) else str(value)


def _change_value(value: object, change: Callable[[str], str]) -> Any:
    if isinstance(value, Message):
        return value.map_texts(change)
    return change(str(value)) if isinstance(value, str | Path) else value


NAMES = "KORBERT_NAMES"  # "options" at the command line, in the environment for worker processes

_ARGUMENTS = {  # option -> argument, where the names differ
    "address": "$RAY_ADDRESS",
    "column": "another role",
    "from": "from_",
    "rebuild": "rebuild=True",
    "set": "settings",
    "several": "several=True",
}


def argument(name: str) -> str:
    """The name of an argument, for a message: `row_workers` in Python, `--row-workers` at the command line."""
    if os.environ.get(NAMES) == "options":
        return f"--{name.replace('_', '-')}"
    return _ARGUMENTS.get(name, name)


def reason(error: BaseException) -> str:
    """What an error says: its message if it was raised with one, which can still be translated, else its words."""
    first = error.args[0] if error.args else None
    return first if isinstance(first, Message) else str(error)


def join_messages(parts: Iterable[str], separator: str = "; ") -> Message:
    """The parts as one message, each translated by itself. Empty ones are left out."""
    values = {f"part{number}": part for number, part in enumerate(filter(None, parts))}
    return Message(separator.join(f"{{{name}}}" for name in values), **values)


def language(browser: str | None = None) -> str:
    """ "ko" or "en": by `--lang`, else by the browser's Accept-Language if it is given, else by the locale."""
    locale = os.environ.get("LC_ALL") or os.environ.get("LC_MESSAGES") or os.environ.get("LANG") or ""
    language_tag = os.environ.get(VARIABLE) or (locale if browser is None else browser)
    return "ko" if language_tag.lower().startswith("ko") else "en"


def in_language(text: str, lang: str | None = None) -> str:
    """The text in the language, by default that of `language`. Text that is no message is data and stays as it is."""
    lang = lang or language()
    if not isinstance(text, Message):
        return text
    if lang == "en":
        return str(text)
    catalogue = _catalogue(lang)
    if text.plural:
        template = catalogue.ngettext(text.template, text.plural, text.values["count"])
    else:
        template = catalogue.gettext(text.template) if text.template else ""  # "" is the catalogue's own head
    return _fill_template(template, text.values, lang) if text.values else template


def translate(data: object, lang: str) -> Any:
    """The data, JSON's kinds, with each message in the language."""
    if isinstance(data, Mapping):
        return {key: translate(value, lang) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [translate(value, lang) for value in data]
    return in_language(data, lang) if isinstance(data, str) else data


def translations(domain: str, lang: str) -> dict[str, str]:
    """All translations of a catalogue, English -> the language, for the scripts of a page; empty for English."""
    catalogue = _catalogue(lang, domain)
    entries: dict[str, str] = getattr(catalogue, "_catalog", {})  # gettext offers no public access to all entries
    return {english: words for english, words in entries.items() if english}


@cache
def _catalogue(lang: str, domain: str = "korbert") -> gettext.NullTranslations:
    return gettext.translation(domain, LOCALES, [lang], fallback=True)


def _fill_template(template: str, values: Mapping[str, object], lang: str) -> str:
    """The template with its values in the language. In Korean, the form of a particle follows the sound before it."""
    filled = ""
    follows_value = False
    for literal, field, spec, conversion in _PARSER.parse(template):
        filled = with_particle(filled, literal) if follows_value and lang == "ko" else filled + literal
        follows_value = field is not None
        if field is not None:
            value = values[field]
            if isinstance(value, Message):
                value = in_language(value, lang)
            filled += format(_PARSER.convert_field(value, conversion), spec or "")
    return filled
