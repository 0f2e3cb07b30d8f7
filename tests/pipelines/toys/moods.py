"""Sections [tasks.NAME] of two kinds, and the stage that runs them: it counts the lines of a file."""

import os

from pydantic import BaseModel, Field

from korbert.pipelines.artifacts.figures import ShownFigure
from korbert.pipelines.reports.drawing.elements import Story
from korbert.system.durable import write_json


class Rate(BaseModel, frozen=True, extra="forbid"):
    learning_rate: float = 1e-3


class Mood(BaseModel, frozen=True, extra="forbid"):
    kind: str = "mood"
    init: str = "pretrain"
    unseen: bool = False
    train: str
    epochs: int = Field(1, ge=1)
    max_length: int = 128
    optimizer: Rate = Rate()
    seeds: tuple[int, ...] = (0,)
    precision: str = "fp32"
    threads: int = 1

    def patterns(self):
        return {"train": self.train}


class Length(Mood, frozen=True, extra="forbid"):
    kind: str = "length"
    unit: str = "syllable"
    seed: int = 0


KINDS = {"mood": Mood, "length": Length}


def section_class(raw):
    if raw.get("kind") not in KINDS:
        raise ValueError(f"kind: {raw.get('kind')!r} is no kind (did you mean mood?)")
    return KINDS[raw["kind"]]


def run(settings, inputs, output, runtime):
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in inputs.files["train"])
    inputs.encoded.mkdir(parents=True, exist_ok=True)
    (inputs.encoded / "texts.json").write_text("{}", encoding="utf-8")
    if os.environ.get("DIES"):
        raise KeyboardInterrupt
    models = [
        {"name": "pretrained", "seeds": 3, "accuracy": {"mean": 0.8125, "deviation": 0.01}},
        {"name": "majority", "seeds": 1, "accuracy": {"mean": 0.5, "deviation": None}},
        {"name": "nothing", "seeds": 1, "accuracy": None},
    ]
    scores = {"metrics": ["accuracy"], "models": models}
    write_json(output / "scores.json", {**scores, "encoded": str(inputs.encoded), "read": sorted(inputs.artifacts)})
    return {"train": lines}


def figures(artifact):
    return (ShownFigure("81.2 %", "accuracy"), ShownFigure("3", "seeds"))


def story(artifact):
    return Story("Moods", "Guessed.", ())
