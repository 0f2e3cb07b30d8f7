"""Encoders that others compute, behind the interface of `Encoder`: `transformers` and ONNX Runtime."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
