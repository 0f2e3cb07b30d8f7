"""Charts with axes as SVG: drawn by matplotlib, then each colour is replaced by a CSS variable of the page.

The SVG text is limited to digits and our own English labels. Names from the data, which may be Korean, are legends in
HTML, so that no local font needs to have them.
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

__all__ = ["COLOURS", "Line", "columns", "curves", "groups", "lengths", "scatter", "shares"]

COLOURS = 5  # series colours in the style sheet

_POINTS = 240  # longer series are averaged: a phone has no more pixels
_DOTS = 1_000  # of a scatter plot
_FEW_POINTS = 12  # up to this many, each point gets a marker
_PLACE = (0.13, 0.18, 0.85, 0.71)  # of the axes in the picture; fixed, so that neighbouring charts line up
_WIDE_PLACE = (0.01, 0.18, 0.98, 0.8)  # without numbers on the y axis
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
    """A series of a line chart. reference: a baseline, drawn dashed in grey. band: the lower and upper ends of y."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    reference: bool = False
    band: tuple[Sequence[float], Sequence[float]] | None = None


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
    """A line chart, or a table if no line has more than one point.

    x, y: axis labels. percent: y values are shares. whole, whole_y: x and y are integers. floor: lower limit of y.
    """
    measured = [line for line in lines if not line.reference]
    if all(len(line.x) < 2 for line in measured):
        show = formatting.percent if percent else _figure
        rows = tuple((line.name, _figure(line.x[0]), show(line.y[0])) for line in measured if line.x)
        if len(measured) == 1:
            return Table(title, (x, y), tuple(row[1:] for row in rows), "rr", note)
        return Table(title, ("", x, y), rows, "lrr", note)

    # Colour 0, grey, is for baselines and series beyond the last colour.
    numbers = iter(range(1, COLOURS + 1))
    coloured = [(line, 0 if line.reference else next(numbers, 0)) for line in lines]

    def draw(axes: Axes) -> None:
        marker = "o" if max((len(line.x) for line in lines), default=0) <= _FEW_POINTS else None
        for line, number in coloured:
            colour = _SERIES[number - 1] if number else _MUTED
            if line.band is not None:
                axes.fill_between(line.x, *line.band, color=colour, alpha=0.16, linewidth=0)
            if line.reference:
                axes.plot(line.x, line.y, color=colour, linestyle=(0, (4, 3)), linewidth=1.4)
            else:
                axes.plot(*_averaged(line.x, line.y), color=colour, marker=marker, markersize=4)
        axes.set(xscale="log" if log_x else "linear", yscale="log" if log_y else "linear")
        if not log_x:
            axes.xaxis.set_major_locator(_locator(5, whole))
        if not log_y:
            axes.yaxis.set_major_locator(_locator(5, whole_y))
        if floor is not None:
            axes.set_ylim(bottom=floor)
        _label_axes(axes, x, y, percent=percent)

    legend = tuple((line.name, number, line.reference) for line, number in coloured)
    return Picture(title, _svg(title, draw), legend if len(lines) > 1 else (), note)


def _figure(number: float) -> str:
    return formatting.count(number) if abs(number) >= 1000 else _plain(number)


def _locator(number: int, whole: bool) -> MaxNLocator:
    """A locator of about `number` ticks. whole: only at integers, even if that leaves one."""
    return MaxNLocator(number, integer=True, min_n_ticks=1) if whole else MaxNLocator(number)


