"""Masks personal data in the texts of a corpus: kinds and forms are those of korbert/personal_data.py."""

from collections import Counter
from collections.abc import Iterable

from korbert.corpus.cleaning.normalize import in_joined_batches
from korbert.corpus.corpus_settings import PersonalSettings
from korbert.personal_data import MASKS, mask_text

_BATCH_CHARS = 1 << 14


def mask(texts: Iterable[str], settings: PersonalSettings) -> tuple[list[str], Counter[str]]:
    """The texts with personal data replaced by the MASKS of its kind, and the number of masks by kind."""
    kinds = [kind for kind in MASKS if getattr(settings, kind)]
    counts: Counter[str] = Counter()

    def masked(text: str) -> str:
        result, found = mask_text(text, kinds)
        counts.update(found)
        return result

    return list(in_joined_batches(texts, _BATCH_CHARS, masked)), counts
