"""Text of evaluation sets that stands in a corpus: found by n-grams of terms that both share.

A term is letters and digits in a row, with a-z for A-Z. Of a text as long as an n-gram every n-gram counts, of a
shorter one the whole text. A text shorter than that is too common to tell from a stock phrase, and is not looked for.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corpus.cleaning.features import BATCH_CHARS, MAX_CHARS, Features, Hashes, Ints
from corpus.cleaning.normalize import normalize_many
from corpus.documents import in_batches
from corpus.execution.parts import named_in_errors, written_aside
from corpus.readers import chunks, rows
from corpus.readers.records import File
from corpus.settings import CleanSettings, DecontaminationSettings
from korbert.errors import CorpusError

__all__ = ["Index", "Leak", "load_index", "make_index"]

_ARRAYS = ("hashes", "owners", "beginnings", "sets", "sizes")
_OVERLAP = 1 << 12  # characters: more than any n-gram has
_SIEVE_BITS = 22  # of a hash: what is not in this table is not looked up


class Leak(NamedTuple):
    """What a document shares with evaluation sets.

    names: of the sets. shared: the first n-gram that both have. lines: numbers of the lines that such n-grams touch.
    hashes: of all those n-grams.
    """

    names: tuple[str, ...]
    shared: str
    lines: tuple[int, ...]
    hashes: Hashes


class Index:
    """The n-grams of all evaluation sets.

    names: of the sets. hashes: (R,) of n-grams, sorted. owners: (R,) the text that each is of. beginnings: sorted
    hashes of what n-grams begin with, as many terms as the shortest has: few places of a corpus have more to be looked
    at. sets: (T,) the set that each text is of. sizes: the lengths of n-grams that are looked up, in terms, the
    shortest first.
    """

    def __init__(
        self, names: Sequence[str], hashes: Hashes, owners: Ints, beginnings: Hashes, sets: Ints, sizes: Ints
    ) -> None:
        self._names = names
        self._hashes = hashes
        self._owners = owners
        self._beginnings = beginnings
        self._sets = sets
        self._sizes = [int(size) for size in sizes]
        self._sieve = np.zeros(1 << _SIEVE_BITS, bool)
        self._sieve[_sieved(beginnings)] = True

    def find(self, texts: Sequence[str], features: Features) -> list[Leak | None]:
        """What each text shares with the sets, in order. features: of the texts, as `batches` gives them."""
        found = self._find(features)
        for place, text in enumerate(texts):
            if len(text) > MAX_CHARS:
                found[place] = self._find_in_long(text)
        return found

    def _find(self, features: Features) -> list[Leak | None]:
        found: dict[int, list[tuple[int, int, int]]] = {}
        for size, keys, starts in features.term_ngrams(*self._sizes, only=self._may_begin):
            for place in self._known(keys):
                first = int(starts[place])
                ngrams = found.setdefault(int(features.terms.texts[first]), [])
                ngrams.append((first, first + size - 1, int(keys[place])))
        return [
            self._leak(features, sorted(found[place])) if place in found else None for place in range(len(features))
        ]

    def _find_in_long(self, text: str) -> Leak | None:
        """The same for one text, looked at some millions of characters at a time, which overlap."""
        found: list[Leak] = []
        for start in range(0, max(1, len(text) - _OVERLAP), MAX_CHARS - _OVERLAP):
            (leak,) = self._find(Features([text[start : start + MAX_CHARS]]))
            if leak is not None:
                before = text.count("\n", 0, start)
                found.append(leak._replace(lines=tuple(before + line for line in leak.lines)))
        if not found:
            return None
        names = {name for leak in found for name in leak.names}
        lines = {line for leak in found for line in leak.lines}
        hashes = np.unique(np.concatenate([leak.hashes for leak in found]))
        in_order = tuple(name for name in self._names if name in names)
        return Leak(in_order, found[0].shared, tuple(sorted(lines)), hashes)

    def _may_begin(self, keys: Hashes) -> Ints:
        """Where the shortest of the n-grams that are looked up are the beginnings of n-grams of the index."""
        places = np.flatnonzero(self._sieve[_sieved(keys)])
        return places[_are_in(self._beginnings, keys[places])]

    def _known(self, keys: Hashes) -> Ints:
        """Where the keys are that the index holds."""
        return np.flatnonzero(_are_in(self._hashes, keys))

    def _leak(self, features: Features, ngrams: Sequence[tuple[int, int, int]]) -> Leak:
        terms, lines = features.terms, features.lines
        shared = features.joined[terms.starts[ngrams[0][0]] : terms.ends[ngrams[0][1]]]
        touched: set[int] = set()
        for first, last, _ in ngrams:
            begin, end = np.searchsorted(lines.starts, terms.starts[[first, last]], side="right") - 1
            touched.update(features.line_numbers[begin : end + 1].tolist())
        hashes = np.unique(np.array([key for *_, key in ngrams], np.uint64))
        sets = np.unique(self._sets[self._texts_of(hashes)])
        return Leak(
            tuple(self._names[number] for number in sets), " ".join(shared.split()), tuple(sorted(touched)), hashes
        )

    def _texts_of(self, hashes: Hashes) -> Ints:
        begin, end = (np.searchsorted(self._hashes, hashes, side) for side in ("left", "right"))
        return np.unique(np.concatenate([self._owners[a:b] for a, b in zip(begin, end, strict=True)]))

    def seen(self, hashes: Hashes) -> dict[str, int]:
        """How many texts of each set have one of those n-grams."""
        counts = np.bincount(self._sets[self._texts_of(hashes)] if len(hashes) else [], minlength=len(self._names))
        return dict(zip(self._names, counts.tolist(), strict=True))

    def texts(self) -> dict[str, tuple[int, int]]:
        """Of each set, how many texts it has, and how many of them are long enough to be looked for."""
        everyone = np.bincount(self._sets, minlength=len(self._names))
        looked_for = np.bincount(self._sets[np.unique(self._owners)], minlength=len(self._names))
        return dict(zip(self._names, zip(everyone.tolist(), looked_for.tolist(), strict=True), strict=True))

    def save(self, path: Path, output: Path) -> None:
        """Writes what `load_index` takes; output: whose scratch folder it is written in."""
        values = (self._hashes, self._owners, self._beginnings, self._sets, np.array(self._sizes))
        arrays = {"names": np.array(self._names), **dict(zip(_ARRAYS, values, strict=True))}

        def write(aside: Path) -> None:
            with aside.open("wb") as file:
                np.savez(file, **arrays)  # type: ignore[arg-type]

        written_aside(path, write, output)


def make_index(settings: CleanSettings, files: Mapping[str, Sequence[File]]) -> Index:
    """The index of the evaluation sets of the settings, whose texts are made uniform as the corpus is.

    files: name of a set -> its files. Raises CorpusError where a set holds no text, or none that is long enough.
    """
    texts: list[str] = []
    sets: list[int] = []
    for number, one in enumerate(settings.evaluation):
        cut = chunks(one.source(), files[one.name], settings.part_bytes, settings.filters.max_record_bytes)
        found = [row for chunk in cut for row in rows(chunk)]
        good = [row.text for row in found if row.reason is None]
        if not good:
            told = f" ({found[0].detail})" if found else ""
            raise CorpusError(f"evaluation set {one.name!r}: no text in its files{told}: see its path, kind and text")
        texts += normalize_many(good, settings.normalize)
        sets += [number] * len(good)
    hashes, owners, beginnings, sizes = _ngrams(texts, settings.decontamination)
    order = np.argsort(hashes, kind="stable")
    names = [one.name for one in settings.evaluation]
    index = Index(names, hashes[order], owners[order], beginnings, np.array(sets), sizes)
    for name, (_, looked_for) in index.texts().items():
        if not looked_for:
            raise CorpusError(
                f"evaluation set {name!r}: no text is long enough to be looked for: see [clean.decontamination]"
            )
    return index


@lru_cache(1)
def load_index(path: Path) -> Index:
    """The index that was saved there. One is kept in memory."""
    with named_in_errors(path), np.load(path) as arrays:
        return Index(arrays["names"].tolist(), *(arrays[name] for name in _ARRAYS))


def _ngrams(texts: Sequence[str], settings: DecontaminationSettings) -> tuple[Hashes, Ints, Hashes, Ints]:
    """Hashes of all n-grams, the text of each, what they begin with, and which lengths are to be looked up."""
    hashes, owners, beginnings, sizes = [], [], [], [settings.min_terms]
    done = 0
    for batch in in_batches(texts, BATCH_CHARS):
        features = Features(batch)
        counts = features.count(features.terms)
        begun = np.zeros(len(features.terms.starts), np.uint64)
        for size, keys, starts in features.term_ngrams(*range(settings.min_terms, settings.terms + 1)):
            if size == settings.min_terms:
                begun[starts] = keys
            whose = features.terms.texts[starts]
            chosen = (counts[whose] >= size) if size == settings.terms else (counts[whose] == size)
            chosen &= _telling(features, starts, size, settings)
            hashes.append(keys[chosen])
            owners.append(whose[chosen] + done)
            beginnings.append(begun[starts[chosen]])
            if chosen.any():
                sizes.append(size)
        done += len(batch)
    found = np.concatenate(hashes), np.concatenate(owners), np.unique(np.concatenate(beginnings))
    return *found, np.unique(np.array(sizes, np.int64))


def _telling(features: Features, starts: Ints, size: int, settings: DecontaminationSettings) -> NDArray[np.bool_]:
    """Which n-grams have enough characters, and are not the same few terms again and again."""
    window = starts[:, None] + np.arange(size)
    chars = (features.terms.ends - features.terms.starts)[window].sum(axis=1)
    ordered = np.sort(features.term_hashes[window], axis=1)
    different = 1 + (ordered[:, 1:] != ordered[:, :-1]).sum(axis=1)
    told: NDArray[np.bool_] = (chars >= settings.min_chars) & (2 * different > size)
    return told


def _are_in(held: Hashes, keys: Hashes) -> NDArray[np.bool_]:
    """(N,) which keys are in a sorted array that is not empty."""
    found: NDArray[np.bool_] = held[np.minimum(np.searchsorted(held, keys), len(held) - 1)] == keys
    return found


def _sieved(hashes: Hashes) -> Hashes:
    return hashes >> np.uint64(64 - _SIEVE_BITS)
