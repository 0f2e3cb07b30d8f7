"""Rows of the readers -> clean documents, and dropped rows with a reason.

How a row passes through the three steps of `clean.py`:

1. Reading. A worker takes a chunk of a source. `screen` passes each of its rows through `normalize.py`,
   `personal.py` (masks), `filters.py` (on the arrays of `features.py`) and `contamination.py` (evaluation sets). The
   rows become a part in the scratch folder, with measures for the next step: signatures of `minhash.py`, n-grams of
   templates (`deduplication.py`), lines of `frequent_lines.py`, all made of the hashes of `hashing.py`.
2. Deduplication, `deduplication.py`. Over all parts at once: repeated ids, equal texts and near-duplicates
   (`duplicates.py`), templates, frequent lines.
3. Writing, `writing.py`. Each part of rows becomes a part of documents and a part of dropped rows.

`preview.py` screens a sample without writing anything.
"""
