"""Search among texts: by BM25 of morphemes, by vectors of any model, or by both.

index.py is the interface, `Index`. database.py opens the SQLite file, and texts.py writes it. cutting.py cuts a long
text into passages, and owners.py knows which text a passage is of. words.py ranks by words, nearest.py by vectors;
hits.py has what a search returns, and the weights that join both rankings; filters.py has conditions on fields;
evaluation.py measures a search by queries with known answers.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
