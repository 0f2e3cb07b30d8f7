"""A word in many sentences: each occurrence with its vector, and the distances between them.

A word is found by its morphemes: 사랑 in 사랑해, 걷다 in 걸었다. The ending of a verb in its dictionary form (사랑하다)
is left out. "배/NNG" takes only morphemes with that tag.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from korbert.errors import SettingsError
from korbert.modeling import Model as Network
from korbert.tokenization import Analysis, AnyTokenizer, Tokenizer
from korbert.tokenization.encoding import Span, assemble, span_of
from korbert.vectors.encoder import unit
from korbert.vectors.parts import vectors_of_pieces
from korbert.vectors.settings import VectorSettings

_TAGGED = re.compile(r"\S+/[A-Z]{1,4}(-[IR])?(\s+\S+/[A-Z]{1,4}(-[IR])?)*")
_Morphemes = list[tuple[str, str]]
"""Form and tag of each, or the beginning of the tag."""


@dataclass(frozen=True)
class Occurrence:
    """One occurrence: `text[start:end]` of text `number`, from 0. morphemes: as in "사랑/NNG".

    vector: (D,) float32, the mean over its pieces; None beyond the model's maximum length.
    """

    number: int
    text: str
    span: Span
    morphemes: str
    vector: NDArray[np.float32] | None


def morphemes_of(word: str, analyze: Any) -> _Morphemes:
    """The morphemes to search for. SettingsError for a word without morphemes."""
    if _TAGGED.fullmatch(word.strip()):
        morphemes = [(form, tag) for form, _, tag in (part.rpartition("/") for part in word.split())]
    else:
        analysis: Analysis = analyze(word)
        morphemes = list(zip(analysis.forms, analysis.tags, strict=True))
        while len(morphemes) > 1 and morphemes[-1][1].startswith("E"):
            del morphemes[-1]
        morphemes = [(form, tag[0]) for form, tag in morphemes]  # finds a noun as a name, a verb not as a particle
    if not morphemes:
        raise SettingsError(f"{word!r:.60}: has no morphemes: give a word, or one with its tag, as in 사랑/NNG")
    return morphemes


def occurrences_of(
    network: Network,
    tokenizer: AnyTokenizer,
    word: str,
    texts: Sequence[str],
    settings: VectorSettings,
    max_length: int,
) -> list[Occurrence]:
    """All occurrences, in order; of the settings, layer and mix are used."""
    wanted = morphemes_of(word, tokenizer.analyzer.analyze)
    matches: list[tuple[int, str, Analysis, int]] = []  # the last: the first of the word's morphemes
    for number, (text, analysis) in enumerate(zip(texts, tokenizer.analyzer.analyze_many(texts), strict=True)):
        pairs = list(zip(analysis.forms, analysis.tags, strict=True))
        for first in range(len(pairs) - len(wanted) + 1):
            here = zip(wanted, pairs[first : first + len(wanted)], strict=True)
            if all(form == own and kind.startswith(tag) for (form, tag), (own, kind) in here):
                matches.append((number, text, analysis, first))

    encodings = {
        number: assemble(tokenizer.pieces(analysis, text), None, tokenizer.frame, max_length)
        for number, text, analysis, _ in matches
    }
    rows = vectors_of_pieces(network, tokenizer, list(encodings.values()), settings)
    vectors = dict(zip(encodings, rows, strict=True))
    occurrences = []
    for number, text, analysis, first in matches:
        last = first + len(wanted) - 1
        span = span_of(list(zip(analysis.starts, analysis.ends, strict=True)), first, last)
        shown = " ".join(f"{analysis.forms[index]}/{analysis.tags[index]}" for index in range(first, last + 1))
        encoding = encodings[number]
        if isinstance(tokenizer, Tokenizer):
            pieces = [index for index, owner in enumerate(encoding.morphemes) if first <= owner <= last]
        else:  # pieces belong to no morpheme here: take those that overlap the word
            pieces = [index for index, (start, end) in enumerate(encoding.spans) if start < span[1] and end > span[0]]
        vector = vectors[number][pieces].mean(axis=0) if pieces else None
        occurrences.append(Occurrence(number, text, span, shown, vector))
    return occurrences


def distances(occurrences: Sequence[Occurrence]) -> NDArray[np.float64]:
    """(N, N) cosine distances, 0 to 2, of N occurrences that have a vector."""
    if not occurrences:
        return np.zeros((0, 0))
    vectors = unit(np.array([occurrence.vector for occurrence in occurrences], dtype=np.float32))
    result = 1.0 - vectors.astype(np.float64) @ vectors.T.astype(np.float64)
    np.fill_diagonal(result, 0.0)
    return np.asarray(np.maximum(result, 0.0))
