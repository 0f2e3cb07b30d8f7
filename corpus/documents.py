"""Document ids, the held-out rule, and batches of texts."""

from collections.abc import Iterable, Iterator
from hashlib import blake2b

__all__ = ["document_id", "in_batches", "is_heldout"]


def document_id(source: str, local: str | int) -> str:
    """The id of a document in the corpus. local: its id in its source, or its line number there.

    >>> document_id("wiki", "kowiki-9")
    'wiki:kowiki-9'
    """
    return f"{source}:{local}"


def is_heldout(id: str, seed: int, share: float) -> bool:
    """Whether the document is excluded from all counting and training, and used for evaluation only.

    Depends on id and seed alone, not on other documents or their order. share: from 0 to 1.
    """
    digest = blake2b(f"{seed}:{id}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64 < share


def in_batches(texts: Iterable[str], chars: int) -> Iterator[list[str]]:
    """The texts in order, in lists of at least `chars` characters; the last list may have fewer.

    >>> list(in_batches(["가나", "다", "라"], 3))
    [['가나', '다'], ['라']]
    """
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if size >= chars:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
