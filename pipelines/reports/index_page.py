"""The index of a recipe: its stages as boxes, from raw text to scores, each with its state and headline figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from korbert.errors import ArtifactError
from pipelines.artifacts import PAGE, RECORD
from pipelines.reports import formatting
from pipelines.reports.elements import Headline
from pipelines.reports.page import page_of, write
from pipelines.reports.record import Artifact, drawing
from pipelines.reports.usage import usage
from pipelines.stages.table import STAGES

__all__ = ["index"]


@dataclass(frozen=True)
class Box:
    """One stage.

    state: "done", "stale" (made from what is no longer there), "partial", "broken", "absent" or "unused" (an artifact
    that is not in the recipe).
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

    stages: names of the recipe's stages, in order; None: all that there are. Stages that have not run are shown, too;
    artifacts of stages that are not in the recipe are shown in grey.
    """
    names, preview = tuple(STAGES if stages is None else stages), recipe_folder / "preview.html"
    boxes = [_box(recipe_folder, stage) for stage in names]
    done = [box for box in boxes if box.state in ("done", "stale")]
    boxes += [
        Box(stage, STAGES[stage].title, "unused", "not in the recipe", report=(recipe_folder / stage / PAGE).is_file())
        for stage in STAGES
        if stage not in names and (recipe_folder / stage / RECORD).is_file()
    ]
    read = {name for stage in STAGES.values() for name in stage.reads}
    last = [box.stage for box in boxes if box.stage not in read]  # these build on the same stages: side by side
    return write(
        recipe_folder / "index.html",
        "index.html",
        name=recipe_folder.resolve().name,
        boxes=boxes,
        lede=_lede(done, len(names)),
        usage=usage({box.stage: recipe_folder / box.stage for box in done}),
        previewed=[stage.name for stage in STAGES.values() if stage.preview and preview.is_file()],
        beside=last if len(last) > 1 else [],
        results=[_result(box, name) for box in done if box.headlines and (name := STAGES[box.stage].result)],
    )


def _lede(done: list[Box], number: int) -> str:
    text = f"{len(done)} of {number} stages {'is' if len(done) == 1 else 'are'} done"
    seconds = [box.seconds for box in done if box.seconds is not None]
    return f"{text}; their last runs took {formatting.duration(sum(seconds))} together." if seconds else f"{text}."


def _result(box: Box, name: str) -> Headline:
    """The first headline of a stage, named in full, with the others as its note."""
    first, *others = box.headlines
    notes = (first.note, *(f"{other.value} {other.label}" for other in others))
    return Headline(first.value, name, "; ".join(note for note in notes if note))


def _box(recipe_folder: Path, stage: str) -> Box:
    folder = recipe_folder / stage
    words = STAGES[stage].title if stage in STAGES else ""
    if not (folder / RECORD).is_file():
        under_way = (recipe_folder / f"{stage}.partial").is_dir()
        return Box(
            stage, words, "partial" if under_way else "absent", "begun, not finished" if under_way else "not made yet"
        )
    try:
        artifact = Artifact.open(folder)
        with drawing(artifact):
            headlines = page_of(stage).headlines(artifact)
            changed = _changed(recipe_folder, artifact)
    except ArtifactError as error:
        return Box(stage, words, "broken", str(error))
    why = f"{', '.join(changed)} changed since" if changed else ""
    return Box(
        stage,
        words,
        "stale" if changed else "done",
        why,
        headlines,
        artifact.seconds,
        (folder / PAGE).is_file(),
    )


def _changed(recipe_folder: Path, artifact: Artifact) -> list[str]:
    """Stages whose artifact is no longer the one that this artifact was made from."""
    made_from = (artifact.record.get("inputs") or {}).get("artifacts") or {}
    return [stage for stage, digest in made_from.items() if _digest(recipe_folder / stage) != digest]


def _digest(folder: Path) -> str | None:
    try:
        return str(Artifact.open(folder).record.get("digest"))
    except ArtifactError:
        return None
