"""What happens to text before a model sees it, gigabytes at a time: clean, analyse, count, shard."""

from typing import TYPE_CHECKING

from korbert._lazy import attach

if TYPE_CHECKING:
    from corpus.analyze import analyze
    from corpus.cleaning.clean import clean
    from corpus.counts import count, coverage, form_counts
    from corpus.documents import is_heldout
    from corpus.execution.workers import Workers
    from corpus.settings import AnalyzeSettings, CleanSettings, ShardSettings, SourceSettings, VocabSettings
    from corpus.shards import shard

__all__ = [
    "AnalyzeSettings",
    "CleanSettings",
    "ShardSettings",
    "SourceSettings",
    "VocabSettings",
    "Workers",
    "analyze",
    "clean",
    "count",
    "coverage",
    "form_counts",
    "is_heldout",
    "shard",
]

__getattr__ = attach(
    __name__,
    {
        "AnalyzeSettings": "settings",
        "CleanSettings": "settings",
        "ShardSettings": "settings",
        "SourceSettings": "settings",
        "VocabSettings": "settings",
        "Workers": "execution.workers",
        "analyze": "analyze",
        "clean": "cleaning.clean",
        "count": "counts",
        "coverage": "counts",
        "form_counts": "counts",
        "is_heldout": "documents",
        "shard": "shards",
    },
)
