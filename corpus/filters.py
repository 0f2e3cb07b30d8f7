"""Reasons to drop a document. A filter is a function that returns a reason in snake_case, or None to keep.

Visible characters are those that are not white space. Hangul syllables are U+AC00 to U+D7A3; lone jamo (ㅋㅋ) are none.
"""

import numpy as np

from corpus.documents import Document
from corpus.settings import FilterSettings

__all__ = ["drop_reason", "hangul_share", "too_little_hangul", "too_short", "visible_chars"]

_FIRST_SYLLABLE, _LAST_SYLLABLE = 0xAC00, 0xD7A3


def drop_reason(document: Document, settings: FilterSettings) -> tuple[str, str] | None:
    """The first reason to drop the document, with the measure behind it for people to read; None to keep."""
    if reason := too_short(document, settings.min_chars):
        return reason, f"{visible_chars(document.text)} visible characters"
    if reason := too_little_hangul(document, settings.min_hangul_share):
        return reason, f"Hangul share {hangul_share(document.text):.2f}"
    return None


def too_short(document: Document, min_chars: int) -> str | None:
    return "too_short" if visible_chars(document.text) < min_chars else None


def too_little_hangul(document: Document, min_share: float) -> str | None:
    return "too_little_hangul" if hangul_share(document.text) < min_share else None


def visible_chars(text: str) -> int:
    return sum(map(len, text.split()))


def hangul_share(text: str) -> float:
    """Hangul syllables to visible characters, 0 where there are none."""
    units = np.frombuffer(text.encode("utf-16-le"), np.uint16)  # all syllables lie in the basic plane
    syllables = int(np.count_nonzero((units >= _FIRST_SYLLABLE) & (units <= _LAST_SYLLABLE)))
    return syllables / max(1, visible_chars(text))
