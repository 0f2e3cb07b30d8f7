"""korbert: a Korean BERT pipeline with morpheme tokenization. This package is its models: text in, answers out."""

from typing import TYPE_CHECKING

from korbert._lazy import attach

if TYPE_CHECKING:
    from korbert.loading import load

__all__ = ["__version__", "load"]

__version__ = "0.1.0"

__getattr__ = attach(__name__, {"load": "loading"})
