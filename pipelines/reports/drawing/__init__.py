"""What pages are made of: elements, tables of distributions, examples of texts, charts; page.py fills the templates."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
