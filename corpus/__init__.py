"""What happens to text before a model sees it, gigabytes at a time: clean, analyse, count, shard."""

from typing import TYPE_CHECKING

from korbert._lazy import attach

if TYPE_CHECKING:
    from corpus.analyze import analyze
    from corpus.clean import clean
    from corpus.counts import count, coverage, form_counts
    from corpus.documents import is_heldout
    from corpus.settings import AnalyzeSettings, CleanSettings, ShardSettings, SourceSettings, VocabSettings
    from corpus.shards import shard
    from corpus.workers import Workers

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
        "Workers": "workers",
        "analyze": "analyze",
        "clean": "clean",
        "count": "counts",
        "coverage": "counts",
        "form_counts": "counts",
        "is_heldout": "documents",
        "shard": "shards",
    },
)
