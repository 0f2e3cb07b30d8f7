"""Files of records: `open_table("my.csv")`. Every command that reads a user's file reads it here.

1. `frames.py` opens and decompresses a file, `encodings.py` detects its encoding, and `table.py` gives its lines.
2. `forms.py` detects the format of a file (`form.py`) by extension or content, and opens it as a table.
3. `delimited.py` (CSV, TSV, with `csv_records.py`), `jsons.py` (JSON lines, JSON), `arrow.py` (Parquet, Arrow, folders
   of `datasets`) and `tagged.py` (CoNLL, KLUE entities, CoNLL-U) read the records of a table, as described in
   `table.py`. Text files may be compressed (gz, bz2, xz, zst) and in UTF-8, UTF-16 with a BOM, or CP949.
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
