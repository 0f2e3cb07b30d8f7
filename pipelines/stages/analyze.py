"""analyze: documents -> sentences and morphemes, by Kiwi, once in the whole project."""

from pathlib import Path

from corpus.analyze import analyze
from corpus.settings import AnalyzeSettings
from pipelines.runtime import Runtime
from pipelines.stages import Counts, Inputs


def run(settings: AnalyzeSettings, inputs: Inputs, output: Path, runtime: Runtime) -> Counts:
    """Writes morphemes/part-*.parquet and, where Kiwi failed, failed/part-*.parquet."""
    documents = inputs.artifacts["clean"] / "documents"
    return dict(analyze(settings, documents, output, workers=runtime.workers))
