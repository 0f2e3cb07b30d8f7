"""From ids to vectors and scores: encoders, the models on them, and the folders they are kept in."""

from typing import TYPE_CHECKING

from korbert._lazy import attach

if TYPE_CHECKING:
    from korbert.modeling.config import EncoderConfig
    from korbert.modeling.encoder import Encoder
    from korbert.modeling.models import (
        ClassificationModel,
        Model,
        Pooling,
        PretrainingModel,
        ReadingModel,
        init_encoder_from,
    )
    from korbert.modeling.storage import load_model, read_config, save_model

__all__ = [
    "ClassificationModel",
    "Encoder",
    "EncoderConfig",
    "Model",
    "Pooling",
    "PretrainingModel",
    "ReadingModel",
    "init_encoder_from",
    "load_model",
    "read_config",
    "save_model",
]

__getattr__ = attach(
    __name__,
    {
        "ClassificationModel": "models",
        "Encoder": "encoder",
        "EncoderConfig": "config",
        "Model": "models",
        "Pooling": "models",
        "PretrainingModel": "models",
        "ReadingModel": "models",
        "load_model": "storage",
        "read_config": "storage",
        "save_model": "storage",
        "init_encoder_from": "models",
    },
)
