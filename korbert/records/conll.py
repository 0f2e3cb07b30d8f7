"""Files of tokens, one a line, with a blank line between sentences: CoNLL, KLUE's entities, CoNLL-U.

A row is a sentence. Its place is its first line.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import dropwhile, groupby, islice, pairwise
from typing import Any

from korbert.errors import CorpusError
from korbert.messages import Message, reason
from korbert.records.table import Fault, Records, Table, TextFile

_DOCUMENT = "-DOCSTART-"
_LOOKED_AT = 1_000  # sentences that tell what the columns are
# Columns after the number of the word.
_CONLLU = ("tokens", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
_Sentence = dict[str, Any]


def read_conll(text: TextFile) -> Table:
    """`tokens` are the first column, `tags` the last; each has a name by its number, too: 1, 2, ...

    Columns are separated by tabs if the first line of a token has one, else by white space. A first column that counts
    the words or eojeol of every sentence holds no tokens: those are in the second. Skipped are lines of -DOCSTART- and
    comments: lines that begin with # and do not have as many columns, or whose first column begins with "# " or "## ".
    Skipped in files of KMOU are also the sentence and its marked form at the head of each block (`; ...` and `$...`, or
    several of `## ...`), and spaces, which are _ in all columns but the tag.
    """
    head = [lines for _, lines in islice(_blocks(text), _LOOKED_AT)]
    inner = _without_heads(head)
    first = next((line for lines in map(inner, head) for line in lines if not line.startswith(("#", _DOCUMENT))), "")
    delimiter = "\t" if "\t" in first else None
    width = len(first.split(delimiter))
    if width < 2:
        raise CorpusError(
            "{text}: one column ({first!r}) where token and tag belong: set form or mend it",
            text=text.path,
            first=first[:40],
        )

    def tokens(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
        """The lines of tokens, and their fields."""
        for line in inner(lines):
            fields = line.split(delimiter)
            is_comment = line[0] == "#" and (len(fields) != width or fields[0].startswith(("# ", "## ")))
            is_space = len(fields) == width > 2 and set(fields[:-1]) == {"_"}
            if not is_comment and not is_space and not line.startswith(_DOCUMENT):
                yield line, fields

    rows_of_head = ([fields for _, fields in tokens(lines)] for lines in head)
    well_formed = (rows for rows in rows_of_head if all(len(fields) == width for fields in rows))
    is_counted = _counts_words([fields[0] for fields in rows] for rows in well_formed)
    if is_counted and width < 3:
        raise CorpusError(
            "{text}: the first column counts words ({first!r}), and one is left where token and tag "
            "belong: add the other",
            text=text.path,
            first=first[:40],
        )
    numbers = [str(number) for number in range(1, width + 1)]

    def sentence(lines: Sequence[str]) -> _Sentence | None:
        rows = [_require_width(fields, width, line) for line, fields in tokens(lines)]
        if not (columns := [list(column) for column in zip(*rows, strict=True)]):
            return None
        return {"tokens": columns[int(is_counted)], "tags": columns[-1], **dict(zip(numbers, columns, strict=True))}

    form = Message("CoNLL with a column that counts words") if is_counted else "CoNLL"
    return _table(text, form, ("tokens", "tags", *numbers), sentence)


def _without_heads(head: Sequence[Sequence[str]]) -> Callable[[Sequence[str]], Sequence[str]]:
    """Returns a function that strips the sentence and its marked form from the head of a block (KMOU).

    It strips nothing unless all the first blocks have them. head: the lines of these blocks.
    """
    if all(len(lines) > 1 and lines[0][0] == ";" and lines[1][0] == "$" for lines in head):
        return lambda lines: lines[2:]
    if all(lines[0].startswith("## ") for lines in head):
        return lambda lines: list(dropwhile(lambda line: line.startswith("## "), lines))
    return lambda lines: lines


def _counts_words(columns: Iterable[Sequence[str]]) -> bool:
    """Whether the first column of every sentence counts from 0 or 1: words, or eojeol of several words."""
    counted = False
    for column in columns:
        if not all(number.isdecimal() for number in column):
            return False
        numbers = [int(number) for number in column]
        if numbers and (numbers[0] > 1 or any(after - before not in (0, 1) for before, after in pairwise(numbers))):
            return False
        counted = counted or len(set(numbers)) > 1
    return counted


def are_characters(lines: Sequence[str]) -> bool:
    """Whether all lines but those that begin with "## " hold a character and its tag, as KLUE's entities do."""
    pairs = [line.split("\t") for line in lines if line.strip() and not line.startswith("## ")]
    return all(len(pair) == 2 and len(pair[0]) == 1 for pair in pairs)


