"""KorQuAD 1.0, a reading task.

1. data.py: reads questions, contexts and gold answers of official files, and predictions.
2. metrics.py: the official scores of predictions.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
