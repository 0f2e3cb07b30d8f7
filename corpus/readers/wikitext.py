"""Wikitext as prose, parsed by mwparserfromhell."""

import re
from collections.abc import Callable

import mwparserfromhell
from mwparserfromhell import nodes
from mwparserfromhell.wikicode import Wikicode

# Tags whose content is not prose. The parser treats tables as tags.
_DROPPED = frozenset(
    {"table", "gallery", "timeline", "graph", "mapframe", "maplink", "imagemap", "score", "categorytree", "inputbox"}
    | {"ref", "references", "math", "ce", "chem", "hiero", "syntaxhighlight", "source", "pre", "section", "indicator"}
    | {"templatestyles", "templatedata"}
)
_BLOCKS = frozenset({"p", "div", "blockquote", "hr", "poem"})
_RAISED = str.maketrans("0123456789+-−()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁽⁾ⁿ")  # 10<sup>2</sup> is not 102
_LOWERED = str.maketrans("0123456789+-−()", "₀₁₂₃₄₅₆₇₈₉₊₋₋₍₎")
_MEDIA = frozenset(("file", "image", "media", "파일", "그림", "미디어", "category", "분류"))
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[a-z-]+)?|simple|zh-.*")  # [[en:Mathematics]]: the article in another language
_SWITCH = re.compile(r"__[A-Z가-힣]+__")  # __TOC__
_LEFT_MARKUP = re.compile(r"^[ \t]*(\{\||\|).*$|\{\{|\}\}|\[\[|\]\]|'''?", re.MULTILINE)  # markup that was never closed
_SPACES = re.compile(r"[^\S\n]+")
_AT_LINE_ENDS = re.compile(r" ?\n ?")
_BLANK_LINES = re.compile(r"\n{3,}")
# Brackets that may have lost content with a template: (, 줄여서 math), (), (영어: , 1924년)
_BRACKETS = re.compile(r"( ?[(（\[])([^()（）\[\]\n]*)([)）\]])")
_SEPARATORS = re.compile(r"\s*[,;·]\s*")


_WRAPPED: dict[str, Callable[[str], str]] = {
    "br": lambda text: "\n",
    "sup": lambda text: text.translate(_RAISED),
    "sub": lambda text: text.translate(_LOWERED),
    **dict.fromkeys(_BLOCKS, lambda text: f"\n\n{text}\n\n"),
}


def prose(wikitext: str) -> str:
    """The running text, without tables, references, templates, categories and files. Headings are paragraph breaks.

    Paragraphs are separated by blank lines. Malformed markup stays as text, without its brackets. Raises RecursionError
    if arguments ({{{) are nested hundreds of times.
    """
    text = _SWITCH.sub("", _text(mwparserfromhell.parse(wikitext)))
    text = _LEFT_MARKUP.sub("", text)
    text = _AT_LINE_ENDS.sub("\n", _SPACES.sub(" ", text))
    text = _BRACKETS.sub(_drop_empty_brackets, text)
    return _BLANK_LINES.sub("\n\n", _AT_LINE_ENDS.sub("\n", text)).strip()


def _drop_empty_brackets(match: re.Match[str]) -> str:
    """Brackets without the separators of lost content; an empty string if nothing is left in them."""
    opening, inner, closing = match.groups()
    parts = _SEPARATORS.split(inner)
    if all(parts):
        return match[0]
    kept = [part for part in parts if part]
    separator = next(iter(_SEPARATORS.findall(inner)), "")
    return f"{opening}{separator.join(kept)}{closing}" if kept else ""


def _text(code: Wikicode | None) -> str:
    return "" if code is None else "".join(map(_visible_text, code.nodes))


def _visible_text(node: nodes.Node) -> str:
    if isinstance(node, nodes.Text):
        return str(node.value)
    if isinstance(node, nodes.HTMLEntity):
        return str(node.normalize())
    if isinstance(node, nodes.Heading):
        return "\n\n"
    if isinstance(node, nodes.Wikilink):
        title = str(node.title).strip()
        space, colon, _ = title.partition(":")
        if colon and (space.strip().lower() in _MEDIA or _LANGUAGE.fullmatch(space.strip())):
            return ""
        return _text(node.title).removeprefix(":") if node.text is None else _text(node.text)
    if isinstance(node, nodes.ExternalLink):
        return _text(node.title) if node.brackets else str(node.url)
    if isinstance(node, nodes.Tag):
        name = str(node.tag).strip().lower()
        if name in _DROPPED:
            return ""
        return _WRAPPED.get(name, str)(_text(node.contents))
    return ""  # templates, arguments, comments
