"""korquad: learn to find answers in texts, score on questions held back, leave something to hand in."""

from pathlib import Path

from korbert.tasks.korquad.settings import KorquadSettings
from pipelines.runtime import Runtime
from pipelines.stages import Counts, Inputs
from pipelines.tasks import KORQUAD

__all__ = ["run"]


def run(settings: KorquadSettings, inputs: Inputs, output: Path, runtime: Runtime) -> Counts:
    """Writes model/, metrics.jsonl, predictions.json, nbest.json, scores.json and submission/ (docs/formats.md)."""
    return KORQUAD.run(settings, inputs, output, runtime)
