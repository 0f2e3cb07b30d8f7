"""Experiments on a task: searches over rates and seeds, frozen encoders and layers, and scores and their comparison."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
