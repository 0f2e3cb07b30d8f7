"""Training in many ways: rates and seeds (search.py), frozen encoders, layers; scores, and what is compared by them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
