"""Corpus preparation: from raw text to training shards, gigabytes at a time.

How a document is processed:

1. `readers/`: source files of any kind become rows.
2. `cleaning/`: rows become documents, or dropped rows with a reason (the stage clean).
3. `analyze.py`: Kiwi splits documents into sentences and morphemes, in the columns of `morphemes.py` (analyze).
4. `counts.py`: morphemes are counted for the vocabulary, and its coverage of held-out documents is measured (vocab).
5. `shards.py`: morphemes become ids and boundaries in Arrow files for training (shard).

`settings.py` holds the settings of all stages, `documents.py` ids and the rule of held-out documents, `execution/` runs
the work in parts. `overlap.py` finds the texts of a task that the corpus contains. `questions/` makes questions with
answers from text.
"""

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
