"""Encoders that others compute, with the interface of `Encoder`: `transformers` and ONNX Runtime."""
