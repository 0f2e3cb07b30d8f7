"""Files of tokens, one a line, with a blank line between sentences: CoNLL, KLUE's entities, CoNLL-U.

A row is a sentence. Its place is its first line.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from korbert.errors import CorpusError
from korbert.records.table import Fault, Records, Table, TextFile

__all__ = ["read_conll", "read_conllu", "read_klue_entities"]

_DOCUMENT = "-DOCSTART-"
_CONLLU = (
    "tokens",
    "lemma",
    "upos",
    "xpos",
    "feats",
    "head",
    "deprel",
    "deps",
    "misc",
)  # behind the number of the word
_Sentence = dict[str, Any]


class _Malformed(ValueError):
    """A sentence whose line has another number of fields."""


def read_conll(text: TextFile) -> Table:
    """`tokens` are the first column, `tags` the last; each has a name by its number, too: 1, 2, ...

    Columns are separated by tabs if the first line of a token has one, else by white space. Lines of -DOCSTART- and,
    where they have not as many columns, those that begin with # are no tokens.
    """
    first = next((line for _, lines in _blocks(text) for line in lines if not line.startswith(("#", _DOCUMENT))), "")
    delimiter = "\t" if "\t" in first else None
    width = len(first.split(delimiter))
    if width < 2:
        raise CorpusError(f"{text.path}: one column ({first[:40]!r}) where token and tag belong: set form or mend it")
    numbers = [str(number) for number in range(1, width + 1)]

    def sentence(lines: Sequence[str]) -> _Sentence | None:
        rows = []
        for line in lines:
            fields = line.split(delimiter)
            if line.startswith(_DOCUMENT) or (line.startswith("#") and len(fields) != width):
                continue
            rows.append(_of_width(fields, width, line))
        columns = [list(column) for column in zip(*rows, strict=True)]
        return {"tokens": columns[0], "tags": columns[-1]} | dict(zip(numbers, columns, strict=True)) if rows else None

    return _table(text, "CoNLL", ("tokens", "tags", *numbers), sentence)


def read_klue_entities(text: TextFile) -> Table:
    """KLUE's entity file: a character and its tag a line, ## before comments, the last of which has id and marked text.

    Columns: id, text (of the characters), tokens, tags, marked (`<경찰:OG>은 또 ...`).
    """

    def sentence(lines: Sequence[str]) -> _Sentence | None:
        comments = [line for line in lines if line.startswith("##")]
        rows = [_of_width(line.split("\t"), 2, line) for line in lines if not line.startswith("##")]
        if not rows:
            return None
        name, _, marked = comments[-1].removeprefix("##").strip().partition("\t") if comments else ("", "", "")
        tokens, tags = ([*column] for column in zip(*rows, strict=True))
        return {"id": name, "text": "".join(tokens), "tokens": tokens, "tags": tags, "marked": marked}

    return _table(text, "entities of KLUE", ("id", "text", "tokens", "tags", "marked"), sentence)


def read_conllu(text: TextFile) -> Table:
    """Universal Dependencies: id and text of the comments sent_id and text; tokens (FORM), upos, ...

    Words alone are read: neither ranges (3-4), which repeat the words inside, nor empty nodes (3.1).
    universaldependencies.org/format.html
    """

    def sentence(lines: Sequence[str]) -> _Sentence | None:
        rows = []
        noted: dict[str, str] = {}
        for line in lines:
            if line.startswith("#"):
                key, _, value = line.removeprefix("#").partition("=")
                noted[key.strip()] = value.strip()
            elif (fields := _of_width(line.split("\t"), 1 + len(_CONLLU), line))[0].isdecimal():
                rows.append(fields[1:])
        columns = {name: list(column) for name, column in zip(_CONLLU, zip(*rows, strict=True), strict=False)}
        return {"id": noted.get("sent_id"), "text": noted.get("text")} | columns if rows else None

    return _table(text, "CoNLL-U", ("id", "text", *_CONLLU), sentence)


def _table(
    text: TextFile, form: str, columns: tuple[str, ...], sentence: Callable[[Sequence[str]], _Sentence | None]
) -> Table:
    """sentence: parses a block of lines into columns, None if it has no token."""

    def read(wanted: Sequence[str]) -> Records:
        for number, lines in _blocks(text):
            try:
                found = sentence(lines)
            except _Malformed as error:
                yield number, Fault("bad_fields", str(error))
                continue
            if found is not None:
                yield number, [found[column] for column in wanted]

    return Table(columns, form, text.encoding, "line", read)


def _blocks(text: TextFile) -> Iterator[tuple[int, list[str]]]:
    """Blocks of lines separated by blank lines, each with the number of its first line."""
    block: list[str] = []
    number = 0
    for number, line in enumerate(text.lines(), 1):
        line = line.rstrip("\r\n")
        if line.strip():
            block.append(line)
        elif block:
            yield number - len(block), block
            block = []
    if block:
        yield number + 1 - len(block), block


def _of_width(fields: list[str], width: int, line: str) -> list[str]:
    if len(fields) != width:
        shown = line if len(line) <= 40 else f"{line[:37]}..."
        raise _Malformed(f"{len(fields)} columns where the sentence has {width}, in {shown!r}")
    return fields
