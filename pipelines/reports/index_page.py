"""The index of a recipe: its stages in order as boxes, each with its state and headline figures."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from korbert.errors import ArtifactError
from pipelines.artifacts.store import PAGE, RECORD
from pipelines.reports import formatting
from pipelines.reports.elements import Headline, Table
from pipelines.reports.modules import page_of
from pipelines.reports.page import write
from pipelines.reports.record import Artifact, drawing
from pipelines.reports.stage_page import usage
from pipelines.reports.task_scores import has_result, result_of, table
from pipelines.stages.table import STAGES, TASK, is_task, stage_named

__all__ = ["index"]

_HEADLINES = 4  # at the top of the page


@dataclass(frozen=True)
class Box:
    """A stage on the index.

    state: "done", "stale" (an input has changed), "partial", "broken" (unreadable), "absent" or "unused" (not in the
    recipe). words: the title of the stage. why: the reason for the state.
    """

    stage: str
    words: str
    state: str
    why: str = ""
    headlines: tuple[Headline, ...] = ()
    seconds: float | None = None
    report: bool = False

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
    boxes = [_box(recipe_folder, stage) for stage in names]
    done = [box for box in boxes if box.state in ("done", "stale")]
    boxes += [
        Box(stage, _title(stage), "unused", "not in the recipe", report=(recipe_folder / stage / PAGE).is_file())
        for stage in known
        if stage not in names and (recipe_folder / stage / RECORD).is_file()
    ]

    lede = f"{len(done)} of {len(names)} stages done"
    seconds = [box.seconds for box in done if box.seconds is not None]
    if seconds:
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
        results=_results(done),
        compared=_compared(recipe_folder, done),
    )


def _results(done: Sequence[Box]) -> list[Headline]:
    """Top of the page: the first headline of each finished stage, named in full, with its other headlines as a note."""
    results = []
    for box in done:
        entry = stage_named(box.stage)
        if box.headlines and entry is not None and entry.result:
            first, *others = box.headlines
            name = entry.result.replace("{}", first.label)
            notes = (first.note, *(f"{other.value} {other.label}" for other in others))
            results.append((box.stage, Headline(first.value, name, "; ".join(note for note in notes if note))))
    if len(results) > _HEADLINES:  # results of sections [tasks.NAME] are in the table below
        results = [result for result in results if not is_task(result[0])]
    return [headline for _, headline in results]


def _compared(recipe_folder: Path, done: Sequence[Box]) -> Table | None:
    """The table of finished tasks; None if there are none."""
    results = []
    for box in done:
        if has_result(box.stage):
            with contextlib.suppress(ArtifactError):  # its box shows the error
                artifact = Artifact.open(recipe_folder / box.stage)
                with drawing(artifact):
                    results.append(result_of(artifact))
    return table(results) if results else None


def _box(recipe_folder: Path, stage: str) -> Box:
    folder = recipe_folder / stage
    title = _title(stage)
    if not (folder / RECORD).is_file():
        if (recipe_folder / f"{stage}.partial").is_dir():
            return Box(stage, title, "partial", "started, not finished")
        return Box(stage, title, "absent", "not run yet")
    try:
        artifact = Artifact.open(folder)
        with drawing(artifact):
            headlines = page_of(stage).headlines(artifact)
            made_from = (artifact.record.get("inputs") or {}).get("artifacts") or {}
            changed = [name for name, digest in made_from.items() if _digest(recipe_folder / name) != digest]
    except ArtifactError as error:
        return Box(stage, title, "broken", str(error))
    state = "stale" if changed else "done"
    why = f"{', '.join(changed)} changed since" if changed else ""
    return Box(stage, title, state, why, headlines, artifact.seconds, (folder / PAGE).is_file())


def _title(stage: str) -> str:
    entry = stage_named(stage)
    return "" if entry is None else entry.title


def _digest(folder: Path) -> str | None:
    """The digest of an artifact; None if it cannot be read."""
    try:
        return str(Artifact.open(folder).record.get("digest"))
    except ArtifactError:
        return None
