"""Markdown as prose, parsed by markdown-it-py, with the fields of the front matter: YAML between lines of ---."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from korbert.corpus.readers.records import SourceRow, checked_row, faulty_row
from korbert.corpus.settings import SourceSettings

_FRONT = re.compile(r"---[ \t]*\r?\n(?![ \t]*\r?$)(.*?)^(?:---|\.\.\.)[ \t]*\r?$\n?", re.DOTALL | re.MULTILINE)
_DEEPEST = 100  # blocks inside blocks
_HTML = re.compile(r"<!--.*?-->|<(script|style)\b.*?</\1\s*>|</?[a-z!?][^>]*>", re.DOTALL | re.IGNORECASE)
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_LINE_ENDS = re.compile(r"[ \t]+\n")
_BLANK_LINES = re.compile(r"\n{3,}")
_LISTS = ("bullet_list_close", "ordered_list_close")
_ENDS = {"td_close": "\t", "th_close": "\t", "tr_close": "\n", "thead_close": "", "list_item_close": ""}
_PARSER = MarkdownIt("commonmark", {"maxNesting": _DEEPEST}).enable(["table", "strikethrough"])


def row(text: str, file: str, source: SourceSettings) -> SourceRow:
    """A file as a document: its title and its prose. A faulty row if its front matter is not YAML, or not fields.

    The id is the field of that name, or else `file`; the text a field of the front matter, or else title and prose.
    """
    fields: Any = {}
    match = _FRONT.match(text)
    if match:
        try:
            fields = yaml.load(match[1], yaml.BaseLoader) or {}
        except (yaml.YAMLError, RecursionError) as error:
            mark = getattr(error, "problem_mark", None)
            place = file if mark is None else f"{file} line {mark.line + 2}"
            cause = getattr(error, "problem", None) or type(error).__name__
            return faulty_row(place, None, text, "bad_front_matter", f"its front matter is not YAML ({cause})")
        if not isinstance(fields, dict):
            return faulty_row(file, None, text, "bad_front_matter", "its front matter has no fields (key: value)")
    try:
        body = prose(text[match.end() :] if match else text)
    except ValueError as error:
        return faulty_row(file, None, text, "bad_text", str(error))
    title = fields.get("title")
    if isinstance(title, str) and title.strip() and body.partition("\n")[0] != title.strip():
        body = f"{title.strip()}\n\n{body}"
    return checked_row(fields.get(source.id, file), fields.get(source.text, body), file, source, text)


def prose(text: str) -> str:
    """The text without marks: links and images as their text, tables with a line for each row, without HTML.

    Paragraphs are separated by blank lines. Raises ValueError if blocks are nested too deep to be read.
    """
    tokens = _PARSER.parse(text)
    if any(token.level >= _DEEPEST - 1 for token in tokens):
        raise ValueError(f"more than {_DEEPEST - 2} quotes or lists inside one another")
    return _BLANK_LINES.sub("\n\n", _LINE_ENDS.sub("\n", "".join(_block_pieces(tokens)))).strip()


def _block_pieces(tokens: Sequence[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type == "inline":
            yield from map(_inline, token.children or ())
        elif token.type in ("fence", "code_block"):
            yield f"{token.content}\n"
        elif token.type == "html_block":
            yield f"{_HTML.sub('', _BREAK.sub(chr(10), token.content))}\n\n"
        elif token.nesting < 0 and not (token.level and token.type in _LISTS):
            yield "\n" if token.hidden else _ENDS.get(token.type, "\n\n")  # hidden: a paragraph in a tight list


def _inline(token: Token) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return " " if token.type == "softbreak" else "\n"
    if token.type == "html_inline":
        return "\n" if _BREAK.fullmatch(token.content) else ""
    return "".join(map(_inline, token.children)) if token.children else token.content
