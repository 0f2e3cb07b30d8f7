"""Labelled files as rows: `read_rows("my.csv", [ROLES["text"], ROLES["label"]], columns={"text": "문장"})`.

1. `korbert/records/` opens a file of any format as a table of records.
2. `columns.py` finds the columns of the roles (`roles.py`); `cells.py` parses their cells.
3. `rows.py` collects rows, places, and what was dropped.

A faulty record is dropped and counted by reason, with the first places; a faulty file is refused (CorpusError): see
the table in docs/formats.md, "Rows of labelled files".
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
