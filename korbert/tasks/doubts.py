"""What looks wrong in labelled rows: it is said before training, and left as it is."""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from korbert.tasks.files import Place, Row, Rows
from korbert.tasks.kinds.base import Kind

_RARE = 0.1  # of the rows of another label: a label of so few rows may be a slip of it
_MIN_JAMO = 4  # of a label: shorter ones (남, 여) often differ in one
_SHOWN = 3


def doubts(task: Kind, parts: Mapping[str, Rows]) -> Iterator[str]:
    """A line for each doubt, with the number of rows and the places of the first ones.

    parts: the rows of each file by its part; those of "train" are the training rows.
    """
    train = parts["train"]
    if hasattr(task, "labels"):
        yield from _slips(train)
        yield from _contradictions(task, train)
    for name in ("valid", "test"):
        if name in parts and (seen := seen_in(task, parts[name], train)):
            places = _first([parts[name].places[number] for number in seen])
            yield f"{name} rows with the texts of a training row: {len(seen):,} of {len(parts[name]):,}: {places}"


def _slips(rows: Rows) -> Iterator[str]:
    """Labels that differ in case, width or spaces alone, and rare labels that differ in one jamo or letter."""
    places: dict[str, list[Place]] = {}
    for row, place in zip(rows, rows.places, strict=True):
        for label in _labels(row):
            places.setdefault(label, []).append(place)
    written = {label: "".join(unicodedata.normalize("NFKD", label).casefold().split()) for label in places}
    for common, rare in combinations(sorted(places, key=lambda label: -len(places[label])), 2):
        own, other = len(places[rare]), len(places[common])
        is_near = own <= _RARE * other and _one_apart(written[rare], written[common])
        if is_near or written[rare] == written[common]:
            first = _first(places[rare])
            yield f"label {rare!r} (rows: {own:,}) may be a slip of {common!r} (rows: {other:,}): {first}"


def _one_apart(one: str, other: str) -> bool:
    """Whether a character is added, left out or replaced, or two are swapped. Digits tell labels apart: 1점, 2점."""
    begin = _alike(one, other)
    end = _alike(one[begin:][::-1], other[begin:][::-1])
    rest, others = one[begin : len(one) - end], other[begin : len(other) - end]
    is_near = max(len(rest), len(others)) == 1 or (len(rest) == 2 and rest == others[::-1])
    return is_near and min(len(one), len(other)) >= _MIN_JAMO and not any(map(str.isdigit, rest + others))


def _alike(one: str, other: str) -> int:
    """The number of characters with which both begin."""
    return next(
        (n for n, (own, its) in enumerate(zip(one, other, strict=False)) if own != its), min(len(one), len(other))
    )


def _contradictions(task: Kind, rows: Rows) -> Iterator[str]:
    """Texts that stand with different labels."""
    found: dict[tuple[str, ...], dict[str, Place]] = {}
    for row, place in zip(rows, rows.places, strict=True):
        found.setdefault(_words(task, row), {}).setdefault(", ".join(sorted(_labels(row))), place)
    contrary = [by_label for by_label in found.values() if len(by_label) > 1]
    if contrary:
        shown = _first([" and ".join(f"{label!r} at {place}" for label, place in one.items()) for one in contrary])
        yield f"texts with different labels: {len(contrary):,}: {shown}"


def seen_in(task: Kind, rows: Iterable[Row], others: Iterable[Row]) -> list[int]:
    """The numbers of the rows that have the same texts as one of the others, apart from spaces.

    Negatives do not count: a query and its passage are known from training whatever stood next to them there.
    """
    seen = {_words(task, row) for row in others}
    return [number for number, row in enumerate(rows) if _words(task, row) in seen]


def _words(task: Kind, row: Row) -> tuple[str, ...]:
    return tuple(" ".join(text.split()) for text in task.texts({**row, "negatives": None}))


def _labels(row: Row) -> list[str]:
    return row["label"] if isinstance(row["label"], list) else [row["label"]]


def _first(found: Sequence[object]) -> str:
    return "; ".join([*map(str, found[:_SHOWN]), *(["..."] if len(found) > _SHOWN else [])])
