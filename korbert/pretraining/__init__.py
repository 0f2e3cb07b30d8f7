"""Pretraining: rows made from documents when they are read, and their losses. From shard to loss:

1. shards.py       documents as ids, memory-mapped, with the places where documents and sentences begin.
2. permutation.py  the order of rows in an epoch, a function of seed and epoch; mixing.py: shares of the sources.
3. objectives/     the objectives, each with its part of a row, its loss and its held-out figures.
4. batches.py      rows -> the flat micro-batches of a step; phases of several lengths; fixed batches for evaluation.
5. samples.py      a few held-out rows with the model's predictions at each evaluation, for inspection.

settings.py: settings of the objectives, and of the vocabulary head.
"""

from typing import TYPE_CHECKING

from korbert._lazy import attach

if TYPE_CHECKING:
    from korbert.pretraining.batches import Phase, PretrainingRows, heldout_batches, heldout_rows, in_phases
    from korbert.pretraining.objectives.losses import PretrainingLoss, evaluate, pretraining_loss
    from korbert.pretraining.objectives.masking import SpecialIds
    from korbert.pretraining.samples import Samples, choose_samples
    from korbert.pretraining.settings import HeadSettings, MaskingSettings, PairSettings
    from korbert.pretraining.shards import Shards

__all__ = [
    "HeadSettings",
    "MaskingSettings",
    "PairSettings",
    "Phase",
    "PretrainingLoss",
    "PretrainingRows",
    "Samples",
    "Shards",
    "SpecialIds",
    "choose_samples",
    "evaluate",
    "heldout_batches",
    "heldout_rows",
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
        "PretrainingLoss": "objectives.losses",
        "PretrainingRows": "batches",
        "Samples": "samples",
        "Shards": "shards",
        "SpecialIds": "objectives.masking",
        "choose_samples": "samples",
        "evaluate": "objectives.losses",
        "heldout_batches": "batches",
        "heldout_rows": "batches",
        "in_phases": "batches",
        "pretraining_loss": "objectives.losses",
    },
)
