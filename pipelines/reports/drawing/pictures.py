"""Charts with axes as SVG: drawn by matplotlib, then each colour is replaced by a CSS variable of the page.

The SVG text is limited to digits and the labels of the axes, drawn in English and then translated. Names from the
data, which may be Korean, are legends in HTML, so that no local font needs Hangul.
"""

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np

from korbert.messages import Message, in_language, join_messages
from korbert.pipelines.artifacts import formatting, is_defined
from korbert.pipelines.reports.drawing.elements import Picture

if find_spec("matplotlib") or TYPE_CHECKING:  # else pages say that their charts need it
    import matplotlib
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator, NullLocator, PercentFormatter

_COLOURS = 5  # series colours in the style sheet

_POINTS = 240  # longer series are averaged: a phone has no more pixels
_DOTS = 1_000  # of a scatter plot
_FEW_POINTS = 12  # up to this many, each point gets a marker
_AXES = (0.13, 0.18, 0.85, 0.71)  # position in the picture; fixed, so that neighbouring charts line up
_STYLE = str(files("korbert.pipelines.reports") / "templates" / "charts.mplstyle")
_MUTED = "#0a0a02"
_SERIES = tuple(f"#0a0a1{number}" for number in range(1, _COLOURS + 1))
_VARIABLES = {"#0a0a01": "ink", _MUTED: "muted", "#0a0a03": "rule"} | {code: f"c{code[-1]}" for code in _SERIES}
_DASHED: dict[str, Any] = {"linestyle": (0, (4, 3)), "linewidth": 1.4}


@dataclass(frozen=True)
class Series:
    """A series of a line chart. reference: a baseline, drawn dashed in grey. band: the lower and upper ends of y."""

    name: str
    x: Sequence[float] | np.ndarray
    y: Sequence[float] | np.ndarray
    reference: bool = False
    band: tuple[Sequence[float] | np.ndarray, Sequence[float] | np.ndarray] | None = None

    @classmethod
    def through(cls, name: str, xs: Iterable[float], ys: Iterable[float | None]) -> "Series":
        """A series of the points whose y is known."""
        points = [(x, y) for x, y in zip(xs, ys, strict=True) if y is not None and is_defined(y)]
        return cls(name, [x for x, _ in points], [y for _, y in points])


def curves(
    title: str, lines: Sequence[Series], *, x: str, y: str, percent: bool = False, whole: bool = True,
    floor: float | None = None, note: str = "",
) -> Iterator[Picture]:  # fmt: skip
    """Yields a line chart; nothing if no line, references aside, has more than one point.

    x, y: axis labels. percent: y values are shares. whole: x values are integers. floor: the lower limit of the y axis.
    """
    if all(len(line.x) < 2 or line.reference for line in lines):
        return
    # Colour 0, grey, is for baselines and series beyond the last colour.
    numbers = iter(range(1, _COLOURS + 1))
    coloured = [(line, 0 if line.reference else next(numbers, 0)) for line in lines if len(line.x)]

    def draw(axes: "Axes") -> None:
        has_dots = max(len(line.x) for line, _ in coloured) <= _FEW_POINTS
        for line, number in coloured:
            colour = _SERIES[number - 1] if number else _MUTED
            if line.band is not None:
                axes.fill_between(line.x, *line.band, color=colour, alpha=0.16, linewidth=0)
            if line.reference:
                axes.plot(line.x, line.y, color=colour, **_DASHED)
                continue
            # Neighbouring values are averaged if there are more than 240: equal groups, so that smoothing is even.
            size = max(1, -(-len(line.x) // _POINTS))
            averaged = (
                [np.mean(values[start : start + size]) for start in range(0, len(values), size)]
                for values in (line.x, line.y)
            )
            axes.plot(*averaged, color=colour, marker="o" * has_dots, markersize=4)

        # About 5 ticks. Integer values get ticks only at integers, perhaps a single one.
        fewest_ticks = 1 if whole else 2
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=whole, min_n_ticks=fewest_ticks))
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.set_ylim(bottom=floor)
        _label_axes(axes, x, y, percent=percent)

    # The title names a single line.
    legend = [(line.name, number, line.reference) for line, number in coloured] if len(coloured) > 1 else []
    yield Picture(title, _svg(title, draw, (x, y)), legend, note=note)


