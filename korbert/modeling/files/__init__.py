"""Model folders: saved and loaded (storage.py), packed (packing.py), grown into another model (growing.py)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
