"""Likely mistakes in labelled rows. They are reported before training, and the rows stay as they are."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from korbert.messages import Message
from korbert.tasks.files import Place, TaskRow, TaskRows
from korbert.tasks.kinds.kind import Kind

_RARE = 0.1  # share of another label's rows: a label with so few rows may be a slip of the other one
_MIN_JAMO = 4  # of a label: shorter ones (남, 여) often differ in one
_SHOWN = 3
PART_NAMES = {"valid": Message("valid"), "test": Message("test")}


def doubts(task: Kind, parts: Mapping[str, TaskRows]) -> Iterator[Message]:
    """What may be wrong with labelled rows, with counts and the places of the first ones.

    One message for each pair of labels that differ in case, width or spaces alone, or, if rare, in one jamo or letter;
    one for all texts that have different labels; one for each part with texts of training rows. parts: name of the part
    -> its rows.
    """
    train = parts["train"]
    # Texts of a row -> its labels and the first place of each.
    places_by_texts: dict[tuple[str, ...], dict[str, Place]] = {}
    places_by_label: dict[str, list[Place]] = {}
    for row, place in zip(train, train.places, strict=True) if hasattr(task, "labels") else ():
        labels = row["label"] if isinstance(row["label"], list) else [row["label"]]
        places_by_texts.setdefault(words_of(task, row), {}).setdefault(", ".join(sorted(labels)), place)
        for label in labels:
            places_by_label.setdefault(label, []).append(place)
    counts = {label: len(label_places) for label, label_places in places_by_label.items()}
    for rare, common in slips(counts):
        yield Message(
            "label '{rare}' (rows: {own:,}) may be a slip of '{common}' (rows: {other:,}): {places}",
            rare=rare, own=counts[rare], common=common, other=counts[common], places=first_of(places_by_label[rare]),
        )  # fmt: skip
    if contradictory := [by_label for by_label in places_by_texts.values() if len(by_label) > 1]:
        shown = first_of(
            [", ".join(f"{label!r} ({place})" for label, place in by_label.items()) for by_label in contradictory]
        )
        yield Message("texts with different labels: {count:,}: {places}", count=len(contradictory), places=shown)
    for name in ("valid", "test"):
        if name in parts and (seen_numbers := seen_in(task, parts[name], train)):
            first_places = first_of([parts[name].places[number] for number in seen_numbers])
            yield Message(
                "{part} rows with the texts of a training row: {seen:,} of {rows:,}: {places}",
                part=PART_NAMES[name], seen=len(seen_numbers), rows=len(parts[name]), places=first_places,
            )  # fmt: skip


def slips(counts: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Labels that may be slips, each with the label that may be meant. counts: label -> its rows."""
    forms = {label: _forms(label) for label in counts}
    # From the most frequent label to the rarest, so that the second of each pair may be a slip of the first.
    for common, rare in combinations(sorted(counts, key=lambda label: -counts[label]), 2):
        is_near = counts[rare] <= _RARE * counts[common] and not set(forms[rare]).isdisjoint(forms[common])
        if is_near or forms[rare][0] == forms[common][0]:
            yield rare, common


def _forms(label: str) -> list[str]:
    """Returns the label in jamo without case, width and spaces, then its variants with one jamo left out.

    Two labels share a form if one has a jamo that is wrong, missing or in the wrong place. A variant begins with all
    digits of the label: labels with different digits are no slips of each other.
    """
    plain = "".join(unicodedata.normalize("NFKD", label).casefold().split())
    digits = re.sub(r"\D", "", plain)
    positions = range(len(plain) + 1) if len(plain) >= _MIN_JAMO else ()
    return [plain, *(f"{digits} {plain[:n]}{plain[n + 1 :]}" for n in positions)]


def seen_in(task: Kind, rows: Iterable[TaskRow], others: Iterable[TaskRow]) -> list[int]:
    """Returns the numbers of the rows whose texts, apart from spaces, are those of a row in `others`.

    Negatives do not count: a query and its passage are known from training, whichever negatives they had there.
    """
    texts_of_others = {words_of(task, row) for row in others}
    return [number for number, row in enumerate(rows) if words_of(task, row) in texts_of_others]


def words_of(task: Kind, row: TaskRow) -> tuple[str, ...]:
    """Returns the texts that tell a row from others: with single spaces, and without negatives."""
    return tuple(" ".join(text.split()) for text in task.texts({**row, "negatives": None}))


def first_of(found: Sequence[object]) -> str:
    """Joins the first three items, with "..." if there are more."""
    more = ["..."] if len(found) > _SHOWN else []
    return "; ".join([*map(str, found[:_SHOWN]), *more])
