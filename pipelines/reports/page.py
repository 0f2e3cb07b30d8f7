"""Writes pages: blocks through jinja2 templates into one self-contained HTML file."""

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import jinja2

from pipelines.reports import analyze, clean, korquad, nsmc, particulars, pretrain, shard, vocab
from pipelines.reports.blocks import Story
from pipelines.reports.record import Artifact

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
    holds no finished artifact or one of its files cannot be read.
    """
    artifact = Artifact.open(folder)
    module = STAGES.get(artifact.stage)
    story = module.story(artifact) if module else _PLAIN
    return write(
        folder / "report.html",
        "report.html",
        artifact=artifact,
        headlines=module.headlines(artifact) if module else (),
        story=story,
        facts=particulars.facts(artifact),
        origins=particulars.origins(artifact),
    )


def write(path: Path, template: str, **values: Any) -> Path:
    """Fills a template and puts the page in place at once, so that nobody ever sees half a page."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pipelines.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    aside = path.with_name(f"{path.name}.tmp")
    aside.write_text(environment.get_template(template).render(**values), encoding="utf-8", newline="\n")
    return aside.replace(path)
