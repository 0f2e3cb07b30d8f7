"""The module that draws the page of a stage."""

import pkgutil
from collections.abc import Sequence
from typing import Any

from pipelines.reports.elements import Headline, Story
from pipelines.reports.record import Artifact
from pipelines.stages.table import stage_named

__all__ = ["page_of"]


class _Plain:
    """The default page, for stages without their own module: only the record."""

    def headlines(self, artifact: Artifact) -> Sequence[Headline]:
        return ()

    def story(self, artifact: Artifact) -> Story:
        return Story("Run record", "This stage has no page of its own.", ())


def page_of(stage: str) -> Any:
    """The page module of a stage: `headlines(artifact)`, `story(artifact)` and, if the artifact can be used, `USE`."""
    entry = stage_named(stage)
    return pkgutil.resolve_name(entry.page) if entry is not None and entry.page else _Plain()
