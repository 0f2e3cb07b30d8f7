"""Pretraining: rows made from documents when they are read, and their losses. From shard to loss:

1. shards.py       documents as ids, memory-mapped, with the places where documents and sentences begin.
2. permutation.py  the order of the rows in an epoch, a function of seed and epoch.
3. pairs.py        a row's segments: A with the B that follows it, or with a B from another document (NSP).
4. masking.py      the pieces to predict, by whole morphemes or eojeol, and what replaces them (MLM).
5. batches.py      rows -> the flat micro-batches of a step; phases of several lengths; fixed batches for evaluation.
6. objective.py    a batch and a model -> the losses; held-out figures beside the unigram baseline.
7. vocabulary.py   scores of masked pieces over all entries of the vocabulary, or over a sample of them.

settings.py: settings of masking, pairs, and the vocabulary head.
"""

from typing import TYPE_CHECKING

from korbert._lazy import attach

if TYPE_CHECKING:
    from korbert.pretraining.batches import Phase, PretrainingRows, heldout_batches, in_phases
    from korbert.pretraining.masking import SpecialIds
    from korbert.pretraining.objective import PretrainingLoss, evaluate, pretraining_loss
    from korbert.pretraining.settings import HeadSettings, MaskingSettings, PairSettings
    from korbert.pretraining.shards import Shards

__all__ = [
    "HeadSettings",
    "MaskingSettings",
    "PairSettings",
    "Phase",
    "PretrainingLoss",
    "PretrainingRows",
    "Shards",
    "SpecialIds",
    "evaluate",
    "heldout_batches",
    "in_phases",
    "pretraining_loss",
]

__getattr__ = attach(
    __name__,
    {
        "HeadSettings": "settings",
        "MaskingSettings": "settings",
        "PairSettings": "settings",
        "Phase": "batches",
        "PretrainingLoss": "objective",
        "PretrainingRows": "batches",
        "Shards": "shards",
        "SpecialIds": "masking",
        "evaluate": "objective",
        "heldout_batches": "batches",
        "in_phases": "batches",
        "pretraining_loss": "objective",
    },
)
