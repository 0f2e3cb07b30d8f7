"""Runs of a recipe: source files (sources.py), the state of artifacts (pipeline.py), and making them (runner.py)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
