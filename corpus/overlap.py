"""Texts that a corpus already contains: a score on them may be due to memorization."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from korbert.corpus.execution.database import connect
from korbert.corpus.execution.parts import part_files

# White space of any kind is folded to single spaces, letters to NFC.
_FOLD = r"trim(regexp_replace(nfc_normalize({}), '[\s\v\p{{Z}}]+', ' ', 'g'))"
_PASSAGES = "SELECT unnest(list_append(string_split(text, chr(10)), text)) AS text FROM {}"


def found_in(
    texts: Iterable[str], others: Iterable[str], documents: Path | None, output: Path, threads: int
) -> NDArray[np.bool_]:
    """(texts,) bool: whether each text is one of `others`, or a whole document of the corpus, or a whole line of one.

    White space is folded before comparing. documents: folder of Parquet parts with a column `text`, which are streamed;
    None: there is no corpus. output: folder to spill into.
    """
    parts = part_files(documents) if documents else []
    column = pa.array(texts, pa.string())
    is_known = np.zeros(len(column), dtype=np.bool_)
    with connect(output, threads, documents=parts) as connection:
        connection.register("texts", pa.table({"number": pa.array(range(len(column))), "text": column}))
        connection.register("others", pa.table({"text": pa.array(others, pa.string())}))
        connection.execute(f"CREATE TABLE wanted AS SELECT number, {_FOLD.format('text')} AS text FROM texts")
        for source in ("others", "documents") if parts else ("others",):
            passages = f"SELECT {_FOLD.format('text')} AS text FROM ({_PASSAGES.format(source)})"
            query = f"SELECT DISTINCT number FROM wanted JOIN ({passages}) USING (text)"
            is_known[connection.execute(query).fetchnumpy()["number"]] = True
    return is_known
