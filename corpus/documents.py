"""What holds of any document: the held-out rule, its sentences, batches of texts."""

import re
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

SAMPLE_FOLDER = Path(__file__).parent / "sample"
"""The small real corpus that ships with korbert."""

T = TypeVar("T")

_SENTENCE = re.compile(r"\S.*?(?:(?<=[가-힣])[.?!]+(?=\s|$)|$)", re.MULTILINE)


def is_heldout(id: str, seed: int, share: float) -> bool:
    """Whether the document is excluded from all counting and training, and used for evaluation only.

    Depends on id and seed alone, not on other documents or their order. share: from 0 to 1.
    """
    digest = blake2b(f"{seed}:{id}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64 < share


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Half-open spans. A sentence ends with its line, and with . ? or ! between Hangul and a space."""
    for match in _SENTENCE.finditer(text):
        yield match.start(), match.start() + len(match[0].rstrip())


def group_by_size(items: Iterable[T], amount: int, size: Callable[[T], int]) -> Iterator[list[T]]:
    """The items in order, in lists that end as soon as the sizes of their items make up `amount`.

    >>> list(group_by_size(["가나", "다", "라"], 3, len))
    [['가나', '다'], ['라']]
    """
    group: list[T] = []
    total = 0
    for item in items:
        group.append(item)
        total += size(item)
        if total >= amount:
            yield group
            group = []
            total = 0
    if group:
        yield group
