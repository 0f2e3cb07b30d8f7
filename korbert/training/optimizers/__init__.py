"""Optimizers.

1. table.py     kind -> how it is built, and which parameters it can train. A new kind is a line there, a name in
                settings.py, a file here, as muon.py, and its tests.
2. groups.py    each parameter of a model -> kind, rate and decay, by the patterns of the recipe.
3. combined.py  `Optimizers`: all kinds of a run as one; rates by the schedule; state by parameter name.
"""

from korbert.training.optimizers.combined import Optimizers

__all__ = ["Optimizers"]
