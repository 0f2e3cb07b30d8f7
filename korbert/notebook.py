"""What a notebook shows: tables of a model or a result."""

import html
import sys
from collections.abc import Mapping, Sequence

from korbert.system import printable


def as_html(title: str, facts: Mapping[str, object]) -> str:
    """A table of names and values below a title; a list gives a line for each of its values, an empty one no row."""
    rows = ""
    for name, value in facts.items():
        values = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        shown = "<br>".join(html.escape(printable(str(line))) for line in values)
        align = 'style="text-align: left"'
        rows += f"<tr><th {align}>{html.escape(name)}</th><td {align}>{shown}</td></tr>" if shown else ""
    return f"<table><caption>{html.escape(printable(title))}</caption>{rows}</table>"


def is_notebook() -> bool:
    """Whether a kernel of Jupyter runs this process; loads nothing."""
    shell = sys.modules.get("IPython")
    return shell is not None and hasattr(shell.get_ipython(), "kernel")
