"""The output of `korbert tokenize`: the pieces of texts as JSON lines, a table or a page."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from rich.markup import escape
from rich.table import Table

from korbert.errors import SettingsError
from korbert.pipelines.inference import lines
from korbert.pipelines.reports.page import write
from korbert.terminal import console
from korbert.tokenization import AnyTokenizer, Pieces, Tokenizer
from korbert.tokenization.pieces import EOJEOL

_MAX_PAGE_CHARS = 200_000  # about 30 MB of HTML


class TokenRow(TypedDict):
    """A piece. span: half-open, in code points of the text. eojeol: index from 0."""

    piece: str
    id: int
    span: tuple[int, int]
    tag: str
    eojeol: int


@dataclass(frozen=True)
class PageSpan:
    """A stretch of text on the page with the pieces that cover it, if any (a space has none).

    Fused morphemes share their characters and therefore one stretch: 했 with 하 and 었.
    """

    text: str
    pieces: tuple[tuple[str, str], ...]  # piece and tag


def token_rows(encoded: Pieces) -> Iterator[TokenRow]:
    """The pieces of a text, in order."""
    eojeol = -1
    columns = (encoded.pieces, encoded.ids, encoded.spans, encoded.tags, encoded.boundaries)
    for piece, id, span, tag, boundary in zip(*columns, strict=True):
        eojeol += boundary >= EOJEOL
        yield {"piece": piece, "id": id, "span": span, "tag": tag, "eojeol": eojeol}


def as_json(text: str, encoded: Pieces) -> bytes:
    """One line: {"text", "pieces": [TokenRow, ..]}."""
    return lines.as_json({"text": text, "pieces": list(token_rows(encoded))})


def print_table(text: str, encoded: Pieces) -> None:
    """Prints one line per piece, with the characters that it covers."""
    table = Table(box=None, header_style="dim", pad_edge=False)
    for name in ("piece", "id", "span", "characters", "tag", "eojeol"):
        table.add_column(name, justify="right" if name in ("id", "eojeol") else "left", no_wrap=True)
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


def page_spans(text: str, encoded: Pieces) -> list[PageSpan]:
    """The whole text in order, each character once, even if spans of pieces overlap."""
    # Pieces whose spans overlap, and pieces without characters, share a stretch.
    groups: list[tuple[int, int, list[tuple[str, str]]]] = []
    for piece, tag, (start, end) in zip(encoded.pieces, encoded.tags, encoded.spans, strict=True):
        if groups and (start < groups[-1][1] or start == end == groups[-1][1]):
            low, high, names = groups.pop()
            groups.append((min(low, start), max(high, end), [*names, (piece, tag)]))
        else:
            groups.append((start, end, [(piece, tag)]))

    # Fill the gaps between the groups.
    spans = []
    at = 0
    for low, high, names in groups:
        if at < low:
            spans.append(PageSpan(text[at:low], ()))
        spans.append(PageSpan(text[max(at, low) : high], tuple(names)))
        at = max(at, high)
    if at < len(text):
        spans.append(PageSpan(text[at:], ()))
    return spans


def write_page(
    path: Path, tokenizer: AnyTokenizer, texts: Iterable[tuple[str, str]], *, special_tokens: bool = False
) -> int:
    """Writes a page with the pieces of each text below its characters. Returns the number of texts.

    texts: places and texts, as from korbert.pipelines.inference.lines. Raises SettingsError for more text than a page
    can hold.
    """
    shown: list[list[PageSpan]] = []
    chars = 0
    for place, text in texts:
        chars += len(text)
        if chars > _MAX_PAGE_CHARS:
            raise SettingsError(
                f"{place}: a page holds {_MAX_PAGE_CHARS:,} characters: give fewer texts, or use --json"
            )
        shown.append(page_spans(text, tokenizer.encode_pieces(text, special_tokens=special_tokens)))
    number = sum(len(span.pieces) for spans in shown for span in spans)
    write(path, "pieces.html", texts=shown, number=number, vocab_size=tokenizer.vocab_size, digest=tokenizer.digest)
    return len(shown)
