"""One loop for all training: steps, schedule, checkpoints, metrics, devices."""

from typing import TYPE_CHECKING

from korbert._lazy import attach

if TYPE_CHECKING:
    from korbert.training.devices import autocast, choose_device, numerics
    from korbert.training.loop import Batch, FitResult, fit
    from korbert.training.plan import Checkpointing, TrainingOutput, TrainingPlan
    from korbert.training.settings import OptimizerSettings, PrecisionName

__all__ = [
    "Batch",
    "Checkpointing",
    "FitResult",
    "OptimizerSettings",
    "PrecisionName",
    "TrainingOutput",
    "TrainingPlan",
    "autocast",
    "choose_device",
    "fit",
    "numerics",
]

__getattr__ = attach(
    __name__,
    {
        "Batch": "loop",
        "Checkpointing": "plan",
        "FitResult": "loop",
        "OptimizerSettings": "settings",
        "PrecisionName": "settings",
        "TrainingOutput": "plan",
        "TrainingPlan": "plan",
        "autocast": "devices",
        "choose_device": "devices",
        "fit": "loop",
        "numerics": "devices",
    },
)
