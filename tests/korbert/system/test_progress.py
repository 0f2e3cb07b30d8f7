"""What is shown of something long: a line now and then in a log, a bar on a terminal and in a notebook."""

import io
import logging
import sys
from types import SimpleNamespace

import pytest

from korbert import notebook
from korbert.system import progress
from korbert.system.progress import track


@pytest.fixture
def clock(monkeypatch):
    """A clock that tests move."""
    clock = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock.seconds))
    return clock


def test_a_line_every_fifteen_seconds_with_figures_and_time_left(clock, caplog):
    with caplog.at_level(logging.INFO), track("pretrain", 1400, "steps", done=1000) as advance:
        for step in range(40):
            clock.seconds += 1.0
            advance(1, "loss 7.21, 11,200 pieces/s" if step == 9 else "")
    assert caplog.messages == [
        "pretrain: 1,015 of 1,400 steps, loss 7.21, 11,200 pieces/s, 6 min left",
        "pretrain: 1,030 of 1,400 steps, loss 7.21, 11,200 pieces/s, 6 min left",
    ]


def test_a_line_without_figures(clock, caplog):
    for total in (None, 3, 10_000):
        with caplog.at_level(logging.INFO), track("read", total, "rows") as advance:
            clock.seconds += 20.0
            advance(2)
    said = ["2 rows", "2 of 3 rows, 10 s left", "2 of 10,000 rows, 27.8 h left"]
    assert caplog.messages == [f"read: {one}" for one in said]


def test_a_bar_shows_count_and_figures(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("COLUMNS", "160")
    with track("pretrain", 400, "steps", done=100) as advance:
        advance(1, "loss [7.21], 11,200 pieces/s")
        advance(1)
    said = terminal.getvalue().replace("\x1b[", "")
    assert "102/400" in said
    assert "loss [7.21], 11,200 pieces/s" in said


def test_in_a_notebook_it_is_a_bar_with_count_and_figures(monkeypatch, capsys, caplog):
    monkeypatch.setattr(notebook, "is_notebook", lambda: True)
    with track("train", 400, "steps", done=100) as advance:
        advance(1, "loss <2.5>")
        advance(1)
    said = capsys.readouterr().err
    assert "train: " in said
    assert "102/400" in said
    assert "loss <2.5>" in said
    assert not caplog.messages
    with track("read", None):
        pass
    assert "read: 0 " in capsys.readouterr().err


def test_a_shell_in_a_terminal_is_no_notebook_and_a_table_escapes_what_it_shows(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=SimpleNamespace))
    assert not notebook.is_notebook()
    monkeypatch.delitem(sys.modules, "IPython")
    assert not notebook.is_notebook()
    shown = notebook.as_html("<b>", {"can": ["fill", "embed\x1b"], "no": [], "size": 3})
    assert "<b>" not in shown
    assert "fill<br>embed\\x1b" in shown
    assert ">no<" not in shown
    assert ">3<" in shown
