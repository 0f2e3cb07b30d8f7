"""The elements of a page: plain records that templates/elements.html renders by their `kind`.

Korbert's own texts are messages, shown in the language of the page; any other text is data and shown as it is. The
template escapes all text in the elements except `Picture.svg`, which holds no text from the data.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

Marked = tuple[str, Sequence[str]]
"""A stretch of a text and its marks: "right" (correct answer), "given" (prediction), both or none."""


@dataclass(frozen=True)
class Element:
    """An element with a title above it and a note below it."""

    title: str
    note: str = field(default="", kw_only=True)

    @property
    def kind(self) -> str:
        return type(self).__name__.lower().removesuffix("element")


class Bar(NamedTuple):
    """A row of a bar chart. share: its width, as a share of the track (0 to 1). text: the figure at the bar's end."""

    label: str
    share: float
    text: str


@dataclass(frozen=True)
class Bars(Element):
    """A bar chart in HTML, so that labels may be in any script.

    korean: whether the labels are Korean, which the HTML then says to fonts and screen readers.
    """

    bars: Sequence[Bar]
    korean: bool = False


class ScoreInterval(NamedTuple):
    """A figure and its interval. at, low, high: positions on the track (0 to 1)."""

    label: str
    at: float
    low: float
    high: float
    text: str
    colour: int


@dataclass(frozen=True)
class Intervals(Element):
    """Dots with whiskers on one scale. left, right: the labels of the scale's ends."""

    rows: Sequence[ScoreInterval]
    left: str
    right: str


@dataclass(frozen=True)
class Picture(Element):
    """A chart with axes. svg: safe markup. legend: (name, colour 0 to 5, dashed) of each series, drawn in HTML."""

    svg: str
    legend: Sequence[tuple[str, int, bool]] = ()


@dataclass(frozen=True)
class TableElement(Element):
    """A table. align: a letter per column, l(eft), r(ight, for numbers), n(ame) or k (Korean text, marked in HTML
    like the labels of `Bars`). folded: whether the table is collapsed."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    align: str
    folded: bool = False


@dataclass(frozen=True)
class MatrixElement(Element):
    """A confusion matrix: true labels by predictions. cells: (count, share of the row)."""

    labels: Sequence[str]
    cells: Sequence[Sequence[tuple[str, float]]]


@dataclass(frozen=True)
class Code(Element):
    """Code to copy; a click selects all of it."""

    text: str


class Example(NamedTuple):
    """An example text. head: its id. facts: (name, value) pairs below the text. passage: the text's context."""

    head: str
    text: str = ""
    facts: Sequence[tuple[str, str]] = ()
    passage: Sequence[Marked] = ()


@dataclass(frozen=True)
class Folded(Element):
    """Collapsible examples."""

    entries: Sequence[Example]
    open: bool = False


GapPrediction = tuple[str, str, bool]
"""A piece predicted for a gap, its probability as text, and whether it is the original piece."""


@dataclass(frozen=True)
class Gapped(Element):
    """A text with gaps and their predictions.

    text: the stretches around the gaps, one more than there are gaps. gaps: for each gap its original piece, and the
    predictions at each evaluation, most likely first. head: the names of the evaluations.
    """

    text: Sequence[str]
    gaps: Sequence[tuple[str, Sequence[Sequence[GapPrediction]]]]
    head: Sequence[str]


class Section(NamedTuple):
    """Elements under one heading; without elements it is not shown. Narrow elements stand side by side if they fit."""

    title: str
    elements: Sequence[Element]
    text: str = ""


class Story(NamedTuple):
    """A stage's page: the title, one or two sentences below it, and the sections."""

    title: str
    lede: str
    sections: Sequence[Section]


class Use(NamedTuple):
    """How to use an artifact.

    folder: what to load, relative to the artifact. command, python: templates in which `{}` stands for the path of
    what is loaded; command is "" if no command loads it.
    """

    folder: str
    command: str
    python: str
