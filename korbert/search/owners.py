"""Which text each passage of an index is of, and the best passage of each text."""

import sqlite3
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from korbert.messages import Message
from korbert.search.database import Damage, read_meta


@dataclass(frozen=True)
class Owners:
    """The texts of all passages at one version of the index.

    Passages of a text have consecutive numbers, and the numbers of passages and of their texts rise together.

    at: identity and version of the index. is_single: whether each text is one passage, with the same number. texts: (1
    + largest number of a passage,), the number of the text of each passage; where there is no passage, 0, or any number
    if is_single. lengths: (1 + largest number of a text,), the number of terms of each text; all 0 if is_single.
    spread: like texts, the logarithm of the number of passages that the text has.
    """

    at: tuple[str, int]
    is_single: bool
    texts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    spread: NDArray[np.float32]

    def passages(self, texts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers, rising, of the passages of the texts with these rising numbers."""
        return texts if self.is_single else np.flatnonzero(np.isin(self.texts, texts))

    def best(
        self, numbers: NDArray[np.int64], scores: NDArray[np.float32]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Returns number and score of the best passage of each text; of equally good passages, the first.

        numbers: (N,) of passages, rising. scores: (N,).
        """
        if self.is_single or not len(numbers):
            return numbers, scores
        texts = self.texts[numbers]
        starts = np.flatnonzero(np.diff(texts, prepend=-1))  # where the passages of each text begin
        best_scores = np.maximum.reduceat(scores, starts)
        num_passages = np.diff(starts, append=len(texts))
        best_rows = np.flatnonzero(scores == np.repeat(best_scores, num_passages))
        first_rows = best_rows[np.diff(texts[best_rows], prepend=-1) > 0]  # of equally good ones
        return numbers[first_rows], scores[first_rows]


def read_owners(database: sqlite3.Connection, kept: Owners | None = None) -> Owners:
    """Reads the texts of all passages. kept: returned if it is of the current version. Damage if the table is not as
    written."""
    version = (read_meta(database, "identity"), read_meta(database, "version"))
    if kept is not None and kept.at == version:
        return kept
    last, last_text = (
        database.execute(f"SELECT coalesce(max(number), 0) FROM {table}").fetchone()[0]
        for table in ("passages", "texts")
    )
    texts = np.zeros(last + 1, np.int64)
    # Numbers of both rise alike: they are equal at the end only if all texts so far were one passage.
    if last == last_text:
        return Owners(version, True, np.arange(last + 1), texts, texts.astype(np.float32))
    # Whole rows with their checksums would take six times as long: their sums are compared instead.
    cursor = database.execute("SELECT number, text, last - first FROM passages ORDER BY number")
    rows = [row for row in cursor if all(isinstance(value, int) for value in row)]
    numbers, text_numbers, sizes = np.array(rows, np.int64).reshape(-1, 3).T
    is_whole = len(rows) == read_meta(database, "passages") and sizes.sum() == read_meta(database, "length")
    if not is_whole or (int(numbers @ text_numbers) - read_meta(database, "owners")) % 2**64:
        raise Damage(Message("the table of passages is not as it was written"))
    texts[numbers] = text_numbers
    lengths = np.bincount(text_numbers, sizes, last_text + 1).astype(np.int64)
    spread = np.log(np.maximum(np.bincount(text_numbers)[texts], 1)).astype(np.float32)
    return Owners(version, False, texts, lengths, spread)
