"""From ids to vectors and scores.

1. config.py      the sizes of an encoder and its architecture, `bert` or `modern`.
2. embeddings.py  ids (B, T) -> vectors (B, T, D): pieces, positions, token types, boundaries.
3. attention.py   masks, rotary positions and self-attention, used by the layers of encoder.py.
4. encoder.py     all layers: (B, T, D) -> (B, T, D).
   adapters/      takes an encoder of `transformers` or of ONNX Runtime instead.
5. heads.py       vectors -> scores: vocabulary, next sentence, classifiers; weight initialization.
6. models.py      an encoder with its heads: pretraining, classification, .., tagging; or text embedding.
   model_base.py  what all models have in common.
   features.py    a head on layers of a frozen encoder; feature_settings.py configures it.
   linear.py      a linear model on words and on the vectors of a frozen encoder.
7. files/         saves and loads model folders, packs them, and begins a model from another one.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
