"""What is shown of something long: a line now and then in a log, a bar on a terminal."""

import io
import logging
from types import SimpleNamespace

import pytest

from korbert import progress
from korbert.progress import track


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


@pytest.mark.parametrize(
    ("total", "said"), [(None, "2 rows"), (3, "2 of 3 rows, 10 s left"), (10_000, "2 of 10,000 rows, 27.8 h left")]
)
def test_a_line_without_figures(clock, caplog, total, said):
    with caplog.at_level(logging.INFO), track("read", total, "rows") as advance:
        clock.seconds += 20.0
        advance(2)
    assert caplog.messages == [f"read: {said}"]


def test_a_bar_shows_count_and_figures(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("COLUMNS", "160")
    with track("pretrain", 400, "steps", done=100) as advance:
        advance(1, "loss [7.21], 11,200 pieces/s")
        advance(1)
    said = terminal.getvalue().replace("\x1b[", "")
    assert "102/400" in said
    assert "loss [7.21], 11,200 pieces/s" in said
