"""Writes pages: elements through jinja2 templates into one self-contained HTML file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from korbert.durable import write_whole
from korbert.terminal import printable
from pipelines.artifacts import PAGE
from pipelines.reports import details
from pipelines.reports.elements import Headline, Story
from pipelines.reports.record import Artifact, drawing
from pipelines.reports.usage import usage
from pipelines.stages import imported
from pipelines.stages.table import STAGES

__all__ = ["page_of", "render", "write"]


@dataclass(frozen=True)
class _Plain:
    """The page of a stage that has no module of its own."""

    def headlines(self, artifact: Artifact) -> Sequence[Headline]:
        return ()

    def story(self, artifact: Artifact) -> Story:
        return Story("What the record says", "This stage has no pictures of its own.", ())


def page_of(stage: str) -> Any:
    """What draws the stage's page: `headlines(artifact)` and `story(artifact)`."""
    return imported(STAGES[stage].page) if stage in STAGES and STAGES[stage].page else _Plain()


def render(folder: Path) -> Path:
    """Writes `report.html` into a finished artifact's folder and returns its path.

    The same artifact (run.json included) gives the same bytes. Raises ArtifactError, naming the file, where the folder
    holds no finished artifact, one of its files cannot be read, or one lacks what the page shows.
    """
    artifact = Artifact.open(folder)
    module = page_of(artifact.stage)
    whole = folder.resolve()
    with drawing(artifact):
        story, headlines = module.story(artifact), module.headlines(artifact)
        said = [word.rstrip(",") for word in story.title.split(" ")]  # a unit is joined by another kind of space
        return write(
            folder / PAGE,
            "report.html",
            aside=whole.with_name(
                f".{whole.name}.{PAGE}.tmp"
            ),  # half a page in the folder would be part of the artifact
            artifact=artifact,
            headlines=[headline for headline in headlines if headline.value not in said],
            story=story,
            usage=usage({artifact.stage: folder}),
            facts=details.facts(artifact),
            origins=details.origins(artifact),
        )


def write(path: Path, template: str, *, aside: Path | None = None, **values: Any) -> Path:
    """Fills a template and puts the page in place at once, so that nobody ever sees half a page. Returns the path.

    Control and invisible characters, bidi marks among them, and halves of surrogate pairs are shown as their escapes.
    aside: where the half-written page lies; None: beside it.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pipelines.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_visible,
    )
    page = environment.get_template(template).render(**values)
    write_whole(path, page.encode("utf-8", "backslashreplace"), aside=aside)
    return path


def _visible(value: Any) -> Any:
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
