"""Known data sets, as `../datasets.toml` lists them (table.py); loading.py gives their rows as tasks take them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
