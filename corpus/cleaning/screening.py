"""Screening: cleans and filters each row on its own, independently of other rows."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from korbert.corpus.cleaning.contamination import NgramIndex
from korbert.corpus.cleaning.features import batches
from korbert.corpus.cleaning.filters import drop_reasons, too_short
from korbert.corpus.cleaning.frequent_lines import without_lines
from korbert.corpus.cleaning.hashing import HashArray
from korbert.corpus.cleaning.normalize import normalize_many
from korbert.corpus.cleaning.personal import mask
from korbert.corpus.corpus_settings import CleanSettings
from korbert.corpus.readers import SourceRow


class Screened(NamedTuple):
    """The result for a row: its clean text, and the reason to drop it with details, or None for both."""

    text: str
    reason: str | None
    detail: str | None


def screen(
    rows: Sequence[SourceRow], settings: CleanSettings, index: NgramIndex | None
) -> tuple[list[Screened], Counter[str], HashArray]:
    """Normalizes each row, masks personal data, applies the filters, and looks for text of evaluation sets.

    Returns the results in the order of the rows; counts of masks by kind (`masked.email`) and of contaminated documents
    by evaluation set (`contaminated.NAME`); and the hashes of all n-grams shared with evaluation sets. An unreadable
    row keeps its raw text and its reason. Duplicates are no concern of screening.
    """
    normalized = normalize_many((row.text for row in rows if row.reason is None), settings.normalize)
    texts, masked = mask(normalized, settings.personal)
    counts = Counter({f"masked.{kind}": number for kind, number in masked.items()})
    readable: list[Screened] = []
    hits = [np.empty(0, np.uint64)]
    limits = settings.filters
    for batch, features in batches(texts, limits.repetition_min_words, limits.max_chars):
        reasons = drop_reasons(batch, features, limits)
        leaks = [None] * len(batch) if index is None else index.find(features)
        for text, reason, leak in zip(batch, reasons, leaks, strict=True):
            if reason is not None or leak is None:
                readable.append(Screened(text, *(reason or (None, None))))
                continue
            counts.update(f"contaminated.{name}" for name in leak.names)
            hits.append(leak.hashes)
            # Without the contaminated lines, if the settings say so and enough of the document is left.
            rest = without_lines(text, leak.lines) if settings.decontamination.unit == "line" else ""
            if rest and not too_short(rest, limits):
                readable.append(Screened(rest, None, None))
            else:
                readable.append(Screened(text, "contaminated", f"{', '.join(leak.names)}: {leak.shared}"))
    # The unreadable rows go back between them.
    results = iter(readable)
    in_order = [next(results) if row.reason is None else Screened(row.text, row.reason, row.detail) for row in rows]
    return in_order, counts, np.unique(np.concatenate(hits))
