"""Decontamination: finds text of evaluation sets in the corpus by shared n-grams of terms.

A term is letters and digits in a row, A-Z lowercased. A text of `terms` terms or more is searched for by each
of its n-grams of `terms` terms, a shorter text as a whole, and a text of fewer than `min_terms` terms not at all: it
may be a stock phrase. N-grams of few characters, or that mostly repeat themselves, are not searched for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from korbert.corpus.cleaning.features import Features, batches
from korbert.corpus.cleaning.hashing import BoolArray, HashArray, IntArray, is_in
from korbert.corpus.cleaning.normalize import normalize_many
from korbert.corpus.cleaning.personal import mask
from korbert.corpus.corpus_settings import CleanSettings, DecontaminationSettings
from korbert.corpus.execution.parts import named_in_errors, written_aside
from korbert.corpus.readers import chunks, rows
from korbert.errors import CorpusError
from korbert.messages import Message
from korbert.records import File

_NO_TEXT = (None, "bad_text", "redirect", "not_an_article")  # reasons of records that have no text to look for
_SIEVE_BITS = 24  # upper bits of a hash: an array of flags rules most hashes out before any search
_SIEVE_SHIFT = np.uint64(64 - _SIEVE_BITS)


class Leak(NamedTuple):
    """What a document shares with evaluation sets.

    names: of the sets. shared: text of the first shared n-gram. lines: numbers of the lines that shared n-grams touch,
    from 0. hashes: of all shared n-grams.
    """

    names: tuple[str, ...]
    shared: str
    lines: tuple[int, ...]
    hashes: HashArray


@dataclass(frozen=True, eq=False)
class NgramIndex:
    """The n-grams of all evaluation sets.

    names: of the sets. hashes: (R,) of the n-grams, sorted. owners: (R,) the text of each n-gram. sets: (T,) the set of
    each text. sizes: lengths of the n-grams in terms, the shortest first.
    """

    names: NDArray[np.str_]
    hashes: HashArray
    owners: IntArray
    sets: IntArray
    sizes: IntArray

    @cached_property
    def sieve(self) -> BoolArray:
        """(2^24,) whether the hash of any n-gram has these upper 24 bits."""
        sieve = np.zeros(1 << _SIEVE_BITS, bool)
        sieve[self.hashes >> _SIEVE_SHIFT] = True
        return sieve

    def find(self, features: Features) -> list[Leak | None]:
        """What each text shares with the sets, in order. features: of the texts."""
        # Shared n-grams, as (first term, last term, hash), by text.
        shared: dict[int, list[tuple[int, int, int]]] = {}
        for size, keys, starts in features.term_ngrams(*self.sizes.tolist()):
            candidates = np.flatnonzero(self.sieve[keys >> _SIEVE_SHIFT])
            for index in candidates[is_in(keys[candidates], self.hashes)]:
                first = int(starts[index])
                ngrams = shared.setdefault(int(features.terms.texts[first]), [])
                ngrams.append((first, first + size - 1, int(keys[index])))

        leaks: list[Leak | None] = [None] * len(features)
        terms = features.terms
        lines = features.lines
        for text, ngrams in shared.items():
            ngrams.sort()
            touched_lines: set[int] = set()
            for first, last, _ in ngrams:
                begin, end = np.searchsorted(lines.starts, terms.starts[[first, last]], side="right") - 1
                touched_lines.update(features.line_numbers[begin : end + 1].tolist())
            first, last, _ = ngrams[0]
            words = features.joined[terms.starts[first] : terms.ends[last]].split()
            hashes = np.unique(np.array([key for *_, key in ngrams], np.uint64))
            names = tuple(self.names[np.unique(self.sets[self.texts_of(hashes)])].tolist())
            leaks[text] = Leak(names, " ".join(words), tuple(sorted(touched_lines)), hashes)
        return leaks

    def texts_of(self, hashes: HashArray) -> IntArray:
        """Returns the numbers of the texts of the sets that hold an n-gram with one of these hashes."""
        begin, end = (np.searchsorted(self.hashes, hashes, side) for side in ("left", "right"))
        owners = [self.owners[a:b] for a, b in zip(begin, end, strict=True)]
        return np.unique(np.concatenate([np.empty(0, np.int64), *owners]))

    def text_counts(self, hashes: HashArray) -> dict[str, dict[str, int]]:
        """Counts texts by set: all (`texts`), those long enough to be looked for, and those found in the corpus.

        hashes: of the n-grams that the corpus holds. A text is found if it has one of these n-grams.
        """
        sets_by_kind = {"texts": self.sets, "looked_for": self.sets[np.unique(self.owners)]}
        sets_by_kind["found"] = self.sets[self.texts_of(hashes)]
        counts = {kind: np.bincount(sets, minlength=len(self.names)).tolist() for kind, sets in sets_by_kind.items()}
        names = enumerate(self.names.tolist())
        return {name: {kind: numbers[i] for kind, numbers in counts.items()} for i, name in names}

    def save(self, path: Path, output: Path) -> Path:
        """Writes the file that `load_index` reads. output: its scratch folder holds the file while it is written."""
        arrays = {field.name: getattr(self, field.name) for field in fields(self)}
        return written_aside(path, lambda file: np.savez(file, **arrays), output)


def make_index(settings: CleanSettings, files: Mapping[str, Sequence[File]]) -> NgramIndex:
    """The index of the evaluation sets of the settings, their texts normalized and masked as the corpus is.

    files: name of a set -> its files. Raises CorpusError if a set holds no text, records that cannot be read,
    or no text that is long enough.
    """
    texts: list[str] = []
    sets: list[int] = []
    for number, evaluation in enumerate(settings.evaluation):
        name = evaluation.name
        set_chunks = chunks(evaluation.source(), files[name], settings.part_bytes, settings.filters.max_record_bytes)
        records = [row for chunk in set_chunks for row in rows(chunk)]
        readable = [row.text for row in records if row.reason is None]
        if not readable:
            cause = Message(" ({detail})", detail=records[0].detail) if records else ""
            raise CorpusError(
                "evaluation set {name!r}: no text in its files{why}: see its path, kind and text", name=name, why=cause
            )
        faulty_rows = [row for row in records if row.reason not in _NO_TEXT]
        if faulty_rows:
            raise CorpusError(
                "evaluation set {name!r}: {faulty:,} of {records:,} records cannot be read, first "
                "{place}: {detail}: their text would not be looked for: repair them, or set kind and encoding",
                name=name,
                faulty=len(faulty_rows),
                records=len(records),
                place=faulty_rows[0].place,
                detail=faulty_rows[0].detail,
            )
        texts += mask(normalize_many(readable, settings.normalize), settings.personal)[0]
        sets += [number] * len(readable)
    hashes, owners, sizes = _ngrams(texts, settings.decontamination)
    order = np.argsort(hashes, kind="stable")
    names = np.array([evaluation.name for evaluation in settings.evaluation])
    index = NgramIndex(names, hashes[order], owners[order], np.array(sets), sizes)
    for name, counts in index.text_counts(np.empty(0, np.uint64)).items():
        if not counts["looked_for"]:
            raise CorpusError("evaluation set {name!r}: no text is long enough: see [clean.decontamination]", name=name)
    return index


@lru_cache(1)
def load_index(path: Path) -> NgramIndex:
    """The index saved in that file. The latest one is kept in memory."""
    with named_in_errors(path), np.load(path) as arrays:
        return NgramIndex(**arrays)


def _ngrams(texts: Sequence[str], settings: DecontaminationSettings) -> tuple[HashArray, IntArray, IntArray]:
    """Returns the hashes, owners and sizes that NgramIndex holds, but with the hashes not yet sorted."""
    hashes = []
    owners = []
    sizes = [settings.min_terms]
    num_texts = 0
    for batch, features in batches(texts):
        terms = features.terms
        counts = features.count(terms)
        for size, keys, starts in features.term_ngrams(*range(settings.min_terms, settings.terms + 1)):
            text_numbers = terms.texts[starts]
            # Every n-gram of a long text, and shorter texts as a whole.
            is_chosen = (counts[text_numbers] >= size) if size == settings.terms else (counts[text_numbers] == size)
            # Only n-grams with enough characters, of whose terms more than half differ.
            term_indices = starts[:, None] + np.arange(size)
            is_chosen &= (terms.ends - terms.starts)[term_indices].sum(axis=1) >= settings.min_chars
            sorted_hashes = np.sort(features.term_hashes[term_indices], axis=1)
            is_chosen &= 2 * (1 + (sorted_hashes[:, 1:] != sorted_hashes[:, :-1]).sum(axis=1)) > size
            hashes.append(keys[is_chosen])
            owners.append(text_numbers[is_chosen] + num_texts)
            if is_chosen.any():
                sizes.append(size)
        num_texts += len(batch)
    return np.concatenate(hashes), np.concatenate(owners), np.unique(np.array(sizes, np.int64))