def lengths(title: str, series: Mapping[str, np.ndarray], *, x: str, note: str = "") -> Picture:
    """Histograms of lengths on a logarithmic axis, one outline for each of the first five series.

    series: name -> lengths, (N,) integers; zeros are left out. All outlines have the same area, so that series of
    different sizes are comparable; heights are densities over the logarithm and have no scale.
    """
    shown = {name: array[array > 0] for name, array in list(series.items())[:COLOURS]}
    shown = {name: array for name, array in shown.items() if array.size}

    # Whole-number edges 1, 2, 3, 4, 6, 8, 12, 16, ... beyond the longest: two per doubling.
    longest = max((int(array.max()) for array in shown.values()), default=1)
    bounds = [1, 2]
    while bounds[-1] <= longest:
        bounds.append(bounds[-1] * 3 // 2 if bounds[-1] & (bounds[-1] - 1) == 0 else bounds[-1] * 4 // 3)
    edges = np.array(bounds)

    # Empty bins before the shortest length are left out. Ticks: 1, 3, 10, 30, ..., or all edges if that gives only one.
    shortest = min((int(array.min()) for array in shown.values()), default=1)
    left, right = int(edges[edges <= max(shortest, 1)][-1]), int(edges[-1])
    ticks = [tick for power in range(12) for tick in (10**power, 3 * 10**power) if left <= tick <= right]
    if len(ticks) < 2:
        ticks = edges[edges >= left].tolist()

    def draw(axes: Axes) -> None:
        for array, colour in zip(shown.values(), _SERIES, strict=False):
            share = np.histogram(array, edges)[0] / array.size / np.diff(np.log2(edges))
            axes.stairs(share, edges, color=colour, fill=True, alpha=0.16)
            axes.stairs(share, edges, color=colour, linewidth=1.6)
        axes.set_xscale("log")
        axes.set_xlim(left, right)
        axes.xaxis.set_major_locator(FixedLocator(ticks))
        axes.yaxis.set_major_locator(NullLocator())
        _label_axes(axes, x, "", percent=False)

    legend = tuple((name, number, False) for number, name in enumerate(shown, start=1))
    return Picture(title, _svg(title, draw, _WIDE_PLACE), legend if len(legend) > 1 else (), note)


def shares(title: str, series: Mapping[str, np.ndarray], *, x: str, note: str = "") -> Picture:
    """Histograms of shares from 0 to 1, one outline of the same area for each of the first five series."""
    shown = {name: array for name, array in list(series.items())[:COLOURS] if array.size}
    edges = np.linspace(0, 1, 51)

    def draw(axes: Axes) -> None:
        for array, colour in zip(shown.values(), _SERIES, strict=False):
            share = np.histogram(array, edges)[0] / array.size
            axes.stairs(share, edges, color=colour, fill=True, alpha=0.16)
            axes.stairs(share, edges, color=colour, linewidth=1.6)
        axes.yaxis.set_major_locator(NullLocator())
        _label_axes(axes, x, "", percent=False)
        axes.xaxis.set_major_formatter(FuncFormatter(_tick(_share)))

    legend = tuple((name, number, False) for number, name in enumerate(shown, start=1))
    return Picture(title, _svg(title, draw, _WIDE_PLACE), legend if len(legend) > 1 else (), note)


def columns(title: str, heights: Sequence[float], *, x: str, y: str, first: int = 0, note: str = "") -> Picture:
    """A column chart over integers. heights[i] belongs to first + i."""

    def draw(axes: Axes) -> None:
        axes.bar(np.arange(first, first + len(heights)), heights, width=0.82, color=_SERIES[0])
        axes.yaxis.set_major_locator(_locator(4, whole=True))
        axes.xaxis.set_major_locator(_locator(8, whole=True))
        _label_axes(axes, x, y, percent=False)

    return Picture(title, _svg(title, draw), (), note)


def scatter(title: str, xs: np.ndarray, ys: np.ndarray, *, x: str, y: str, note: str = "") -> Picture:
    """A scatter plot of finite (x, y) with a dashed diagonal. At most 1,000 evenly spaced rows are drawn."""
    shown = np.unique(np.linspace(0, len(xs) - 1, min(len(xs), _DOTS)).round().astype(int))
    ends = [float(min(xs.min(), ys.min())), float(max(xs.max(), ys.max()))]

    def draw(axes: Axes) -> None:
        axes.plot(ends, ends, color=_MUTED, linestyle=(0, (4, 3)), linewidth=1.4)
        size = 4 if len(shown) <= 200 else 2.5
        axes.plot(xs[shown], ys[shown], "o", color=_SERIES[0], markersize=size, alpha=0.45, markeredgewidth=0)
        axes.xaxis.set_major_locator(MaxNLocator(6))
        axes.yaxis.set_major_locator(MaxNLocator(5))
        _label_axes(axes, x, y, percent=False)

    some = (
        f" {formatting.count(len(shown))} of {formatting.count(len(xs))} rows are drawn."
        if len(shown) < len(xs)
        else ""
    )
    return Picture(title, _svg(title, draw), (), f"{note}{some}")


def groups(title: str, points: np.ndarray, members: Sequence[int], *, note: str = "") -> Picture:
    """A scatter plot of (N, 2) points without axes, coloured by group; from the sixth group on grey."""
    numbers = np.asarray(members)

    def draw(axes: Axes) -> None:
        for number in np.unique(numbers)[::-1]:  # the first group on top
            colour = _SERIES[number] if number < COLOURS else _MUTED
            size = 4 if len(points) <= 300 else 2.5
            own = points[numbers == number]
            axes.plot(own[:, 0], own[:, 1], "o", color=colour, markersize=size, alpha=0.65, markeredgewidth=0)
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_axis_off()

    return Picture(title, _svg(title, draw, (0.01, 0.02, 0.98, 0.96)), (), note)


def _averaged(x: Sequence[float], y: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Averages groups of neighbouring points if there are more than 240."""
    xs, ys = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if len(xs) <= _POINTS:
        return xs, ys
    size = -(-len(xs) // _POINTS)  # equal groups, so that smoothing is even
    cuts = np.arange(size, len(xs), size)
    means = [np.array([group.mean() for group in np.split(values, cuts)]) for values in (xs, ys)]
    return means[0], means[1]


def _label_axes(axes: Axes, x: str, y: str, *, percent: bool) -> None:
    """Sets labels and tick formats: x below the axis, y above the upper left corner of the chart."""
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
    """The chart as one <svg> element, with ids that are unique among the charts of a page."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # ignore the user's matplotlibrc
        parameters: Any = matplotlib.rcParams  # typed for literal names only
        parameters.update(_STYLE | {"svg.hashsalt": title})
        figure = Figure(figsize=_SIZE_INCHES)
        draw(figure.add_axes(place))
        file = io.StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    svg = file.getvalue()

    # Remove what only a stand-alone file needs: prolog, metadata, style, size, fonts.
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"\s*<metadata>.*?</metadata>|\s*<defs>\s*<style.*?</style>\s*</defs>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' id="(?![mp][0-9a-f]{10}")[^"]*"', "", svg)  # keep markers and clip paths, whose ids are hashes
    svg = re.sub(r"font-family: [^;\"]*;? ?", "", svg)
    box = re.search(r'viewBox="([^"]*)"', svg)
    assert box, "matplotlib wrote no viewBox"
    svg = f'<svg viewBox="{box[1]}" role="img" aria-label="{html.escape(title)}">' + svg[svg.index(">") + 1 :]

    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    return re.sub(r"\n\s*", "\n", svg)
