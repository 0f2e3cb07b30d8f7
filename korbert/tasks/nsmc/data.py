"""Reads the official files of NSMC, the Naver sentiment movie corpus (github.com/e9t/nsmc)."""

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

from korbert.errors import CorpusError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMNS", "LABELS", "read"]

COLUMNS = ("id", "document", "label")
LABELS = ("부정", "긍정")  # names of the labels 0 (ratings 1 to 4) and 1 (ratings 9 and 10)

_HEADER = "\t".join(COLUMNS)


def read(path: str | Path) -> "pd.DataFrame":
    """The reviews of one official file, in its order: id (str), text (str, may be empty), label (int64, 0 or 1).

    A tab ends a field and a line feed ends a row; quotes, `NA` and `null` are text. A byte-order mark at the start and
    CRLF line ends are removed.

    Raises CorpusError, naming file and line, for a missing file, another header, a row without exactly three fields, a
    label other than 0 and 1, and bytes that are not UTF-8.
    """
    import pandas as pd  # slow to load, and the table of tasks names this function

    path = Path(path)
    lines = _lines(path)
    if lines[0] != _HEADER:
        raise CorpusError(
            f"{path}, line 1: the header is {_shown(lines[0])}, not {_HEADER!r}: give an official NSMC file"
        )
    if len(lines) == 1:
        raise CorpusError(f"{path}: holds no review below its header: give an official NSMC file")
    for number, line in enumerate(lines[1:], start=2):
        fields = line.split("\t")
        if len(fields) != len(COLUMNS):
            raise CorpusError(
                f"{path}, line {number}: {len(fields)} fields between tabs, not {len(COLUMNS)}, in {_shown(line)}:"
                " mend it"
            )
        if fields[2] not in ("0", "1"):
            raise CorpusError(f"{path}, line {number}: the label is {_shown(fields[2])}, not 0 or 1: mend it")
    table = pd.read_csv(
        io.StringIO("\n".join(lines)),
        sep="\t",
        lineterminator="\n",
        quoting=csv.QUOTE_NONE,
        na_filter=False,
        dtype=str,
        skip_blank_lines=False,
        index_col=False,
    )
    return pd.DataFrame({"id": table["id"], "text": table["document"], "label": table["label"].astype("int64")})


def _lines(path: Path) -> list[str]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CorpusError(
            f"{path}: cannot be read ({error.strerror}): see docs/data.md for where to get NSMC"
        ) from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CorpusError(
            f"{path}, line {line}: byte 0x{data[error.start]:02x} is not UTF-8: convert the file to UTF-8"
        ) from error
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
