"""Corpus preparation: from raw text to training shards, gigabytes at a time.

How a document is processed:

1. `readers/`: source files of any kind become rows.
2. `cleaning/`: rows become documents, or dropped rows with a reason (the stage clean).
3. `analyze.py`: Kiwi splits documents into sentences and morphemes, in the columns of `morphemes.py` (analyze).
4. `counts.py`: morphemes are counted for the vocabulary, and its coverage of held-out documents is measured (vocab).
5. `shards.py`: morphemes become ids and boundaries in Arrow files for training (shard).

`corpus_settings.py` has the settings of all stages, `documents.py` held-out documents and sentences; `execution/` runs
the work in parts. `overlap.py` finds the texts of a task that the corpus contains. `questions/` makes questions with
answers from text, and `pairs.py` pairs of queries and passages.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
