"""Downstream tasks of a pretrained encoder: fill-mask, classification, reading comprehension; and their metrics.

Classification, from labelled texts to labels:

1. encoded.py: texts are analysed once and cached as pieces and morphemes.
2. examples.py: rows of pieces with labels, and the batch of each step.
3. learning.py: trains the model; best_epoch.py keeps the weights of the best epoch. vectors.py caches the
   vectors of a frozen encoder, for heads trained on them.
4. baselines/: scores to beat, on the same morphemes.
5. metrics/: scores; statistics.py: confidence intervals and tests; comparison.py: is one model better than another.

Reading comprehension, from questions on texts to answers:

1. question_rows.py: the right answers of rows.
2. passages.py: both as pieces with spans; encoded.py caches them.
3. windows.py: windows over long contexts, their batches and loss.
4. reading.py: merges the best spans of all windows into answers.
5. misses.py: error analysis.

The package tagging holds labels on characters, words and spans; its docstring lists its files.

embedding.py: text embeddings and their losses.

filling.py fills gaps and needs no training. The package korquad holds what is specific to that data set: its files and
official metrics: `from korbert.tasks import korquad`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
