"""clean: source files -> clean, deduplicated documents, and the dropped ones with their reasons."""

from pathlib import Path

from korbert.corpus.cleaning.clean import clean
from korbert.corpus.corpus_settings import CleanSettings
from korbert.pipelines.artifacts import Runtime, StageCounts, StageInputs


def run(settings: CleanSettings, inputs: StageInputs, output: Path, runtime: Runtime) -> StageCounts:
    """Writes documents/part-*.parquet and dropped/part-*.parquet."""
    return dict(clean(settings, inputs.files, output, workers=runtime.units))
