"""Artifacts: their records (store.py), state (pipeline.py), source files (sources.py), and the runs that make them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
