"""Baselines without an encoder. Plain functions of lists and arrays.

1. features.py: TF-IDF of morphemes, of one text, or of two and their overlap.
2. tfidf.py: logistic regression and ridge on these features; the sentence of a context that is nearest to a question.

The most frequent answer and the dictionary of entities are found by the kinds themselves.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
