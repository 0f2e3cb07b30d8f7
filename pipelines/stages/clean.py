"""clean: source files -> clean, deduplicated documents, and the dropped ones with their reasons."""

from pathlib import Path

from korbert.corpus.cleaning.clean import clean
from korbert.corpus.corpus_settings import CleanSettings
from korbert.pipelines.artifacts.runtime import Runtime
from korbert.pipelines.artifacts.stage import Counts, Inputs


def run(settings: CleanSettings, inputs: Inputs, output: Path, runtime: Runtime) -> Counts:
    """Writes documents/part-*.parquet and dropped/part-*.parquet."""
    return dict(clean(settings, inputs.files, output, workers=runtime.units))
