"""Charts take their colours from the page, draw no foreign text, and do not depend on this machine."""

import re

import matplotlib
import pytest

from korbert.pipelines.reports.drawing import Series
from korbert.pipelines.reports.drawing import curves as curves_of


def curves(title, lines, **options):
    """The only element that there is."""
    (element,) = curves_of(title, lines, **{"x": "x", "y": "y", **options})
    return element


def _curve():
    return curves("제목 <b>", [Series("위키", [1, 2, 3], [0.1, 0.5, 0.3])], x="step", y="nat")


def test_colours_and_fonts_are_those_of_the_page():
    svg = _curve().svg
    assert re.findall(r"#[0-9a-fA-F]{6}\b|font-family|<style", svg) == []
    assert all(words in svg for words in ("var(--c1)", "var(--muted)", "<text"))
    with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "path", "axes.grid": False}):
        assert _curve().svg == svg  # settings of the user are ignored


def test_names_are_in_the_legend_and_only_the_escaped_title_in_the_picture():
    picture = curves("제목 <b>", [Series("위키", [1, 2], [1, 2]), Series("후기", [1, 2], [2, 2], reference=True)])
    assert picture.legend == [("위키", 1, False), ("후기", 0, True)]
    assert "위키" not in picture.svg
    assert _curve().legend == []  # one line needs none
    assert 'aria-label="제목 &lt;b&gt;"' in picture.svg


@pytest.mark.parametrize("options", [{}, {"percent": True, "floor": 0}, {"whole": False}])
def test_lines_with_one_point_are_no_picture(options):
    level = Series("unigram", [1, 300], [7.25, 7.25], reference=True)
    unknown = Series.through("a", [1, 2], [None, float("nan")])
    for lines in (
        [],
        [Series("a", [300], [0.25]), Series("b", [1], [0.5]), Series("c", [], []), level],
        [unknown, level],
    ):
        assert list(curves_of("t", lines, x="x", y="y", **options)) == []
    assert curves("t", [Series("a", [1], [1]), Series("b", [1, 2], [1, 2])], **options).kind == "picture"


@pytest.mark.parametrize("steps", [[1, 2], [1, 2, 3], [0, 1], [40, 250]])
def test_ticks_of_steps_are_whole_numbers(steps):
    """Those on both axes: every text of the picture that is a number."""
    svg = curves("t", [Series("a", steps, [1000 * step for step in steps])]).svg
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    ticks = [float(text.replace(",", "")) for text in texts if re.fullmatch(r"[\d,.]+(e-?\d+)?", text)]
    assert ticks
    assert all(number == round(number) for number in ticks)


def test_many_points_are_averaged_in_equal_groups():
    steps = list(range(10_000))
    svg = curves("t", [Series("a", steps, [float(step % 2) for step in steps])]).svg
    assert len(svg) < 30_000
    assert len(svg) < len(curves("t", [Series("a", steps[:240], [0.0] * 240)]).svg) + 5000
