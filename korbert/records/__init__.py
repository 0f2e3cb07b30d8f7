"""Files of records: `open_table("my.csv")`. Every command that reads a user's file reads it here.

1. `frames.py` opens and decompresses a file, `encodings.py` detects its encoding and turns it into UTF-8.
2. `lines.py` cuts it into lines, in bounded memory; `table.py` has the text and the table that formats work on.
3. `forms.py` detects the format of a file (`form.py`) by extension or content, and opens it as a table: `delimited.py`
   (CSV, TSV, with `csv_records.py`), `jsons.py` (JSON lines, JSON), `arrow.py` (Parquet, Arrow, folders of `datasets`)
   and `tagged.py` (CoNLL, KLUE entities, CoNLL-U).
4. `exports.py` gives the columns of labelling tools (Label Studio, Prodigy, brat, ..) their usual names.
5. `inputs.py` opens what a command is given: also a pipe, an address, and plain lines of text.
"""

from typing import TYPE_CHECKING

from korbert._lazy import attach

if TYPE_CHECKING:
    from korbert.records.arrow import splits
    from korbert.records.form import FORMS, Form
    from korbert.records.forms import open_table
    from korbert.records.table import Fault, Table

__all__ = ["FORMS", "Fault", "Form", "Table", "open_table", "splits"]

__getattr__ = attach(
    __name__,
    {
        "FORMS": "form",
        "Fault": "table",
        "Form": "form",
        "Table": "table",
        "open_table": "forms",
        "splits": "arrow",
    },
)