def read_klue_entities(text: TextFile) -> Table:
    """KLUE's entity file: a character and its tag a line, ## before comments, the last of which has id and marked text.

    Columns: id, text (of the characters), tokens, tags, marked (`<경찰:OG>은 또 ...`).
    """

    def sentence(lines: Sequence[str]) -> _Sentence | None:
        comments = [line for line in lines if line.startswith("## ")]
        rows = [_require_width(line.split("\t"), 2, line) for line in lines if not line.startswith("## ")]
        if not rows:
            return None
        if long := [token for token, _ in rows if len(token) != 1]:
            raise ValueError(
                Message("token {token!r:.40} where KLUE has one character: form conll reads words", token=long[0])
            )
        name, _, marked = comments[-1].removeprefix("##").strip().partition("\t") if comments else ("", "", "")
        tokens, tags = ([*column] for column in zip(*rows, strict=True))
        return {"id": name, "text": "".join(tokens), "tokens": tokens, "tags": tags, "marked": marked}

    return _table(text, Message("entities of KLUE"), ("id", "text", "tokens", "tags", "marked"), sentence)


def read_conllu(text: TextFile) -> Table:
    """Universal Dependencies: id and text of the comments sent_id and text; tokens (FORM), upos, ...

    Words alone are read: neither ranges (3-4), which repeat the words inside, nor empty nodes (3.1).
    universaldependencies.org/format.html
    """

    def sentence(lines: Sequence[str]) -> _Sentence | None:
        rows = []
        comments: dict[str, str] = {}
        for line in lines:
            if line.startswith("#"):
                key, _, value = line.removeprefix("#").partition("=")
                comments[key.strip()] = value.strip()
            elif (fields := _require_width(line.split("\t"), 1 + len(_CONLLU), line))[0].isdecimal():
                rows.append(fields[1:])
        columns = {name: list(column) for name, column in zip(_CONLLU, zip(*rows, strict=True), strict=False)}
        return {"id": comments.get("sent_id"), "text": comments.get("text")} | columns if rows else None

    return _table(text, "CoNLL-U", ("id", "text", *_CONLLU), sentence)


def _table(
    text: TextFile, form: str, names: tuple[str, ...], sentence: Callable[[Sequence[str]], _Sentence | None]
) -> Table:
    """Makes a table of sentences. sentence: parses a block of lines into columns; None if the block has no token."""

    def read(wanted: Sequence[str]) -> Records:
        for number, lines in _blocks(text):
            try:
                columns = sentence(lines)
            except ValueError as error:
                yield number, Fault("bad_fields", reason(error))
                continue
            if columns is not None:
                yield number, [columns[name] for name in wanted]

    return Table(names, form, text.encoding, "line", read)


def _blocks(text: TextFile) -> Iterator[tuple[int, list[str]]]:
    """Blocks of lines separated by blank lines, each with the number of its first line."""
    numbered = enumerate((line.rstrip("\r\n") for line in text.lines()), 1)
    for is_filled, block in groupby(numbered, lambda line: bool(line[1].strip())):
        if is_filled:
            numbers, lines = zip(*block, strict=True)
            yield numbers[0], list(lines)


def _require_width(fields: list[str], width: int, line: str) -> list[str]:
    if len(fields) != width:
        shown = line if len(line) <= 40 else f"{line[:37]}..."
        raise ValueError(
            Message(
                "{count} columns where the sentence has {width}, in {line!r}",
                count=len(fields),
                width=width,
                line=shown,
            )
        )
    return fields
