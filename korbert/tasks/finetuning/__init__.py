"""How an encoder learns a task: settings, epochs, what is trained of it, caches of pieces and vectors."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
