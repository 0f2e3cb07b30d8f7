"""The index of a recipe: its stages in order as boxes, each with its state and its main figures."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from korbert.errors import ArtifactError
from korbert.messages import Message
from korbert.pipelines.artifacts import PAGE, RECORD, Artifact, ShownFigure, Stage, drawing, formatting, read_json
from korbert.pipelines.reports.artifacts import TaskResult, figures_of, has_result, render, result_of, table, usage
from korbert.pipelines.reports.drawing import write
from korbert.pipelines.runs.pipeline import Pipeline
from korbert.pipelines.stages.table import STAGES, stage_named

_STATES = {
    "done": Message("done"),
    "stale": Message("stale"),
    "partial": Message("partial"),
    "broken": Message("broken"),
    "absent": Message("absent"),
}


@dataclass(frozen=True)
class Box:
    """A stage on the index.

    state: "done", "stale" (an input has changed), "partial", "broken" (unreadable) or "absent". why: the reason for
    the state. page: whether the stage has a page. result: that of a finished task.
    """

    stage: str
    state: str
    why: str = ""
    figures: Sequence[ShownFigure] = ()
    seconds: float | None = None
    page: bool = False
    result: TaskResult | None = None


def draw(pipeline: Pipeline, stage: Stage) -> None:
    """Writes the page of a finished artifact and, in a recipe, the index."""
    render(pipeline.artifact(stage.name))
    if pipeline.place is None:
        index(pipeline.folder, [stage.name for stage in pipeline.stages()])


def index(recipe_folder: Path, stages: Iterable[str]) -> Path:
    """Writes `index.html` into `artifacts/<recipe>/` and returns its path.

    stages: names of the recipe's stages, in order. Stages that have not run are shown too.
    """
    boxes = [box_of(recipe_folder, stage) for stage in stages]
    done = [box for box in boxes if box.state in ("done", "stale")]
    lede = Message("{done} of {stages} stages done.", done=len(done), stages=len(boxes))
    if seconds := [box.seconds for box in done if box.seconds is not None]:
        lede = Message(
            "{done} of {stages} stages done; their last runs took {duration} in total.",
            done=len(done), stages=len(boxes), duration=formatting.duration(sum(seconds)),
        )  # fmt: skip

    # Stages that no other stage reads are shown side by side at the end.
    input_stages = {name for stage in STAGES.values() for name in stage.reads}
    last = [box.stage for box in boxes if box.stage not in input_stages]
    has_preview = (recipe_folder / "preview.html").is_file()
    return write(
        recipe_folder / "index.html",
        "index.html",
        name=recipe_folder.resolve().name,
        boxes=boxes,
        states=_STATES,
        stage_named=stage_named,
        lede=lede,
        usage=usage({box.stage: recipe_folder / box.stage for box in done}),
        previewed=[stage.name for stage in STAGES.values() if stage.preview and has_preview],
        last=last,
        results=table([box.result for box in done if box.result is not None]),
        duration=formatting.duration,
    )


def box_of(recipe_folder: Path, stage: str) -> Box:
    folder = recipe_folder / stage
    if not (folder / RECORD).is_file():
        if (recipe_folder / f"{stage}.partial").is_dir():
            return Box(stage, "partial", Message("started, not finished"))
        return Box(stage, "absent", Message("not run yet"))
    try:
        artifact = Artifact.open(folder)
        with drawing(artifact):
            figures = figures_of(artifact)
            result = result_of(artifact) if has_result(stage) else None
            changed = [
                name
                for name, digest in artifact.record["inputs"]["artifacts"].items()
                if (read_json(recipe_folder / name / RECORD) or {}).get("digest") != digest
            ]
    except ArtifactError as error:
        return Box(stage, "broken", error.message)
    box = Box(stage, "done", "", figures, artifact.seconds, (folder / PAGE).is_file(), result)
    if changed:
        return replace(box, state="stale", why=Message("{names} changed since", names=", ".join(changed)))
    return box
