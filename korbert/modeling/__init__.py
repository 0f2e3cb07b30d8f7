"""From ids to vectors and scores.

1. config.py      the sizes of an encoder and its architecture, `bert` or `modern`.
2. embeddings.py  ids (B, T) -> vectors (B, T, D): pieces, positions, token types, boundaries.
3. attention.py   masks, rotary positions and self-attention, used by the layers of encoder.py.
4. encoder.py     all layers: (B, T, D) -> (B, T, D).
   adapter.py     wraps an encoder of `transformers` instead; foreign.py reads its config.
5. heads.py       vectors -> scores: vocabulary, next sentence, classifiers; weight initialization.
6. models.py      an encoder with its heads: pretraining, classification, .., tagging; or text embedding.
   features.py    a head on layers of a frozen encoder; feature_settings.py configures it.
7. storage.py     saves and loads model folders, tokenizer included.
8. growing.py     initializes a model from such a folder, also for an extended tokenizer.
9. onnx_export.py exports the encoder of such a folder to ONNX; onnx_encoder.py runs it.
"""

from typing import TYPE_CHECKING

from korbert._lazy import attach

if TYPE_CHECKING:
    from korbert.modeling.adapter import TransformersEncoder
    from korbert.modeling.config import EncoderConfig, TransformersConfig
    from korbert.modeling.encoder import Encoder
    from korbert.modeling.feature_settings import FeatureSettings
    from korbert.modeling.features import FeatureModel
    from korbert.modeling.models import (
        ChoiceModel,
        ClassificationModel,
        DetectionModel,
        EmbeddingModel,
        EncoderModel,
        Model,
        Pooling,
        PretrainingModel,
        ProblemType,
        ReadingModel,
        SlotsModel,
        TaggingModel,
        init_encoder_from,
    )
    from korbert.modeling.storage import load_model, read_config, save_model

__all__ = [
    "ChoiceModel",
    "ClassificationModel",
    "DetectionModel",
    "EmbeddingModel",
    "Encoder",
    "EncoderConfig",
    "EncoderModel",
    "FeatureModel",
    "FeatureSettings",
    "Model",
    "Pooling",
    "PretrainingModel",
    "ProblemType",
    "ReadingModel",
    "SlotsModel",
    "TaggingModel",
    "TransformersConfig",
    "TransformersEncoder",
    "init_encoder_from",
    "load_model",
    "read_config",
    "save_model",
]

__getattr__ = attach(
    __name__,
    {
        "ChoiceModel": "models",
        "ClassificationModel": "models",
        "DetectionModel": "models",
        "EmbeddingModel": "models",
        "Encoder": "encoder",
        "EncoderConfig": "config",
        "EncoderModel": "models",
        "FeatureModel": "features",
        "FeatureSettings": "feature_settings",
        "Model": "models",
        "Pooling": "models",
        "PretrainingModel": "models",
        "ProblemType": "models",
        "ReadingModel": "models",
        "SlotsModel": "models",
        "TaggingModel": "models",
        "TransformersConfig": "config",
        "TransformersEncoder": "adapter",
        "load_model": "storage",
        "read_config": "storage",
        "save_model": "storage",
        "init_encoder_from": "models",
    },
)
