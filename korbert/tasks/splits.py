"""Training, validation and test rows of a task."""

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from korbert.errors import CorpusError
from korbert.messages import Message, join_messages, reason
from korbert.records import Fault
from korbert.tasks.files import TaskRow, TaskRows


@dataclass(frozen=True)
class Splits:
    """test, warm_up, unlabelled, folds: None if there are none. read: what was read and dropped, one line each.

    notes: caveats. doubts: what looks wrong in the files, one line each. splits_train: whether the validation rows come
    from the training file. folds: rows of training and validation, to score by models that had not learned them.
    """

    train: TaskRows
    valid: TaskRows
    test: TaskRows | None
    warm_up: TaskRows | None = None
    unlabelled: TaskRows | None = None
    read: tuple[Message, ...] = ()
    notes: tuple[Message, ...] = ()
    doubts: tuple[Message, ...] = ()
    splits_train: bool = False
    folds: TaskRows | None = None

    @property
    def scored(self) -> TaskRows:
        """The rows of `scored_on`."""
        return self.folds or self.test or self.valid

    @property
    def scored_on(self) -> Literal["test", "valid", "folds"]:
        """Which rows are scored: those of the test file, if there is one; else in folds, or those of validation."""
        if self.folds:
            return "folds"
        return "test" if self.test else "valid"

    def by_name(self) -> dict[str, TaskRows]:
        """Name -> rows of the parts that exist; `unlabelled` and `folds` are left out."""
        named = {"train": self.train, "valid": self.valid, "test": self.test, "warm_up": self.warm_up}
        return {name: rows for name, rows in named.items() if rows is not None}


def split_by_texts(
    rows: TaskRows, share: float, texts: Callable[[TaskRow], Sequence[str]]
) -> tuple[TaskRows, TaskRows]:
    """Splits off the rows of a share of the distinct texts, by a hash of the texts. Returns (rest, held out).

    Equal texts stay together, so the share of the rows may be another one. The split depends on neither row order nor a
    seed. CorpusError if all rows have the same texts.
    """
    digests = _digests(rows, texts)
    distinct = sorted(set(digests))
    if len(distinct) < 2:
        raise CorpusError(
            "{said}: all rows have the same text, or are of one group: give more, or a file to validate on",
            said=join_messages(rows.summary()),
        )
    # At least one text is held out, and one is left to learn from.
    held_out = set(distinct[: min(max(1, round(share * len(distinct))), len(distinct) - 1)])
    rest, held_rows = (
        subset(rows, [number for number, digest in enumerate(digests) if (digest in held_out) == is_held])
        for is_held in (False, True)
    )
    return rest, held_rows


def split_by_time(rows: TaskRows, share: float) -> tuple[TaskRows, TaskRows]:
    """Splits off about `share` of the rows, the latest; rows of one time stay together. Returns (rest, held out).

    CorpusError if all rows are of one time.
    """
    times = [row["time"] for row in rows]
    if len(set(times)) < 2:
        raise CorpusError("{said}: all rows have the same time: leave it out", said=join_messages(rows.summary()))
    ordered = sorted(times)
    first_held = max(ordered[-max(1, round(share * len(ordered)))], min(time for time in times if time > ordered[0]))
    earlier, later = (
        subset(rows, [number for number, time in enumerate(times) if (time >= first_held) == is_held])
        for is_held in (False, True)
    )
    return earlier, later


def split_by_article(rows: TaskRows) -> tuple[TaskRows, TaskRows]:
    """Returns (train, test): an article is in test if the `hash_bucket` of its title is 0.

    For data sets of a single official file. CorpusError if a part is left without rows.
    """
    sides: list[list[int]] = [[], []]
    for number, row in enumerate(rows):
        sides[hash_bucket(row["title"]) == 0].append(number)
    if not all(sides):
        raise CorpusError(
            "{files}: split_by_article leaves {train_rows} rows to train on and {test_rows} to score: name "
            "train and test files instead",
            files=rows.files,
            train_rows=len(sides[0]),
            test_rows=len(sides[1]),
        )
    return subset(rows, sides[0], with_drops=True), subset(rows, sides[1])


def hash_bucket(text: str) -> int:
    """0 to 4: the SHA-256 of a text, as a number, modulo 5."""
    return int(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest(), 16) % 5


def limit(rows: TaskRows, number: int, texts: Callable[[TaskRow], Sequence[str]]) -> TaskRows:
    """At most `number` rows, those whose texts have the smallest hashes, in their order.

    The choice depends on no seed, and on row order only to break ties between equal texts.
    """
    if len(rows) <= number:
        return rows
    digests = _digests(rows, texts)
    smallest = sorted(range(len(rows)), key=digests.__getitem__)[:number]
    return subset(rows, sorted(smallest), with_drops=True)


def _digests(rows: TaskRows, texts: Callable[[TaskRow], Sequence[str]]) -> list[bytes]:
    return [hashlib.sha256("\0".join(texts(row)).encode("utf-8", "surrogatepass")).digest() for row in rows]


def drop_unusable(rows: TaskRows, check: Callable[[TaskRow], object]) -> TaskRows:
    """The rows for which `check` raises no ValueError; others count as dropped. CorpusError if none is left."""
    faults: dict[int, str] = {}
    for number, row in enumerate(rows):
        try:
            check(row)
        except ValueError as error:
            faults[number] = reason(error)
    if not faults:
        return rows
    result = subset(rows, [number for number in range(len(rows)) if number not in faults], with_drops=True)
    for number, fault in faults.items():
        result.drop(rows.places[number], Fault("bad_row", fault))
    if not result.rows:
        raise CorpusError("no row can be used: {said}", said=join_messages(result.summary()))
    return result


def subset(rows: TaskRows, numbers: Sequence[int], *, with_drops: bool = False) -> TaskRows:
    """Selects rows with their places and sources. with_drops: keeps what was dropped and noted of the whole file."""
    result = TaskRows([rows.rows[number] for number in numbers], [rows.places[number] for number in numbers])
    counts = Counter(place.file for place in result.places)
    result.sources = [replace(source, rows=counts[source.file]) for source in rows.sources]
    if with_drops:
        result.dropped = dict(rows.dropped)
        result.notes = list(rows.notes)
    return result
