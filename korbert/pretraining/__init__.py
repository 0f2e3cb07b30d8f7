"""Pretraining: rows made from documents when they are read, and their losses. From shard to loss:

1. shards.py       documents as ids, memory-mapped, with the places where documents and sentences begin.
2. mixing.py       the order of rows in an epoch, a function of seed and epoch; shares of the sources.
3. objectives/     the objectives, each with its part of a row, its loss and its held-out figures.
4. batches.py      rows -> the flat micro-batches of a step; phases of several lengths; fixed batches for evaluation.
5. samples.py      a few held-out rows with the model's predictions at each evaluation, for inspection.

objective_settings.py: settings of the objectives, and of the vocabulary head.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
