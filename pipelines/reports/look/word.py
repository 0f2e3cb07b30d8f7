"""The table and the page of one word in many sentences: the cosine of each pair of its vectors."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from korbert.pipelines.language import t
from korbert.pipelines.reports.page import write
from korbert.vectors.parts import Occurrences

_AROUND = 20  # characters of a sentence on each side of the word
_WIDE = 12  # columns of cosines in the terminal


class Row(NamedTuple):
    """An occurrence: what stands before the word, the word and what stands behind it; its cosines with all."""

    before: str
    word: str
    after: str
    cosines: list[float]


def rows(found: Occurrences) -> Iterator[Row]:
    for number, (start, end), cosines in zip(found.numbers, found.spans, found.cosines.tolist(), strict=True):
        text = found.texts[number]
        before, after = text[:start], text[end:]
        before = before if len(before) <= _AROUND else f"… {before[-_AROUND:]}"
        after = after if len(after) <= _AROUND else f"{after[:_AROUND]} …"
        yield Row(before, text[start:end], after, cosines)


def table(found: Occurrences) -> Iterator[str]:
    """Lines for the terminal: a row for each occurrence, its cosines with the first 12, its sentence."""
    yield "".join(f"{number:7}" for number in ("", *range(1, min(len(found), _WIDE) + 1)))
    for number, row in enumerate(rows(found), 1):
        cosines = "".join(f"{cosine:7.3f}" for cosine in row.cosines[:_WIDE])
        yield f"{number:7}{cosines}  {row.before}[{row.word}]{row.after}"
    if len(found) > _WIDE:
        yield t(f"The columns are the first {_WIDE} of {len(found)}: the page of --html has all.")


def write_page(path: Path, about: str, found: Occurrences) -> Path:
    """Writes the page and returns its path: the cosines as numbers and colours. about: a line on what was compared."""
    cosines = found.cosines[~np.eye(len(found), dtype=bool)]  # without those of a vector with itself
    low, high = float(cosines.min()), float(cosines.max())
    return write(path, "word.html", word=found.word, about=about, rows=list(rows(found)), low=low, high=high)
