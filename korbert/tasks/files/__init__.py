"""Labelled files of any kind as rows: `read_rows("my.csv", [ROLES["text"], ROLES["label"]], columns={"text": "문장"})`.

1. `forms.py` finds the format of a file (`form.py`), by its ending or its content, and opens it as a table.
2. `delimited.py` (CSV, TSV), `jsons.py` (JSON lines, JSON), `arrow.py` (Parquet, Arrow, folders of `datasets`) and
   `tagged.py` (CoNLL, KLUE's entities, CoNLL-U) read the records of a table, as `table.py` describes it. Files of text
   may be compressed (gz, bz2, xz, zst) and in UTF-8, UTF-16 with its mark or CP949.
3. `columns.py` finds the columns of the roles (`roles.py`); `cells.py` makes values of their cells.
4. `rows.py` collects rows, places, and what was dropped.

A fault of a record drops it, counted by reason with the first places; a fault of a file refuses it (CorpusError).

| what is there | what is done |
|---|---|
| missing file, folder that `datasets` did not save, several splits, unknown format | refused, naming what is near |
| empty file; a header or brackets alone; no usable row in all files | refused |
| a column that is not there, twice there; a role that several columns may hold | refused, listing the columns |
| UTF-16 without its mark or cut off; a file cut off (gz, Parquet, JSON list) | refused |
| bytes that the encoding lacks, in a cell that is needed | dropped: `bad_ROLE` (in Arrow: `bad_encoding`) |
| the same in the header or in a cell that is not needed | stays unseen |
| a NUL byte or half a surrogate pair in a text | dropped: `bad_ROLE` |
| too few fields; too many, unless those beyond are empty | dropped: `bad_fields` (in CoNLL the sentence) |
| a quoted field that does not end, or goes on after its quote | its line dropped: `bad_quotes` |
| a line of JSON lines that is not JSON; a record that is no object | dropped: `bad_json` |
| an empty cell (white space, null, NaN) of a required role | dropped: `no_ROLE` |
| an empty cell of another role, or of answers | None |
| `NA`, `null`, `None` as text | text |
| a number where a text belongs: whole; with a fraction, a truth value, a list | its digits; dropped: `bad_ROLE` |
| a number or a truth value where a label belongs | its name, as CSV has it: 1, 2.5, True |
| a cell that its role refuses; values of a row that do not fit one another | dropped: `bad_ROLE`; `bad_row` |
| a repeated id, in a column that the user named; in one that was found | refused; no id is taken, with a note |
| a label unseen in training | refused by `refuse_unseen_labels`, with the first place of each |
| blank lines, comments and -DOCSTART- of CoNLL, ranges and empty nodes of CoNLL-U | no records |
"""

from typing import TYPE_CHECKING

from korbert._lazy import attach

if TYPE_CHECKING:
    from korbert.tasks.files.arrow import splits
    from korbert.tasks.files.cells import Answer, Span
    from korbert.tasks.files.columns import columns_of
    from korbert.tasks.files.form import FORMS, Form
    from korbert.tasks.files.forms import open_table
    from korbert.tasks.files.roles import ROLES, Role
    from korbert.tasks.files.rows import Place, Row, Rows, read_rows, refuse_unseen_labels

__all__ = [
    "FORMS",
    "ROLES",
    "Answer",
    "Form",
    "Place",
    "Role",
    "Row",
    "Rows",
    "Span",
    "columns_of",
    "open_table",
    "read_rows",
    "refuse_unseen_labels",
    "splits",
]

__getattr__ = attach(
    __name__,
    {
        "FORMS": "form",
        "ROLES": "roles",
        "Answer": "cells",
        "Form": "form",
        "Place": "rows",
        "Role": "roles",
        "Row": "rows",
        "Rows": "rows",
        "Span": "cells",
        "columns_of": "columns",
        "open_table": "forms",
        "read_rows": "rows",
        "refuse_unseen_labels": "rows",
        "splits": "arrow",
    },
)
