"""Writes pages: elements through jinja2 templates into one self-contained HTML file."""

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import jinja2
from markupsafe import Markup

from korbert.durable import write_whole
from korbert.terminal import printable
from pipelines.artifacts import PAGE
from pipelines.reports import analyze, clean, details, korquad, nsmc, pretrain, shard, vocab
from pipelines.reports.elements import Story
from pipelines.reports.record import Artifact, drawing
from pipelines.reports.usage import usage

__all__ = ["STAGES", "render", "write"]

STAGES: Mapping[str, ModuleType] = {
    "clean": clean,
    "analyze": analyze,
    "vocab": vocab,
    "shard": shard,
    "pretrain": pretrain,
    "nsmc": nsmc,
    "korquad": korquad,
}

_PLAIN = Story("What the record says", "This stage has no pictures of its own.", ())


def render(folder: Path) -> Path:
    """Writes `report.html` into a finished artifact's folder and returns its path.

    The same artifact (run.json included) gives the same bytes. Raises ArtifactError, naming the file, where the folder
    holds no finished artifact, one of its files cannot be read, or one lacks what the page shows.
    """
    artifact = Artifact.open(folder)
    module = STAGES.get(artifact.stage)
    whole = folder.resolve()
    with drawing(artifact):
        story = module.story(artifact) if module else _PLAIN
        headlines = module.headlines(artifact) if module else ()
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
