"""Charts with axes, as SVG in the colours of the page: matplotlib draws, then each colour becomes a CSS variable.

Only digits and our own English words are drawn. Names of sources, reasons and rows, which may be Korean, are legends in
HTML, so no font on this machine has to know them.
"""

import html
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from pipelines.reports import formatting
from pipelines.reports.elements import Picture, Table

__all__ = ["COLOURS", "Line", "columns", "curves", "lengths", "shares"]

COLOURS = 5  # series colours that the page's style sheet has

_POINTS = 240  # more points than this are averaged: a phone has no more pixels
_FEW_POINTS = 12
_PLACE = (0.13, 0.18, 0.85, 0.71)  # of the axes in the picture: fixed, so that neighbours line up
_WIDE_PLACE = (0.01, 0.18, 0.98, 0.8)  # where y has no numbers
_SIZE_INCHES = (4.8, 2.7)
_INK, _MUTED, _RULE = "#0a0a01", "#0a0a02", "#0a0a03"
_SERIES = tuple(f"#0a0a1{number}" for number in range(1, COLOURS + 1))
_VARIABLES = {_INK: "--ink", _MUTED: "--muted", _RULE: "--rule"} | {
    colour: f"--c{number}" for number, colour in enumerate(_SERIES, start=1)
}
_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",  # comes with matplotlib, so the layout is the same everywhere
    "font.size": 10,
    "axes.edgecolor": _MUTED,
    "axes.labelcolor": _MUTED,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": _RULE,
    "grid.linewidth": 0.8,
    "xtick.color": _MUTED,
    "ytick.color": _MUTED,
    "ytick.major.size": 0,
    "lines.linewidth": 1.8,
}


