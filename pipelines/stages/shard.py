"""shard: morphemes -> ids and boundaries, as memory-mapped Arrow streams."""

from pathlib import Path

from korbert.corpus.corpus_settings import ShardSettings
from korbert.corpus.shards import shard
from korbert.pipelines.artifacts import Runtime, StageCounts, StageInputs
from korbert.pipelines.stages.analyze import check_versions
from korbert.tokenization import Tokenizer


def run(settings: ShardSettings, inputs: StageInputs, output: Path, runtime: Runtime) -> StageCounts:
    """Writes train/part-*.arrow, heldout/part-*.arrow and pieces.parquet."""
    analyzed = inputs.artifacts["analyze"]
    tokenizer = inputs.artifacts["vocab"] / "tokenizer"
    check_versions(analyzed, Tokenizer.load(tokenizer).versions, f"is what {tokenizer} was made with")
    return dict(shard(analyzed / "morphemes", tokenizer, output, settings, workers=runtime.units))
