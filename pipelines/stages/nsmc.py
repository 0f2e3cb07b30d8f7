"""nsmc: a pretrained encoder learns to tell good reviews from bad, beside the same one untrained and a baseline."""

from pathlib import Path

from korbert.tasks.nsmc.settings import NsmcSettings
from pipelines.runtime import Runtime
from pipelines.stages import Counts, Inputs
from pipelines.tasks import NSMC

__all__ = ["run"]


def run(settings: NsmcSettings, inputs: Inputs, output: Path, runtime: Runtime) -> Counts:
    """Writes model/, scores.json, predictions.parquet and metrics/ (docs/formats.md)."""
    return NSMC.run(settings, inputs, output, runtime)
