"""Pretraining: rows made from documents when they are read (MLM masks, NSP pairs), and their losses."""

from typing import TYPE_CHECKING

from korbert._lazy import attach

if TYPE_CHECKING:
    from korbert.pretraining.batches import Phase, PretrainingRows, heldout_batches, in_phases
    from korbert.pretraining.masking import SpecialIds
    from korbert.pretraining.objective import evaluate, pretraining_loss
    from korbert.pretraining.settings import MaskingSettings, PairSettings
    from korbert.pretraining.shards import Shards

__all__ = [
    "MaskingSettings",
    "PairSettings",
    "Phase",
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
        "MaskingSettings": "settings",
        "PairSettings": "settings",
        "Phase": "batches",
        "PretrainingRows": "batches",
        "Shards": "shards",
        "SpecialIds": "masking",
        "evaluate": "objective",
        "heldout_batches": "batches",
        "in_phases": "batches",
        "pretraining_loss": "objective",
    },
)
