"""Fills the templates: each page is one self-contained HTML file, a model card a Markdown file."""

import json
import re
from functools import cache
from pathlib import Path

import jinja2
from jinja2.runtime import Context
from markupsafe import Markup

from korbert.messages import Message, in_language, language
from korbert.system import check_output, printable, write_bytes_atomically

_GENERATOR = b'<meta name="generator" content="korbert">'  # in base.html and look.html
_HEAD_BYTES = 1_000


def is_page(path: Path) -> bool:
    """Whether a file is a page of korbert. Only such files are overwritten, as they can be made again in seconds."""
    with path.open("rb") as file:
        return _GENERATOR in file.read(_HEAD_BYTES)


def write(path: Path, template: str, *, scratch: Path | None = None, **values: object) -> Path:
    """Fills a template and writes the page atomically; only a page may be overwritten. Returns its path.

    scratch: see write_atomically.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    check_output(path, may_overwrite=is_page)
    write_bytes_atomically(path, fill_template(template, **values).encode("utf-8", "backslashreplace"), scratch=scratch)
    return path


def fill_template(template: str, **values: object) -> str:
    """Fills a template and returns the text of the page, in the language of `lang`, by default that of the user.

    Control and invisible characters, bidi marks included, and lone surrogates are shown as escapes.
    """
    return _environment().get_template(template).render({"lang": language(), **values})


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("korbert.pipelines.reports"),
        autoescape=lambda name: name is not None and name.endswith(".html"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_display,
    )
    # Data must not become markup or HTML in Markdown, not even in table cells.
    spaced = {"\u00a0": " ", "\n": " "}
    environment.filters |= {
        "json": lambda value: json.dumps(value, ensure_ascii=False),
        "markdown": lambda text: re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", text.translate(str.maketrans(spaced))),
        "words": _words,
    }
    environment.globals |= {"_": Message, "counted": Message}
    return environment


@jinja2.pass_context
def _display(context: Context, value: object) -> object:
    """A value as the page shows it: a message in the page's language, control characters of other text as escapes."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return printable(_words(context, value))


@jinja2.pass_context
def _words(context: Context, text: str) -> str:
    """A message in the language of the page."""
    return in_language(text, context["lang"])
