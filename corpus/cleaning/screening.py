"""What becomes of a row by itself, whatever the other rows are."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from corpus.cleaning.contamination import Index, Leak
from corpus.cleaning.features import Hashes, batches
from corpus.cleaning.filters import drop_reasons, too_short
from corpus.cleaning.frequent_lines import without_lines
from corpus.cleaning.normalize import normalize_many
from corpus.cleaning.personal import mask
from corpus.readers import SourceRow
from corpus.settings import CleanSettings

__all__ = ["Screened", "screen"]


class Screened(NamedTuple):
    """What becomes of a row: its text as the corpus would have it, and the reason to drop it, with details."""

    text: str
    reason: str | None
    detail: str | None


def screen(
    found: Sequence[SourceRow], settings: CleanSettings, index: Index | None
) -> tuple[list[Screened], Counter[str], Hashes]:
    """Each row with its text made uniform, personal data masked, filtered, and looked up in the evaluation sets.

    Beside them how often each kind was masked (`masked.email`) and how many documents each set was found in
    (`contaminated.NAME`), and the hashes of what was found of the sets. A row that could not be read keeps its text and
    its reason. What only other rows show, equal text, is not looked at.
    """
    uniform = normalize_many((row.text for row in found if row.reason is None), settings.normalize)
    texts, masked = mask(uniform, settings.personal)
    counts = Counter({f"masked.{kind}": number for kind, number in masked.items()})
    good: list[Screened] = []
    hits = [np.empty(0, np.uint64)]
    limits = settings.filters
    for batch, features in batches(texts, limits.repetition_min_words, limits.max_chars):
        reasons = drop_reasons(batch, features, limits)
        kept = [text if reason is None else "" for text, reason in zip(batch, reasons, strict=True)]
        leaks = [None] * len(batch) if index is None else index.find(kept, features)
        for text, reason, leak in zip(batch, reasons, leaks, strict=True):
            if reason is not None or leak is None:
                good.append(Screened(text, *(reason or (None, None))))
            else:
                good.append(_leaked(text, leak, settings))
                counts.update(f"contaminated.{name}" for name in leak.names)
                hits.append(leak.hashes)
    return list(_in_order(found, good)), counts, np.unique(np.concatenate(hits))


def _leaked(text: str, leak: Leak, settings: CleanSettings) -> Screened:
    """The document without the lines that evaluation sets hold; dropped where it is to be, or too little is left."""
    left = without_lines(text, leak.lines) if settings.decontamination.unit == "line" else ""
    if left and not too_short(left, settings.filters):
        return Screened(left, None, None)
    return Screened(text, "contaminated", f"{', '.join(leak.names)}: {leak.shared}")


def _in_order(found: Sequence[SourceRow], good: Sequence[Screened]) -> Iterator[Screened]:
    left = iter(good)
    for row in found:
        yield next(left) if row.reason is None else Screened(row.text, row.reason, row.detail)
