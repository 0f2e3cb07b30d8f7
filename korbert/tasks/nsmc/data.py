"""Reads the official files of NSMC, the Naver sentiment movie corpus (github.com/e9t/nsmc)."""

from pathlib import Path
from typing import TYPE_CHECKING

from korbert.errors import CorpusError
from korbert.records.encodings import UNDECODABLE
from korbert.records.table import open_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMNS", "LABELS", "read"]

COLUMNS = ("id", "document", "label")
LABELS = ("부정", "긍정")  # names of the labels 0 (ratings 1 to 4) and 1 (ratings 9 and 10)

_HEADER = "\t".join(COLUMNS)


def read(path: str | Path) -> "pd.DataFrame":
    """The reviews of one official file, in its order: id (str), text (str, may be empty), label (int64, 0 or 1).

    A tab ends a field and a line feed ends a row; quotes, `NA` and `null` are text. A byte-order mark at the start and
    CRLF line ends are removed; the file may be compressed and in any encoding of korbert.records.

    Raises CorpusError, naming file and line, for a missing file, another header, a row without exactly three fields, a
    label other than 0 and 1, and undecodable bytes.
    """
    import pandas as pd  # slow to load, and the table of tasks names this function

    path = Path(path)
    if not path.is_file():
        raise CorpusError(f"{path}: no such file: see docs/data.md for where to get NSMC")
    text = open_text(path)
    first, *lines = "".join(text.blocks()).removesuffix(text.line_end).split(text.line_end)
    if first.rstrip("\r") != _HEADER:
        raise CorpusError(f"{path}, line 1: the header is {_shown(first)}, not {_HEADER!r}: give an official NSMC file")
    ids, texts, labels = [], [], []
    for number, line in enumerate(lines, start=2):
        fields = line.rstrip("\r").split("\t")
        if len(fields) != len(COLUMNS):
            what = f"{len(fields)} fields between tabs, not {len(COLUMNS)}, in {_shown(line)}"
        elif fields[2] not in ("0", "1"):
            what = f"the label is {_shown(fields[2])}, not 0 or 1"
        elif UNDECODABLE.search(line):
            what = f"{_shown(line)} is not {text.encoding.upper()}"
        else:
            ids.append(fields[0])
            texts.append(fields[1])
            labels.append(int(fields[2]))
            continue
        raise CorpusError(f"{path}, line {number}: {what}: mend it")
    if not ids:
        raise CorpusError(f"{path}: holds no review below its header: give an official NSMC file")
    return pd.DataFrame({"id": ids, "text": texts, "label": labels})


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
