"""The ground floor: what a stage is and how it runs (stage.py), artifacts and their records (store.py, record.py), and
how figures are named and written (figures.py, formatting.py). It knows no stage by name."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
