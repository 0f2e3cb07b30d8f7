"""The index of a recipe: its stages in order as boxes, each with its state and its main figures."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from korbert.errors import ArtifactError
from pipelines.artifacts.store import PAGE, RECORD
from pipelines.reports import formatting
from pipelines.reports.elements import Table
from pipelines.reports.figures import Figure
from pipelines.reports.page import write
from pipelines.reports.record import Artifact, drawing
from pipelines.reports.stage_page import page_of, usage
from pipelines.reports.task_scores import has_result, result_of, table
from pipelines.stages.table import STAGES, TASK, is_task, stage_named

_RESULTS = 4  # at the top of the page


@dataclass(frozen=True)
class Box:
    """A stage on the index.

    state: "done", "stale" (an input has changed), "partial", "broken" (unreadable), "absent" or "unused" (not in the
    recipe). why: the reason for the state. page: whether there is one.
    """

    stage: str
    state: str
    why: str = ""
    figures: Sequence[Figure] = ()
    seconds: float | None = None
    page: bool = False

    @property
    def title(self) -> str:
        entry = stage_named(self.stage)
        return "" if entry is None else entry.title

    @property
    def took(self) -> str:
        return "" if self.seconds is None else formatting.duration(self.seconds)


def index(recipe_folder: Path, stages: Sequence[str] | None = None) -> Path:
    """Writes `index.html` into `artifacts/<recipe>/` and returns its path.

    stages: names of the recipe's stages, in order; None: all stages. Stages that have not run are shown too, artifacts
    of stages outside the recipe in grey.
    """
    tasks = sorted(path.name for path in recipe_folder.glob(f"{TASK}*") if is_task(path.name))
    known = (*STAGES, *tasks)
    names = known if stages is None else tuple(stages)
    boxes = [box_of(recipe_folder, stage) for stage in names]
    done = [box for box in boxes if box.state in ("done", "stale")]
    boxes += [
        Box(stage, "unused", "not in the recipe", page=(recipe_folder / stage / PAGE).is_file())
        for stage in known
        if stage not in names and (recipe_folder / stage / RECORD).is_file()
    ]
    lede = f"{len(done)} of {len(names)} stages done"
    if seconds := [box.seconds for box in done if box.seconds is not None]:
        lede += f"; their last runs took {formatting.duration(sum(seconds))} in total"

    # Stages that no other stage reads stand side by side at the end.
    read = {name for stage in STAGES.values() for name in stage.reads}
    last = [box.stage for box in boxes if box.stage not in read]
    preview = (recipe_folder / "preview.html").is_file()
    return write(
        recipe_folder / "index.html",
        "index.html",
        name=recipe_folder.resolve().name,
        boxes=boxes,
        lede=f"{lede}.",
        usage=usage({box.stage: recipe_folder / box.stage for box in done}),
        previewed=[stage.name for stage in STAGES.values() if stage.preview and preview],
        beside=last if len(last) > 1 else [],
        figures=main_results(done),
        compared=task_table(recipe_folder, done),
    )


def box_of(recipe_folder: Path, stage: str) -> Box:
    folder = recipe_folder / stage
    if not (folder / RECORD).is_file():
        started = (recipe_folder / f"{stage}.partial").is_dir()
        return Box(stage, "partial", "started, not finished") if started else Box(stage, "absent", "not run yet")
    try:
        artifact = Artifact.open(folder)
        with drawing(artifact):
            figures = page_of(stage).figures(artifact)
            made_from = (artifact.record.get("inputs") or {}).get("artifacts") or {}
            changed = [name for name, digest in made_from.items() if _digest(recipe_folder / name) != digest]
    except ArtifactError as error:
        return Box(stage, "broken", str(error))
    state, why = ("stale", f"{', '.join(changed)} changed since") if changed else ("done", "")
    return Box(stage, state, why, figures, artifact.seconds, (folder / PAGE).is_file())


def _digest(folder: Path) -> str | None:
    """The digest of an artifact; None if it cannot be read."""
    try:
        return str(Artifact.open(folder).record.get("digest"))
    except ArtifactError:
        return None


def main_results(done: Sequence[Box]) -> list[Figure]:
    """Top of the page: the first figure of each finished result, named in full, with its other figures as a note."""
    results = []
    for box in done:
        entry = stage_named(box.stage)
        if box.figures and entry is not None and entry.result is not None:
            first, *others = box.figures
            notes = (first.note, *(f"{other.value} {other.label}" for other in others))
            label = f"{entry.result} {first.label}".lstrip()
            results.append((box.stage, Figure(first.value, label, "; ".join(filter(None, notes)))))
    if len(results) > _RESULTS:  # results of sections [tasks.NAME] are in the table below
        results = [(stage, figure) for stage, figure in results if not is_task(stage)]
    return [figure for _, figure in results]


def task_table(recipe_folder: Path, done: Sequence[Box]) -> Table | None:
    """The table of finished tasks; None if there are none."""
    results = []
    for stage in (box.stage for box in done if has_result(box.stage)):
        with contextlib.suppress(ArtifactError):  # its box shows the error
            artifact = Artifact.open(recipe_folder / stage)
            with drawing(artifact):
                results.append(result_of(artifact))
    return table(results) if results else None
