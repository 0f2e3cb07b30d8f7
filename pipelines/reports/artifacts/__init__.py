"""The pages of artifacts: a module for each stage, and what all of them share (stage_page.py, task_scores.py)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
