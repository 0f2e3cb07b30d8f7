"""Baselines without an encoder. Plain functions of lists and arrays.

1. majority.py: the most frequent label, tag or place, or the mean score, for any text.
2. features.py: TF-IDF of morphemes, of one text, or of two and their overlap.
3. tfidf.py: logistic regression and ridge on these features.
4. sentences.py: the sentence of a context that is nearest to a question.
5. result.py: their common result.

For entities there is also the dictionary of ../tagging/dictionary.py.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
