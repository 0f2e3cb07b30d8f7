"""Renders pages: elements through jinja2 templates into one self-contained HTML file."""

from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from korbert.durable import check_output, write_whole
from korbert.terminal import printable
from pipelines.artifacts.store import PAGE
from pipelines.inference.outputs import is_page
from pipelines.reports import provenance
from pipelines.reports.modules import page_of
from pipelines.reports.record import Artifact, drawing
from pipelines.reports.stage_page import usage

__all__ = ["filled", "render", "write"]


def render(folder: Path) -> Path:
    """Writes `report.html` into a finished artifact's folder and returns its path.

    The same artifact (run.json included) gives the same bytes. Raises ArtifactError, naming the file, if the folder
    holds no finished artifact, or if a file is unreadable or incomplete.
    """
    artifact = Artifact.open(folder)
    module = page_of(artifact.stage)
    resolved = folder.resolve()
    with drawing(artifact):
        story, headlines = module.story(artifact), module.headlines(artifact)
        # A figure in the title is not repeated as a headline. A no-break space keeps "92.4 %" one word.
        in_title = [word.rstrip(",") for word in story.title.split(" ")]
        return write(
            folder / PAGE,
            "report.html",
            # Inside the folder, a half-written page would count as output.
            aside=resolved.with_name(f".korbert-{resolved.name}.{PAGE}.tmp"),
            artifact=artifact,
            indexed=resolved.name == artifact.stage,  # else the artifact lies outside a recipe
            headlines=[headline for headline in headlines if headline.value not in in_title],
            story=story,
            usage=usage({artifact.stage: folder}),
            facts=provenance.facts(artifact),
            origins=provenance.origins(artifact),
        )


def write(path: Path, template: str, *, aside: Path | None = None, **values: Any) -> Path:
    """Fills a template and writes the page atomically. Returns its path.

    aside: the temporary file of a page in an artifact; None: a page elsewhere, which only replaces a page.
    """
    if aside is None:
        path.parent.mkdir(parents=True, exist_ok=True)
        check_output(path, is_ours=is_page)
    write_whole(path, filled(template, **values).encode("utf-8", "backslashreplace"), aside=aside)
    return path


def filled(template: str, **values: Any) -> str:
    """Fills a template and returns the text of the page.

    Control and invisible characters, bidi marks included, and lone surrogates are shown as escapes.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("pipelines.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=lambda value: printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value,
    )
    return environment.get_template(template).render(**values)
