"""The index of a recipe: its stages in order as boxes, each with its state and its main figures."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from korbert.errors import ArtifactError
from korbert.pipelines.artifacts.store import PAGE, RECORD, read_json
from korbert.pipelines.reports import formatting
from korbert.pipelines.reports.figures import Figure
from korbert.pipelines.reports.page import write
from korbert.pipelines.reports.record import Artifact, drawing
from korbert.pipelines.reports.stage_page import figures_of, usage
from korbert.pipelines.reports.task_scores import Result, has_result, result_of, table
from korbert.pipelines.stages.table import STAGES, stage_named


@dataclass(frozen=True)
class Box:
    """A stage on the index.

    state: "done", "stale" (an input has changed), "partial", "broken" (unreadable) or "absent". why: the reason for it.
    page: whether there is one. result: of a finished task.
    """

    stage: str
    state: str
    why: str = ""
    figures: Sequence[Figure] = ()
    seconds: float | None = None
    page: bool = False
    result: Result | None = None


def index(recipe_folder: Path, stages: Iterable[str]) -> Path:
    """Writes `index.html` into `artifacts/<recipe>/` and returns its path.

    stages: names of the recipe's stages, in order. Stages that have not run are shown too.
    """
    boxes = [box_of(recipe_folder, stage) for stage in stages]
    done = [box for box in boxes if box.state in ("done", "stale")]
    lede = f"{len(done)} of {len(boxes)} stages done"
    if seconds := [box.seconds for box in done if box.seconds is not None]:
        lede += f"; their last runs took {formatting.duration(sum(seconds))} in total"

    # Stages that no other stage reads stand side by side at the end.
    read = {name for stage in STAGES.values() for name in stage.reads}
    last = [box.stage for box in boxes if box.stage not in read]
    preview = (recipe_folder / "preview.html").is_file()
    results = [box.result for box in done if box.result is not None]
    return write(
        recipe_folder / "index.html",
        "index.html",
        name=recipe_folder.resolve().name,
        boxes=boxes,
        stage_named=stage_named,
        lede=f"{lede}.",
        usage=usage({box.stage: recipe_folder / box.stage for box in done}),
        previewed=[stage.name for stage in STAGES.values() if stage.preview and preview],
        beside=last if len(last) > 1 else [],
        results=table(results) if results else None,
        duration=formatting.duration,
    )


def box_of(recipe_folder: Path, stage: str) -> Box:
    folder = recipe_folder / stage
    if not (folder / RECORD).is_file():
        started = (recipe_folder / f"{stage}.partial").is_dir()
        return Box(stage, "partial", "started, not finished") if started else Box(stage, "absent", "not run yet")
    try:
        artifact = Artifact.open(folder)
        with drawing(artifact):
            figures = figures_of(artifact)
            result = result_of(artifact) if has_result(stage) else None
            made_from = artifact.record["inputs"]["artifacts"]
            digests = {name: (read_json(recipe_folder / name / RECORD) or {}).get("digest") for name in made_from}
            changed = [name for name, digest in made_from.items() if digests[name] != digest]
    except ArtifactError as error:
        return Box(stage, "broken", str(error))
    state, why = ("stale", f"{', '.join(changed)} changed since") if changed else ("done", "")
    return Box(stage, state, why, figures, artifact.seconds, (folder / PAGE).is_file(), result)
