"""Vectors of morphemes from Kiwi's own language model, and of the pieces that are morphemes.

The model (CoNgram, in the package kiwipiepy_model, Apache 2.0) knows some 70,000 morphemes, from far more text than one
usually has. Kiwi tells the cosine of any two, not the vectors; but the cosines with a few hundred others determine a
vector, up to a rotation (Nyström's method: Williams and Seeger 2001).
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from korbert.tokenization.morphemes import load_kiwi
from korbert.tokenization.tokenizer import Tokenizer

if TYPE_CHECKING:
    from kiwipiepy import Kiwi

_ANCHORS = 512  # twice the numbers of a vector; cosines come out within 3e-5
_LEAST = 1e-5  # eigenvalues below this share of the largest one are rounding
_SOME = 100  # any entry of the model
_ALL = 10**7  # more than there are; Kiwi reserves 8 bytes for each

Vectors = NDArray[np.float32]


def piece_vectors(tokenizer: Tokenizer, counts: Iterable[tuple[str, str, int]]) -> tuple[NDArray[np.int64], Vectors]:
    """(P,) the ids of pieces that are morphemes known to Kiwi's language model, and (P, D) their vectors.

    counts: (form, tag, occurrences) in the corpus. A form with several tags gets their mean, weighted by occurrences.
    The mean of all vectors is subtracted: it alone gives any two morphemes a cosine of about 0.5.
    """
    rows = []
    for form, tag, count in counts:
        keys = tokenizer.encode_forms([form, form], [True, False])  # the same, but for marks of eojeols
        if ids := [key[0] for key in set(keys) if len(key) == 1]:
            rows.append((form, tag, count, ids))
    kiwi = load_kiwi(tokenizer.analyzer.options.model_dump(), 1)
    known_rows, vectors = morpheme_vectors(kiwi, [(form, tag) for form, tag, _, _ in rows])
    centred = vectors - vectors.mean(axis=0)

    sums = np.zeros((tokenizer.vocab_size, vectors.shape[1]))
    total = np.zeros(tokenizer.vocab_size)
    for row, vector in zip(known_rows.tolist(), centred, strict=True):
        _, _, count, ids = rows[row]
        sums[ids] += count * vector
        total[ids] += count
    piece_ids = np.flatnonzero(total)
    return piece_ids, (sums[piece_ids] / total[piece_ids, None]).astype(np.float32)


def morpheme_vectors(kiwi: "Kiwi", morphemes: Sequence[tuple[str, str]]) -> tuple[NDArray[np.int64], Vectors]:
    """(K,) which of the morphemes (form, tag) Kiwi's language model knows, and (K, D) their vectors, of length 1.

    Their cosines are Kiwi's. Their axes are arbitrary.
    """
    cosine = kiwi.morpheme_similarity
    entries = sorted(entry.id for entry in kiwi.most_similar_morphemes(_SOME, top_n=_ALL))
    names: dict[tuple[str, str], int] = {}
    for id in reversed(entries):
        token = kiwi.morpheme(id)
        if token.form:
            names[token.form, token.tag] = id

    def target(form: str, tag: str) -> int | tuple[str, str] | None:
        """What Kiwi takes for a morpheme. An allomorph (는) is not an entry, and has the vector of one (은)."""
        if (form, tag) in names:
            return names[form, tag]
        try:
            cosine((form, tag), _SOME)
        except ValueError:  # unknown, or one form of several senses
            return None
        return form, tag

    targets = [target(*morpheme) for morpheme in morphemes]
    known_rows = np.array([row for row, morpheme in enumerate(targets) if morpheme is not None], dtype=np.int64)
    anchors = entries[:: max(1, len(entries) // _ANCHORS)][:_ANCHORS]
    anchor_cosines = np.array([[cosine(anchor, other) for other in anchors] for anchor in anchors])
    np.fill_diagonal(anchor_cosines, 1.0)  # of an entry with itself Kiwi says -100000
    values, axes = np.linalg.eigh((anchor_cosines + anchor_cosines.T) / 2)
    is_large = values > _LEAST * values[-1]
    cosines = np.array([[cosine(targets[row], other) for other in anchors] for row in known_rows])
    cosines[cosines < -1] = 1.0
    return known_rows, (cosines @ (axes[:, is_large] / np.sqrt(values[is_large]))).astype(np.float32)