@dataclass(frozen=True)
class Line:
    """A series of a line chart. reference: something to compare with, drawn dashed and in grey."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    reference: bool = False


def curves(
    title: str,
    lines: Sequence[Line],
    *,
    x: str,
    y: str,
    percent: bool = False,
    whole: bool = True,
    log_x: bool = False,
    log_y: bool = False,
    floor: float | None = None,
    whole_y: bool = False,
    note: str = "",
) -> Picture | Table:
    """Lines over a common axis, or a table where no line has more than one point.

    x, y: what the axes count. percent: y are shares. whole, whole_y: x and y are whole numbers. floor: where y begins.
    """
    own = [line for line in lines if not line.reference]
    if all(len(line.x) < 2 for line in own):
        return _points(title, own, x, y, percent, note)

    def draw(axes: Axes) -> None:
        few = max((len(line.x) for line in lines), default=0) <= _FEW_POINTS
        for line, colour in zip(lines, _colours(lines), strict=True):
            _draw_line(axes, line, _SERIES[colour - 1] if colour else _MUTED, few=few)
        axes.set(xscale="log" if log_x else "linear", yscale="log" if log_y else "linear")
        if not log_x:
            axes.xaxis.set_major_locator(_locator(5, whole))
        if not log_y:
            axes.yaxis.set_major_locator(_locator(5, whole_y))
        if floor is not None:
            axes.set_ylim(bottom=floor)
        _number(axes, x, y, percent=percent)

    legend = tuple((line.name, colour, line.reference) for line, colour in zip(lines, _colours(lines), strict=True))
    return Picture(title, _svg(title, draw), legend if len(lines) > 1 else (), note)


def _points(title: str, lines: Sequence[Line], x: str, y: str, percent: bool, note: str) -> Table:
    shown = [line for line in lines if line.x]
    show = formatting.percent if percent else _figure
    rows = tuple((line.name, _figure(line.x[0]), show(line.y[0])) for line in shown)
    if len(lines) == 1:
        return Table(title, (x, y), tuple(row[1:] for row in rows), "rr", note)
    return Table(title, ("", x, y), rows, "lrr", note)


def _figure(number: float) -> str:
    return formatting.count(number) if abs(number) >= 1000 else _plain(number)


def _locator(number: int, whole: bool) -> MaxNLocator:
    """About so many ticks. whole: at whole numbers alone, even if that leaves one."""
    return MaxNLocator(number, integer=True, min_n_ticks=1) if whole else MaxNLocator(number)


def lengths(title: str, series: Mapping[str, np.ndarray], *, x: str, note: str = "") -> Picture:
    """How long things are, on a logarithmic axis, one outline for each of the (first five) series.

    series: name -> lengths, (N,) integers; zeros are left out. The area is the share of a series, so that sources of
    different size can be compared and bins of different width are fair; the height has no scale.
    """
    shown = {name: array[array > 0] for name, array in list(series.items())[:COLOURS]}
    shown = {name: array for name, array in shown.items() if array.size}
    edges = _doublings(max((int(array.max()) for array in shown.values()), default=1))

    def draw(axes: Axes) -> None:
        for array, colour in zip(shown.values(), _SERIES, strict=False):
            share = np.histogram(array, edges)[0] / array.size / np.diff(np.log2(edges))
            axes.stairs(share, edges, color=colour, fill=True, alpha=0.16)
            axes.stairs(share, edges, color=colour, linewidth=1.6)
        axes.set_xscale("log")
        _trim(axes, list(shown.values()), edges)
        axes.yaxis.set_major_locator(NullLocator())
        _number(axes, x, "", percent=False)

    legend = tuple((name, number, False) for number, name in enumerate(shown, start=1))
    return Picture(title, _svg(title, draw, _WIDE_PLACE), legend if len(legend) > 1 else (), note)


def shares(title: str, series: Mapping[str, np.ndarray], *, x: str, note: str = "") -> Picture:
    """How shares, from 0 to 1, are spread: one outline for each of the (first five) series, all of the same area."""
    shown = {name: array for name, array in list(series.items())[:COLOURS] if array.size}
    edges = np.linspace(0, 1, 51)

    def draw(axes: Axes) -> None:
        for array, colour in zip(shown.values(), _SERIES, strict=False):
            share = np.histogram(array, edges)[0] / array.size
            axes.stairs(share, edges, color=colour, fill=True, alpha=0.16)
            axes.stairs(share, edges, color=colour, linewidth=1.6)
        axes.yaxis.set_major_locator(NullLocator())
        _number(axes, x, "", percent=False)
        axes.xaxis.set_major_formatter(FuncFormatter(_tick(_share)))

    legend = tuple((name, number, False) for number, name in enumerate(shown, start=1))
    return Picture(title, _svg(title, draw, _WIDE_PLACE), legend if len(legend) > 1 else (), note)


def columns(title: str, heights: Sequence[float], *, x: str, y: str, first: int = 0, note: str = "") -> Picture:
    """Columns over whole numbers. heights[i] belongs to the number first + i."""

    def draw(axes: Axes) -> None:
        axes.bar(np.arange(first, first + len(heights)), heights, width=0.82, color=_SERIES[0])
        axes.yaxis.set_major_locator(_locator(4, whole=True))
        axes.xaxis.set_major_locator(_locator(8, whole=True))
        _number(axes, x, y, percent=False)

    return Picture(title, _svg(title, draw), (), note)


def _draw_line(axes: Axes, line: Line, colour: str, *, few: bool) -> None:
    """few: so few points that each is marked."""
    if line.reference:
        axes.plot(line.x, line.y, color=colour, linestyle=(0, (4, 3)), linewidth=1.4)
        return
    across, up = _thinned(line.x, line.y)
    axes.plot(across, up, color=colour, marker="o" if few else None, markersize=4)


def _thinned(x: Sequence[float], y: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Means over neighbouring points where there are too many to be seen."""
    across, up = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if len(across) <= _POINTS:
        return across, up
    size = -(-len(across) // _POINTS)  # all groups alike, or the line would be calmer in one half than in the other
    cuts = np.arange(size, len(across), size)
    means = [np.array([group.mean() for group in np.split(values, cuts)]) for values in (across, up)]
    return means[0], means[1]


def _colours(lines: Sequence[Line]) -> list[int]:
    """A colour number for each line; 0, grey, for those to compare with and those beyond the last colour."""
    numbers = iter(range(1, COLOURS + 1))
    return [0 if line.reference else next(numbers, 0) for line in lines]


def _doublings(highest: int) -> np.ndarray:
    """Whole edges 1, 2, 3, 4, 6, 8, 12, 16, ... beyond the highest length: two to a doubling."""
    edges = [1, 2]
    while edges[-1] <= highest:
        edges.append(edges[-1] * 3 // 2 if edges[-1] & (edges[-1] - 1) == 0 else edges[-1] * 4 // 3)
    return np.array(edges)


def _trim(axes: Axes, arrays: list[np.ndarray], edges: np.ndarray) -> None:
    """Leaves out the empty bins before the shortest length. Ticks: 1, 3, 10, 30, ..., or all edges if few are left."""
    lowest = min((int(array.min()) for array in arrays), default=1)
    left, right = int(edges[edges <= max(lowest, 1)][-1]), int(edges[-1])
    ticks = [tick for power in range(12) for tick in (10**power, 3 * 10**power) if left <= tick <= right]
    axes.set_xlim(left, right)
    axes.xaxis.set_major_locator(FixedLocator(ticks if len(ticks) > 1 else edges[edges >= left].tolist()))


def _number(axes: Axes, x: str, y: str, *, percent: bool) -> None:
    """Labels and ticks: what is counted along x below the axis, y above the chart's upper left corner."""
    axes.set_xlabel(x)
    axes.set_title(y, loc="left", fontsize=10, color=_MUTED)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(_tick(_plain)))
    axes.yaxis.set_major_formatter(FuncFormatter(_tick(_share if percent else _plain)))


def _tick(text: Callable[[float], str]) -> Callable[[float, int | None], str]:
    return lambda number, _position: text(number).replace("\u00a0", " ")


def _share(share: float) -> str:
    return f"{100 * share:.4g} %"


def _plain(number: float) -> str:
    if number and abs(number) < 0.01:
        return f"{number:.1e}".replace(".0e", "e").replace("e-0", "e-")
    if abs(number) >= 100_000:
        return formatting.compact(number)
    return formatting.count(number) if number == round(number) else f"{number:.4g}"


def _svg(title: str, draw: Callable[[Axes], None], place: tuple[float, float, float, float] = _PLACE) -> str:
    """The chart as one <svg> element whose ids are its own among the charts of a page."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # whatever the user's matplotlibrc says
        parameters: Any = matplotlib.rcParams  # its type knows the names, and would have _STYLE spell them out
        parameters.update(_STYLE | {"svg.hashsalt": title})
        figure = Figure(figsize=_SIZE_INCHES)
        draw(figure.add_axes(place))
        file = io.StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    return _for_page(file.getvalue(), title)


def _for_page(svg: str, title: str) -> str:
    """Takes off what a file of its own needs (prolog, metadata, style, size, fonts); colours become variables."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"\s*<metadata>.*?</metadata>|\s*<defs>\s*<style.*?</style>\s*</defs>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' id="(?![mp][0-9a-f]{10}")[^"]*"', "", svg)  # left: markers and clip paths, whose names are hashes
    svg = re.sub(r"font-family: [^;\"]*;? ?", "", svg)
    box = re.search(r'viewBox="([^"]*)"', svg)
    assert box, "matplotlib wrote no viewBox"
    svg = f'<svg viewBox="{box[1]}" role="img" aria-label="{html.escape(title)}">' + svg[svg.index(">") + 1 :]
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    return re.sub(r"\n\s*", "\n", svg)