def scatter(title: str, xs: np.ndarray, ys: np.ndarray, *, x: str, y: str, note: str = "") -> Picture:
    """A scatter plot of finite (x, y) with a dashed diagonal. At most 1,000 evenly spaced rows are drawn."""
    shown = np.unique(np.linspace(0, len(xs) - 1, min(len(xs), _DOTS)).round().astype(int))
    ends = [float(min(xs.min(), ys.min())), float(max(xs.max(), ys.max()))]

    def draw(axes: "Axes") -> None:
        axes.plot(ends, ends, color=_MUTED, **_DASHED)
        size = 4 if len(shown) <= 200 else 2.5
        axes.plot(xs[shown], ys[shown], "o", color=_SERIES[0], markersize=size, alpha=0.45, markeredgewidth=0)
        axes.xaxis.set_major_locator(MaxNLocator(6))
        axes.yaxis.set_major_locator(MaxNLocator(5))
        _label_axes(axes, x, y)

    if len(shown) < len(xs):
        drawn = Message("{drawn:,} of {rows:,} rows are drawn.", drawn=len(shown), rows=len(xs))
        note = join_messages([note, drawn], " ")
    return Picture(title, _svg(title, draw, (x, y)), note=note)


def _label_axes(axes: "Axes", x: str, y: str, *, percent: bool = False) -> None:
    """Sets labels and tick formats: x below the axis, y above the upper left corner of the chart."""
    axes.set_xlabel(x)
    axes.set_title(y, loc="left", fontsize=10, color=_MUTED)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(_plain)
    axes.yaxis.set_major_formatter(_plain)
    if percent:
        axes.yaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))


def _plain(number: float, _position: float = 0) -> str:
    if number and abs(number) < 0.01:
        return f"{number:.1e}".replace(".0e", "e").replace("e-0", "e-")
    if abs(number) >= 100_000:
        return formatting.compact(number).replace("\u00a0", " ")
    return formatting.count(number) if number == round(number) or abs(number) >= 1000 else f"{number:.4g}"


def _svg(title: str, draw: Callable[["Axes"], None], labels: Sequence[str]) -> str:
    """The chart as one <svg> element, its ids unique among the charts of a page; without matplotlib, a note instead.

    labels: those of the axes. They are drawn in English, which every font has, and then replaced by translations.
    """
    if not find_spec("matplotlib"):
        needed = Message("This picture needs matplotlib: pip install 'korbert[pipeline]'")
        return f"<p>{in_language(needed)}</p>"
    with matplotlib.rc_context({"svg.hashsalt": str(title)}, fname=_STYLE):  # without the user's matplotlibrc
        figure = Figure()
        draw(figure.add_axes(_AXES))
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))

    # Remove what only a standalone file needs: namespaces, size, style, group ids, fonts.
    source = file.getvalue().replace(' xmlns="http://www.w3.org/2000/svg"', "").replace("xlink:href", "href")
    picture = ElementTree.fromstring(source)
    picture.attrib = {"viewBox": picture.attrib["viewBox"], "role": "img", "aria-label": in_language(title)}
    picture.remove(picture[0])
    for group in picture.iter("g"):
        group.attrib.pop("id", None)
    words = {str(label): in_language(label) for label in labels}
    for label in picture.iter("text"):
        label.text = words.get(label.text or "", label.text)
    svg = ElementTree.tostring(picture, "unicode").replace("font-family: 'DejaVu Sans'; ", "")
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, f"var(--{variable})")
    return svg
