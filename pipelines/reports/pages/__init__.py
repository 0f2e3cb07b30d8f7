"""Pages of commands: checks, comparisons, layers, noise, search, previews, and the index of a recipe."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
