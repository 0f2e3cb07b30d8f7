"""Sections on predictions for the page of a task: a module for each kind, of the same name, with `sections`."""

import pkgutil
from collections.abc import Iterator
from importlib.util import find_spec

from korbert.pipelines.reports.drawing import Section
from korbert.pipelines.reports.kinds.common import ScoredRows
from korbert.system import JsonObject

__all__ = ["sections_of"]


def sections_of(scored: ScoredRows, details: JsonObject) -> Iterator[Section]:
    """The sections for a kind of task (korbert/tasks/kinds), if it has a module here. details: as in scores.json."""
    module = f"{__name__}.{scored.kind.name.replace('-', '_')}"
    if scored.rows and find_spec(module):
        yield from pkgutil.resolve_name(f"{module}:sections")(scored, details)
