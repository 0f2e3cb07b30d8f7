"""The elements of a page: plain records that templates/elements.html renders by their `kind`.

The template escapes all text in them except `Picture.svg`, which holds no text from the data.
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
    "Gap",
    "Gapped",
    "Guess",
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
_NARROW_CHARS = 55  # a table with a longer head takes the whole width of the page
_NARROW_CELLS = 6  # and one with more columns
_NARROW_COLUMNS = 3  # and a matrix with more


@dataclass(frozen=True)
class Headline:
    """A key figure, its label, and a qualifying note (an error, a baseline)."""

    value: str
    label: str
    note: str = ""


@dataclass(frozen=True)
class Bar:
    """A row of a bar chart. parts: the share of the track (0 to 1) of each colour. text: the figure at its end.

    korean: the label is Korean; marked in HTML for fonts and screen readers.
    """

    label: str
    parts: tuple[float, ...]
    text: str
    korean: bool = False


@dataclass(frozen=True)
class Bars:
    """A bar chart in HTML, so that labels may be in any script. legend: the meaning of each colour, if several."""

    kind: ClassVar[str] = "bars"
    title: str
    bars: tuple[Bar, ...]
    legend: tuple[str, ...] = ()
    note: str = ""

    @property
    def wide(self) -> bool:
        """Whether the chart is long enough for two columns."""
        return len(self.bars) > _LONG_BARS


@dataclass(frozen=True)
class Interval:
    """A figure and its interval. at, low, high: positions on the track (0 to 1)."""

    label: str
    at: float
    low: float
    high: float
    text: str
    colour: int = 1


@dataclass(frozen=True)
class Intervals:
    """Dots with whiskers on one scale. left, right: the labels of its ends."""

    kind: ClassVar[str] = "intervals"
    wide: ClassVar[bool] = False
    title: str
    rows: tuple[Interval, ...]
    left: str
    right: str
    note: str = ""


@dataclass(frozen=True)
class Picture:
    """A chart with axes. svg: safe markup. legend: (name, colour 1 to 5, dashed) of each series, drawn in HTML."""

    kind: ClassVar[str] = "picture"
    wide: ClassVar[bool] = False
    title: str
    svg: str
    legend: tuple[tuple[str, int, bool], ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Table:
    """A table. align: a letter per column, l(eft), r(ight, for numbers) or k (left, Korean text). folded: collapsed."""

    kind: ClassVar[str] = "table"
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    align: str
    note: str = ""
    folded: bool = False

    @property
    def wide(self) -> bool:
        return sum(map(len, self.head)) > _NARROW_CHARS or len(self.head) > _NARROW_CELLS


@dataclass(frozen=True)
class Matrix:
    """A confusion matrix: true labels by predictions. cells: (count, share of the row)."""

    kind: ClassVar[str] = "matrix"
    title: str
    truth: tuple[str, ...]
    prediction: tuple[str, ...]
    cells: tuple[tuple[tuple[str, float], ...], ...]
    note: str = ""

    @property
    def wide(self) -> bool:
        return len(self.prediction) > _NARROW_COLUMNS


@dataclass(frozen=True)
class Code:
    """Code to copy; a click selects all of it."""

    kind: ClassVar[str] = "code"
    wide: ClassVar[bool] = True
    title: str
    text: str
    note: str = ""


@dataclass(frozen=True)
class Entry:
    """An example text.

    head: its id. facts: (name, value) pairs below it. passage: its context, as stretches of text with marks: "right"
    (correct answer), "given" (prediction), both or none.
    """

    head: str
    text: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    passage: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True)
class Folded:
    """Collapsible examples."""

    kind: ClassVar[str] = "folded"
    title: str
    entries: tuple[Entry, ...]
    open: bool = False


@dataclass(frozen=True)
class Guess:
    """A piece predicted for a gap, and its probability as text. right: whether it is the original piece."""

    piece: str
    share: str
    right: bool


@dataclass(frozen=True)
class Gap:
    """A gap: the original piece, and the guesses at each evaluation, most likely first."""

    piece: str
    guesses: tuple[tuple[Guess, ...], ...]


@dataclass(frozen=True)
class Gapped:
    """A text with gaps and their predictions. text: one stretch more than gaps. head: evaluations."""

    kind: ClassVar[str] = "gapped"
    wide: ClassVar[bool] = False
    title: str
    text: tuple[str, ...]
    gaps: tuple[Gap, ...]
    head: tuple[str, ...]
    note: str = ""


Element = Bars | Code | Folded | Gapped | Intervals | Matrix | Picture | Table


@dataclass(frozen=True)
class Section:
    """Elements under one heading. Narrow ones stand side by side if there is room."""

    title: str
    elements: tuple[Element, ...]
    text: str = ""


@dataclass(frozen=True)
class Story:
    """A stage's page: the title, one or two sentences below it, and the sections."""

    title: str
    lede: str
    sections: tuple[Section, ...]
