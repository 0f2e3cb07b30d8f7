"""To and from `transformers`."""

from typing import TYPE_CHECKING

from korbert._lazy import attach

if TYPE_CHECKING:
    from korbert.huggingface.exporting import export
    from korbert.huggingface.loading import load_transformers

__all__ = ["export", "load_transformers"]

__getattr__ = attach(__name__, {"export": "exporting", "load_transformers": "loading"})
