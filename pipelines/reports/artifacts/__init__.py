"""Pages of artifacts: a module a stage, and what is the same for all (stage_page.py, task_scores.py)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
