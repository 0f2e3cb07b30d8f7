"""shard: morphemes -> ids and boundaries, as Arrow streams that are opened in place."""

from pathlib import Path

from corpus.shards import shard
from pipelines.recipes import ShardStage
from pipelines.runtime import Runtime
from pipelines.stages import Counts, Inputs


def run(settings: ShardStage, inputs: Inputs, output: Path, runtime: Runtime) -> Counts:
    """Writes train/part-*.arrow, heldout/part-*.arrow and pieces.parquet."""
    return dict(
        shard(
            inputs.artifacts["analyze"] / "morphemes",
            inputs.artifacts["vocab"] / "tokenizer",
            output,
            seed=settings.seed,
            heldout_share=settings.heldout_share,
            workers=runtime.units,
            settings=settings,
        )
    )
