"""Training, validation and test rows of a task."""

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from korbert.errors import CorpusError
from korbert.records.table import Fault
from korbert.tasks.files import Row, Rows
from korbert.tasks.files.rows import Place


@dataclass(frozen=True)
class Parts:
    """test, warm_up: None if there are none. read: what was read and dropped, one line each. notes: caveats."""

    train: Rows
    valid: Rows
    test: Rows | None
    warm_up: Rows | None = None
    read: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def by_name(self) -> dict[str, Rows]:
        """The parts that there are."""
        named = {"train": self.train, "valid": self.valid, "test": self.test, "warm_up": self.warm_up}
        return {name: rows for name, rows in named.items() if rows is not None}

    def distinct(self, texts: Callable[[Row], Sequence[str]]) -> list[str]:
        """The texts of all rows, each once."""
        return list(dict.fromkeys(text for rows in self.by_name().values() for row in rows for text in texts(row)))


def cut(rows: Rows, share: float, texts: Callable[[Row], Sequence[str]]) -> tuple[Rows, Rows]:
    """Splits off a share of the rows by a hash of their texts; equal texts stay together. Returns (rest, share).

    The split depends on neither row order nor a seed. CorpusError if all rows have the same texts.
    """
    digests = _digests(rows, texts)
    distinct = sorted(set(digests))
    if len(distinct) < 2:
        raise CorpusError(f"{rows.places[0]}: all rows have the same text: give more, or a file to validate on")
    held = set(distinct[: min(max(1, round(share * len(distinct))), len(distinct) - 1)])
    numbers = range(len(rows))
    return tuple(  # type: ignore[return-value]
        taken(rows, [number for number in numbers if (digests[number] in held) == inside]) for inside in (False, True)
    )


def split_by_article(rows: Rows) -> tuple[Rows, Rows]:
    """(train, test): an article is in test if the SHA-256 of its title, read as a number, is 0 modulo 5.

    For a single official file. CorpusError if a part is left without rows.
    """
    digests = (hashlib.sha256(row["title"].encode("utf-8", "surrogatepass")).hexdigest() for row in rows)
    held = [int(digest, 16) % 5 == 0 for digest in digests]
    sides = [[number for number, inside in enumerate(held) if inside == side] for side in (False, True)]
    if not all(sides):
        raise CorpusError(
            f"{', '.join(source.file for source in rows.sources)}: split_by_article leaves {len(sides[0])} rows to "
            f"train on and {len(sides[1])} to score: name train and test files instead"
        )
    train, test = (taken(rows, side) for side in sides)
    train.dropped, train.notes = dict(rows.dropped), list(rows.notes)
    return train, test


def at_most(rows: Rows, number: int, texts: Callable[[Row], Sequence[str]]) -> Rows:
    """At most `number` rows, those whose texts have the smallest hashes, in their order.

    The choice depends on no seed, and on row order only to break ties between equal texts.
    """
    if len(rows) <= number:
        return rows
    digests = _digests(rows, texts)
    result = taken(rows, sorted(sorted(range(len(rows)), key=digests.__getitem__)[:number]))
    result.dropped = dict(rows.dropped)
    return result


def _digests(rows: Rows, texts: Callable[[Row], Sequence[str]]) -> list[bytes]:
    return [hashlib.sha256("\0".join(texts(row)).encode("utf-8", "surrogatepass")).digest() for row in rows]


def usable(rows: Rows, check: Callable[[Row], object]) -> Rows:
    """The rows for which `check` raises no ValueError; others count as dropped. CorpusError if none is left."""
    kept = []
    faults: list[tuple[Place, str]] = []
    for number, row in enumerate(rows):
        try:
            check(row)
            kept.append(number)
        except ValueError as error:
            faults.append((rows.places[number], str(error)))
    if not faults:
        return rows
    result = taken(rows, kept)
    result.dropped, result.notes = dict(rows.dropped), list(rows.notes)
    for place, what in faults:
        result.drop(str(place), Fault("bad_row", what))
    if not kept:
        raise CorpusError(f"no row can be used: {'; '.join(result.said())}")
    return result


def taken(rows: Rows, numbers: Sequence[int]) -> Rows:
    """Selects rows with their places and sources; counts of dropped rows are not copied."""
    result = Rows([rows.rows[number] for number in numbers], [rows.places[number] for number in numbers])
    counts = Counter(place.file for place in result.places)
    result.sources = [replace(source, rows=counts[source.file]) for source in rows.sources]
    return result
