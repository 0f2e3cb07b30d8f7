"""Recipes: the TOML files that are shipped, and what reads (files.py, loading.py) and writes (template.py) them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
