"""How an encoder learns a task: settings, epochs, which of its weights are trained, caches of pieces and vectors."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
