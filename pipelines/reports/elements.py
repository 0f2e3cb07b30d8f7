"""What a page is made of: plain records, which templates/elements.html turns into HTML by their `kind`.

Everything in them is text that the template escapes, except `Picture.svg`, which pictures.py draws from numbers alone.
"""

from dataclasses import dataclass
from typing import ClassVar

__all__ = [
    "Bar",
    "Bars",
    "Code",
    "Element",
    "Entry",
    "Folded",
    "Headline",
    "Interval",
    "Intervals",
    "Matrix",
    "Picture",
    "Section",
    "Story",
    "Table",
]


_LONG_BARS = 15
_NARROW_CHARS = 55  # of a table's head; more of them take the whole width of the page


@dataclass(frozen=True)
class Headline:
    """A figure large enough to be read from afar, what it is, and what it must be seen with."""

    value: str
    label: str
    note: str = ""


@dataclass(frozen=True)
class Bar:
    """One row of a bar chart. parts: share of the whole track (0 to 1) of each colour.

    korean: the label is Korean text, and is set and read aloud as such.
    """

    label: str
    parts: tuple[float, ...]
    text: str
    korean: bool = False


@dataclass(frozen=True)
class Bars:
    """A bar chart in HTML, so that labels may be in any script. legend: what each colour stands for, if several."""

    kind: ClassVar[str] = "bars"
    title: str
    bars: tuple[Bar, ...]
    legend: tuple[str, ...] = ()
    note: str = ""

    @property
    def wide(self) -> bool:
        """Whether it is long enough for two columns."""
        return len(self.bars) > _LONG_BARS


@dataclass(frozen=True)
class Interval:
    """A measured figure and one standard error to both sides, as shares (0 to 1) of the track."""

    label: str
    at: float
    low: float
    high: float
    text: str
    colour: int = 1


@dataclass(frozen=True)
class Intervals:
    """Dots with whiskers on one scale. left, right: what stands at its ends."""

    kind: ClassVar[str] = "intervals"
    wide: ClassVar[bool] = False
    title: str
    rows: tuple[Interval, ...]
    left: str
    right: str
    note: str = ""


@dataclass(frozen=True)
class Picture:
    """A chart with axes. svg: safe markup. legend: (name, colour 1 to 5, dashed) of each series, named in HTML."""

    kind: ClassVar[str] = "picture"
    wide: ClassVar[bool] = False
    title: str
    svg: str
    legend: tuple[tuple[str, int, bool], ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Table:
    """align: a letter a column, l(eft), r(ight: numbers) or k (left, Korean text)."""

    kind: ClassVar[str] = "table"
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    align: str
    note: str = ""

    @property
    def wide(self) -> bool:
        return sum(map(len, self.head)) > _NARROW_CHARS


@dataclass(frozen=True)
class Matrix:
    """A confusion matrix: rows are the truth, columns the prediction. cells: (count, share of its row) each."""

    kind: ClassVar[str] = "matrix"
    wide: ClassVar[bool] = False
    title: str
    truth: tuple[str, ...]
    prediction: tuple[str, ...]
    cells: tuple[tuple[tuple[str, float], ...], ...]
    note: str = ""


@dataclass(frozen=True)
class Code:
    """Lines to copy. A click selects all of them."""

    kind: ClassVar[str] = "code"
    wide: ClassVar[bool] = True
    title: str
    text: str
    note: str = ""


@dataclass(frozen=True)
class Entry:
    """A text shown as an example.

    head: what it is. facts: (name, value) beside it. passage: what it stands in, as stretches of text, each with its
    marks: any of "right" and "given", or none.
    """

    head: str
    text: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    passage: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True)
class Folded:
    """Examples behind a line that opens them."""

    kind: ClassVar[str] = "folded"
    title: str
    entries: tuple[Entry, ...]
    open: bool = False


Element = Bars | Code | Folded | Intervals | Matrix | Picture | Table


@dataclass(frozen=True)
class Section:
    """Blocks under one heading. Bars and pictures stand side by side where there is room."""

    title: str
    elements: tuple[Element, ...]
    text: str = ""


@dataclass(frozen=True)
class Story:
    """A stage's page: the headline, one sentence below it, and the sections."""

    title: str
    lede: str
    sections: tuple[Section, ...]
