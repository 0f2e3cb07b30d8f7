"""From ids to vectors and scores.

1. config.py      the sizes of an encoder and its architecture, `bert` or `modern`.
2. embeddings.py  ids (B, T) -> vectors (B, T, D): pieces, positions, token types, boundaries.
3. attention.py   masks, rotary positions and self-attention, used by the layers of encoder.py.
4. encoder.py     all layers: (B, T, D) -> (B, T, D).
   transformers_encoder.py  wraps an encoder of `transformers` instead; transformers_config.py converts its config.
5. heads.py       vectors -> scores: vocabulary, next sentence, classifiers; weight initialization.
6. models.py      an encoder with its heads: pretraining, classification, .., tagging; or text embedding.
   features.py    a head on layers of a frozen encoder; feature_settings.py configures it.
7. storage.py     saves and loads model folders, tokenizer included.
8. growing.py     initializes a model from such a folder, also for an extended tokenizer.
9. onnx_export.py exports the encoder of such a folder to ONNX; onnx_encoder.py runs it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
