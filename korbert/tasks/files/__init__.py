"""Labelled files as rows: `read_rows("my.csv", [ROLES["text"], ROLES["label"]], columns={"text": "문장"})`.

1. `korbert/records/` opens a file of any format as a table of records.
2. `columns.py` finds the columns of the roles (`roles.py`); `cells.py` parses their cells.
3. `rows.py` collects rows, places, and what was dropped.

A faulty record is dropped and counted by reason, with the first places; a faulty file is refused (CorpusError).

| input | result |
|---|---|
| missing file, folder not saved by `datasets`, several splits, unknown format | refused, with close matches |
| empty file; only a header or brackets; no usable row in any file | refused |
| missing or duplicate column; several candidate columns for a role | refused, listing the columns |
| UTF-16 without BOM or truncated; a truncated file (gz, Parquet, JSON list) | refused |
| undecodable bytes in a needed cell | dropped: `bad_ROLE` |
| the same in the header or in a cell that is not needed | ignored |
| a NUL byte or half a surrogate pair in a text | dropped: `bad_ROLE` |
| too few fields; too many, unless those beyond are empty | dropped: `bad_fields` (in CoNLL the sentence) |
| a quoted field that does not end, or continues after its quote | its line dropped: `bad_quotes` |
| a line of a table or of JSON lines longer than 1 MiB | dropped: `too_long` |
| a line of JSON lines that is not JSON; a record that is not an object | dropped: `bad_json` |
| an empty cell (white space, null, NaN) of a required role | dropped: `no_ROLE` |
| an empty cell of another role, or of answers; of labels, where there may be several | None; no label |
| `NA`, `null`, `None` as text | text |
| a number as text: whole; with a fraction, a truth value, a list | its digits; dropped: `bad_ROLE` |
| a number or a truth value as label | its name, as in CSV: 1, 2.5, True |
| labels, tags and columns in NFD | as those in NFC |
| a list of several labels where one is expected | refused |
| lists of 0 and 1 of one length, where there may be several labels | labels by position |
| another list that repeats a label | refused |
| columns of 0 and 1, where there may be several labels | labels by name of the column |
| a span that says its text, which is not at its place | moved as UTF-16 units or by one; dropped: `bad_spans` |
| a column of a usual name, with other cells than those of the role | no candidate, unless it is the only one |
| a cell that its role refuses; inconsistent values in a row | dropped: `bad_ROLE`; `bad_row` |
| a repeated id, in a column that the user named; in one that was detected | refused; ids are ignored, with a note |
| a label not seen in training | refused by `refuse_unseen_labels`, with the first place of each |
| blank lines, comments and -DOCSTART- in CoNLL, ranges and empty nodes in CoNLL-U | skipped |
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
