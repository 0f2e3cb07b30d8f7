"""A page for people beside every artifact, and one for the whole recipe. Remaking them makes nothing stale.

A stage's module (clean.py, analyze.py, ...) offers two functions of an `Artifact`: `headlines`, the few figures that
stand on top and on the index, cheap to get; and `story`, the whole page as elements (elements.py). pictures.py draws,
page.py writes HTML, index_page.py writes the index.
"""

from typing import TYPE_CHECKING

from korbert._lazy import attach

if TYPE_CHECKING:
    from pipelines.reports.index_page import index
    from pipelines.reports.page import render

__all__ = ["index", "render"]

__getattr__ = attach(__name__, {"index": "index_page", "render": "page"})
