"""What a notebook shows, with the part of IPython that draws."""

import sys
from types import ModuleType, SimpleNamespace

import pytest

from korbert import notebook, progress
from korbert.progress import track


@pytest.fixture
def drawn(monkeypatch):
    """What a kernel has drawn, each in the place of the one before."""
    drawn = []

    def draw(shown, **how):
        drawn.append(shown["text/html"])
        return SimpleNamespace(update=draw)

    shell, display = ModuleType("IPython"), ModuleType("IPython.display")
    shell.get_ipython, display.display = lambda: SimpleNamespace(kernel=object()), draw
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return drawn


def test_progress_is_a_bar_that_moves_but_not_at_every_step(drawn, monkeypatch, caplog):
    seconds = iter([1.0, 1.1, 1.5])
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    with track("train", 400, "steps", done=100) as advance:
        advance(1, "loss <2.5>")
        advance(1)
        advance(1)
    assert drawn == [
        '<progress value="101" max="400"></progress> train: 101 of 400 steps, loss &lt;2.5&gt;',
        '<progress value="103" max="400"></progress> train: 103 of 400 steps, loss &lt;2.5&gt;',
        '<progress value="103" max="400"></progress> train: 103 of 400 steps, loss &lt;2.5&gt;',
    ]
    assert not caplog.messages
    with track("read", None):
        pass
    assert drawn[-1] == "<progress></progress> read: 0"


def test_a_shell_in_a_terminal_is_no_notebook(monkeypatch):
    shell = ModuleType("IPython")
    shell.get_ipython = lambda: SimpleNamespace()
    monkeypatch.setitem(sys.modules, "IPython", shell)
    assert not notebook.is_notebook()
    monkeypatch.delitem(sys.modules, "IPython")
    assert not notebook.is_notebook()


def test_a_table_escapes_what_it_shows():
    shown = notebook.as_html("<b>", {"can": ["fill", "embed\x1b"], "no": [], "size": 3})
    assert "<b>" not in shown
    assert "fill<br>embed\\x1b" in shown
    assert ">no<" not in shown
    assert ">3<" in shown
