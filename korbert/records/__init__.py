"""Files of records: `open_table("my.csv")`. Every command that reads a user's file reads it here.

1. `compression.py` opens and decompresses a file, `encodings.py` detects its encoding and turns it into UTF-8.
2. `lines.py` cuts it into lines, in bounded memory; `table.py` has the text and the table that formats work on.
3. `detection.py` detects the format of a file by extension or content, and opens it as a table:
   `delimited.py` (CSV, TSV), `jsons.py` (JSON lines, JSON), `arrow.py` (Parquet, Arrow, folders
   of `datasets`), `conll.py` (CoNLL, KLUE entities, CoNLL-U) and `excel.py`. A file that is neither text nor a table is
   refused. Tasks, corpus and commands all decide formats here.
4. `labelling_tools.py` gives the columns of labelling tools (Label Studio, Prodigy, brat, ..) their usual names.
5. `inputs.py` opens what a command is given: also a pipe, an address, and plain lines of text. `given.py` takes the
   rows that a caller of Python holds.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
