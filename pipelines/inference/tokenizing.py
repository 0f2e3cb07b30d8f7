"""The output of `korbert tokenize`: the pieces of texts as JSON lines or a table."""

from collections.abc import Iterator
from typing import Literal

from rich.markup import escape
from rich.table import Table

from korbert.system import JsonObject, console
from korbert.tokenization import EOJEOL, Pieces, Tokenizer


def token_rows(encoded: Pieces) -> Iterator[JsonObject]:
    """The pieces of a text, in order: {"piece", "id", "span", "tag", "eojeol"}.

    span: half-open, in code points of the text. eojeol: index from 0.
    """
    eojeol = -1
    columns = (encoded.pieces, encoded.ids, encoded.spans, encoded.tags, encoded.boundaries)
    for piece, id, span, tag, boundary in zip(*columns, strict=True):
        eojeol += boundary >= EOJEOL
        yield {"piece": piece, "id": id, "span": span, "tag": tag, "eojeol": eojeol}


def print_table(text: str, encoded: Pieces) -> None:
    """Prints one line per piece, with the characters that it covers."""
    table = Table(box=None, header_style="dim", pad_edge=False)
    for name in ("piece", "id", "span", "characters", "tag", "eojeol"):
        justify: Literal["left", "right"] = "right" if name in ("id", "eojeol") else "left"
        table.add_column(name, justify=justify, no_wrap=True)
    for row in token_rows(encoded):
        start, end = row["span"]
        cells = (row["piece"], str(row["id"]), f"{start}:{end}", text[start:end], row["tag"], str(row["eojeol"]))
        table.add_row(*(escape(cell) for cell in cells))
    console(highlight=False).print(table)


def describe_change(tokenizer: Tokenizer) -> str:
    """How the installed Kiwi changes the pieces of the tokenizer's probe sentences: a summary, then the sentences."""
    change = tokenizer.compare_probe()
    if change is None:
        return "this tokenizer was saved without probe sentences to compare"
    saved = ", ".join(f"{name} {version}" for name, version in tokenizer.versions.items())
    installed = ", ".join(f"{name} {version}" for name, version in tokenizer.analyzer.versions.items())
    share = change.changed / max(1, change.pieces)
    counts = f"{change.changed:,} of {change.pieces:,} pieces differ ({share:.1%})"
    return "\n".join([f"{counts}: made with {saved}; installed is {installed}", *change.texts])
