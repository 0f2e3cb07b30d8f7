"""What filters ask of texts, measured over many texts at once: characters, lines and words as flat arrays.

A loop over documents would cost more than all the arithmetic: most documents are a line of a review.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from unicodedata import category, name

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from corpus.documents import in_batches

__all__ = [
    "BATCH_CHARS",
    "MAX_CHARS",
    "Features",
    "Floats",
    "Hashes",
    "Ints",
    "Measure",
    "batches",
    "hashes_of",
    "measured",
    "repeats",
]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Hashes = NDArray[np.uint64]
Ints = NDArray[np.int64]

SPACE, HANGUL, JAMO, LATIN, DIGIT, HAN, KANA, OTHER, SYMBOL = range(9)
_KINDS = 9
_LINE_FEED = 10
_SMALLEST_REPEATED = 2  # words, from which on longer n-grams are only looked for where shorter ones stand twice
BATCH_CHARS = 1 << 18  # of texts measured at once: what the processor's caches hold
MAX_CHARS = 1 << 22  # of one text measured at once: a hundred bytes of memory each
_CAPITALS, _TO_SMALL = (ord("A"), ord("Z")), np.uint32(ord("a") - ord("A"))
_ENDINGS = ".?!…。？！~\"'”’)」』》〉]】ㅋㅎㅠㅜ^♡♥"  # what closes a line of prose, of Korean reviews too
_BULLETS = "-*•·▶▷■□●○◆◇※→▪◦☞✓"
_CHAR_MIX, _WORD_MIX, _BASE = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93), 0xB5297A4D2C7E9D6B


@dataclass(frozen=True)
class Spans:
    """Stretches of the characters. starts, ends: half-open; texts: which text each is of. All (S,) int64."""

    starts: Ints
    ends: Ints
    texts: Ints


class Features:
    """Measures of D texts. What is called a share is 0 where there is nothing to share.

    min_words: in texts of fewer words no n-gram of words is looked at.
    """

    def __init__(self, texts: Sequence[str], min_words: int = 0) -> None:
        self._count = len(texts)
        self._ngrams: dict[int, tuple[Hashes, Ints]] = {}
        self._min_words = min_words
        self.joined = "".join(f"{text}\n" for text in texts)  # what places in lines count through
        self.codes = np.frombuffer(self.joined.encode("utf-32-le", "surrogatepass"), "<u4")
        self._bounds = np.cumsum([0, *(len(text) + 1 for text in texts)])
        self._kinds = _kinds_of(self.codes)
        self._text_of = np.repeat(np.arange(len(texts)), np.diff(self._bounds))
        self._visible_before: Ints = np.append(0, np.cumsum(self._kinds != SPACE))

    def __len__(self) -> int:
        return self._count

    @cached_property
    def kind_counts(self) -> Ints:
        """(D, 9) how many characters of each kind."""
        flat = np.bincount(self._text_of * _KINDS + self._kinds, minlength=len(self) * _KINDS)
        return flat.reshape(len(self), _KINDS)

    @cached_property
    def visible(self) -> Ints:
        """(D,) characters that are not white space."""
        return self._visible(self._bounds[:-1], self._bounds[1:])

    def share_of(self, *kinds: int) -> Floats:
        """(D,) characters of those kinds among the visible ones."""
        return _share(self.kind_counts[:, kinds].sum(axis=1), self.visible)

    @cached_property
    def hangul_share(self) -> Floats:
        """(D,) Hangul syllables among letters and digits; lone jamo (ㅋㅋ) are neither."""
        letters = self.kind_counts[:, (HANGUL, LATIN, DIGIT, HAN, KANA, OTHER)].sum(axis=1)
        return _share(self.kind_counts[:, HANGUL], letters)

    @cached_property
    def lines(self) -> Spans:
        """Lines with something in them."""
        ends = np.flatnonzero(self.codes == _LINE_FEED)
        starts = np.append(0, ends[:-1] + 1)
        filled = self._visible(starts, ends) > 0
        return Spans(starts[filled], ends[filled], self._text_of[ends[filled]])

    @cached_property
    def words(self) -> Spans:
        """What stands between white space."""
        return self._stretches(self._kinds != SPACE)

    @cached_property
    def word_hashes(self) -> Hashes:
        """(W,) of each word."""
        return hashes_of(self.codes, self.words.starts, self.words.ends)

    @cached_property
    def terms(self) -> Spans:
        """Letters and digits in a row: words without their punctuation, cut at it."""
        return self._stretches((self._kinds != SPACE) & (self._kinds != SYMBOL))

    @cached_property
    def term_hashes(self) -> Hashes:
        """(T,) of each term, with a-z for A-Z."""
        return hashes_of(self._small, self.terms.starts, self.terms.ends)

    @cached_property
    def numberless_term_hashes(self) -> Hashes:
        """(T,) of each term, with a-z for A-Z and 0 for every number."""
        digit = self._kinds == DIGIT
        kept = ~(digit & np.append(False, digit[:-1]))
        codes = np.where(digit, np.uint32(ord("0")), self._small)[kept]
        place = np.append(0, np.cumsum(kept))
        return hashes_of(codes, place[self.terms.starts], place[self.terms.ends])

    @cached_property
    def _small(self) -> NDArray[np.uint32]:
        capital = (self.codes >= _CAPITALS[0]) & (self.codes <= _CAPITALS[1])
        return np.where(capital, self.codes + _TO_SMALL, self.codes)

    def term_ngrams(
        self, *sizes: int, hashes: Hashes | None = None, only: Callable[[Hashes], Ints] | None = None
    ) -> Iterator[tuple[int, Hashes, Ints]]:
        """For each size, in order: hashes of so many terms in a row, the same in every text, and where they begin.

        hashes: (T,) of each term; None: term_hashes. only: the places of those hashes of the smallest size that are
        wanted, and go on to larger ones; None: all.
        """
        hashes = self.term_hashes if hashes is None else hashes
        starts = np.arange(len(self.terms.texts))
        keys: Hashes = np.full(len(starts), _CHAR_MIX)
        for size in range(1, max(sizes) + 1):
            whole = np.flatnonzero(starts + size <= len(self.terms.texts))
            whole = whole[self.terms.texts[starts[whole] + size - 1] == self.terms.texts[starts[whole]]]
            starts = starts[whole]
            keys = _mixed(keys[whole], hashes[starts + size - 1])
            if size == min(sizes) and only is not None:
                wanted = only(keys)
                keys, starts = keys[wanted], starts[wanted]
            if size in sizes:
                yield size, keys, starts

    def count(self, spans: Spans) -> Ints:
        """(D,) how many of the spans each text has."""
        return np.bincount(spans.texts, minlength=len(self))

    def line_share(self, chosen: Bools) -> Floats:
        """(D,) the chosen among a text's lines. chosen: (lines,)."""
        return _share(np.bincount(self.lines.texts[chosen], minlength=len(self)), self.count(self.lines))

    def line_char_share(self, chosen: Bools) -> Floats:
        """(D,) visible characters in the chosen lines among all of a text."""
        lines = self.lines
        sizes = self._visible(lines.starts[chosen], lines.ends[chosen])
        return _share(np.bincount(lines.texts[chosen], sizes, len(self)), self.visible)

    @cached_property
    def line_numbers(self) -> Ints:
        """(lines,) the number of each in its text, from 0; lines with nothing in them count too."""
        ends = np.flatnonzero(self.codes == _LINE_FEED)
        first = np.searchsorted(ends, self._bounds[:-1])
        found: Ints = np.searchsorted(ends, self.lines.ends) - first[self.lines.texts]
        return found

    @cached_property
    def repeated_lines(self) -> Bools:
        """(lines,) those that are equal to an earlier line of their text."""
        lines = self.lines
        return repeats(hashes_of(self.codes, lines.starts, lines.ends), lines.texts)

    @cached_property
    def closed_lines(self) -> Bools:
        """(lines,) those that end as sentences do."""
        return np.isin(self.codes[self._last_visible], _codes(_ENDINGS))

    @cached_property
    def bullet_lines(self) -> Bools:
        """(lines,) those that begin with a bullet."""
        first = self.words.starts[np.searchsorted(self.words.starts, self.lines.starts)]
        return np.isin(self.codes[first], _codes(_BULLETS))

    @cached_property
    def _last_visible(self) -> Ints:
        """(lines,) where each line's last visible character is."""
        return self.words.ends[np.searchsorted(self.words.ends, self.lines.ends, side="right") - 1] - 1

    def count_in_lines(self, places: Ints) -> Ints:
        """(lines,) how many of the places each line holds; they are counted through all texts, and lie in lines."""
        return np.bincount(
            np.searchsorted(self.lines.starts, places, side="right") - 1, minlength=len(self.lines.starts)
        )

    @cached_property
    def line_visible(self) -> Ints:
        """(lines,) visible characters of each line."""
        return self._visible(self.lines.starts, self.lines.ends)

    def top_ngram_share(self, size: int) -> Floats:
        """(D,) characters of a text's most frequent n-gram of `size` words, times how often it stands there, among all.

        Of n-grams that stand there twice at least.
        """
        keys, starts = self._repeated_ngrams(size)
        _, first, counts = np.unique(keys, return_index=True, return_counts=True)
        first = starts[first]
        sizes = self._visible(self.words.starts[first], self.words.ends[first + size - 1])
        most = np.zeros(len(self))
        np.maximum.at(most, self.words.texts[first], counts * sizes)
        return _share(most, self.visible)

    def repeated_ngram_share(self, size: int) -> Floats:
        """(D,) characters in n-grams of `size` words that stood earlier in the text, among all."""
        keys, starts = self._repeated_ngrams(size)
        _, first = np.unique(keys, return_index=True)
        again = np.delete(starts, first)
        marked = np.zeros(len(self.words.starts) + 1, np.int64)
        np.add.at(marked, again, 1)
        np.add.at(marked, again + size, -1)
        covered = np.cumsum(marked[:-1]) > 0
        words = self.words
        sizes = words.ends[covered] - words.starts[covered]
        return _share(np.bincount(words.texts[covered], sizes, len(self)), self.visible)

    def _repeated_ngrams(self, size: int) -> tuple[Hashes, Ints]:
        """N-grams of words that stand at least twice in a text: a key that differs between texts, and the first word.

        A longer n-gram stands twice only where a shorter one does, which leaves few to look at.
        """
        if size in self._ngrams:
            return self._ngrams[size]
        words = self.words
        if size <= _SMALLEST_REPEATED:
            starts = _within_texts(words, size)
            starts = starts[(self.count(words) >= self._min_words)[words.texts[starts]]]
        else:
            _, starts = self._repeated_ngrams(size - 1)
            starts = starts[starts + size <= len(words.texts)]
            starts = starts[words.texts[starts + size - 1] == words.texts[starts]]
        keys = _ngram_hashes(self.word_hashes, starts, size) ^ (words.texts[starts].astype(np.uint64) * _CHAR_MIX)
        order = np.sort(keys)
        chosen = _among(keys, np.unique(order[1:][order[1:] == order[:-1]]))
        self._ngrams[size] = keys[chosen], starts[chosen]
        return self._ngrams[size]

    def _stretches(self, shown: Bools) -> Spans:
        """Where characters that are shown stand in a row. Each text ends with one that is not."""
        changes = np.flatnonzero(np.diff(shown, prepend=False, append=False))
        starts, ends = changes[::2], changes[1::2]
        return Spans(starts, ends, self._text_of[starts])

    def _visible(self, starts: Ints, ends: Ints) -> Ints:
        found: Ints = self._visible_before[ends] - self._visible_before[starts]
        return found


Measure = Callable[[pa.Table, Features], pa.Table]


def batches(
    texts: Iterable[str], min_words: int = 0, max_chars: int | None = None
) -> Iterator[tuple[list[str], Features]]:
    """The texts in their order, some hundred thousand characters at a time, with their features.

    Those of a text of more than four million characters are of its beginning, and those of one of more than `max_chars`
    of nothing. min_words: as Features takes it.
    """
    for batch in in_batches(texts, BATCH_CHARS):
        measured = ["" if max_chars is not None and len(text) > max_chars else text[:MAX_CHARS] for text in batch]
        yield batch, Features(measured, min_words)


def measured(rows: pa.Table, *measures: Measure) -> list[pa.Table]:
    """One table for each measure, over all rows.

    rows: documents, with a column text. A measure takes some of them with their features, as `batches` gives them.
    """
    none = Features([])
    found = [[measure(rows.slice(0, 0), none)] for measure in measures]
    done = 0
    for texts, features in batches(rows["text"].to_pylist()):
        for tables, measure in zip(found, measures, strict=True):
            tables.append(measure(rows.slice(done, len(texts)), features))
        done += len(texts)
    return [pa.concat_tables(tables).combine_chunks() for tables in found]


def hashes_of(codes: NDArray[np.uint32], starts: Ints, ends: Ints) -> Hashes:
    """64 bits of each stretch of characters, the same wherever it stands. codes: (N,), what starts and ends index.

    Sums of mixed characters times powers of an odd number, modulo 2^64: any stretch is a difference of two sums.
    """
    mixed = (codes.astype(np.uint64) + np.uint64(1)) * _CHAR_MIX
    mixed ^= mixed >> np.uint64(31)
    powers, inverses = _powers(len(codes) + 1)
    sums = np.append(np.uint64(0), np.cumsum(mixed * powers[1 : len(codes) + 1]))
    found: Hashes = (sums[ends] - sums[starts]) * inverses[starts]
    found ^= (ends - starts).astype(np.uint64)
    found = (found ^ (found >> np.uint64(32))) * _WORD_MIX
    found ^= found >> np.uint64(29)
    return found


def _within_texts(spans: Spans, size: int) -> Ints:
    """The spans with which `size` in a row begin that are of one text."""
    count = max(0, len(spans.texts) - size + 1)
    return np.flatnonzero(spans.texts[:count] == spans.texts[size - 1 :][:count])


def _ngram_hashes(hashes: Hashes, starts: Ints, size: int) -> Hashes:
    """Of `size` hashes in a row, from each start."""
    keys: Hashes = np.full(len(starts), _CHAR_MIX)
    for offset in range(size):
        keys = _mixed(keys, hashes[starts + offset])
    return keys


def _mixed(keys: Hashes, more: Hashes) -> Hashes:
    """Hashes with another one taken in."""
    keys = (keys ^ more) * _WORD_MIX
    keys ^= keys >> np.uint64(29)
    return keys


_powers_so_far: tuple[Hashes, Hashes] = (np.ones(1, np.uint64), np.ones(1, np.uint64))


def _powers(count: int) -> tuple[Hashes, Hashes]:
    """At least `count` powers of the base and of its inverse, modulo 2^64."""
    global _powers_so_far
    if len(_powers_so_far[0]) < count:
        size = 1 << (count - 1).bit_length()
        tables = []
        for base in (_BASE, pow(_BASE, -1, 1 << 64)):
            table = np.full(size, base, np.uint64)
            table[0] = 1
            tables.append(np.multiply.accumulate(table))
        _powers_so_far = tables[0], tables[1]
    return _powers_so_far


def repeats(keys: Hashes, texts: Ints) -> Bools:
    """Which keys stood before in their text. keys, texts: (N,)."""
    keys = keys ^ (texts.astype(np.uint64) * _CHAR_MIX)
    order = np.sort(keys)
    repeated = np.unique(order[1:][order[1:] == order[:-1]])
    found = _among(keys, repeated)
    places = np.flatnonzero(found)
    _, first = np.unique(keys[places], return_index=True)
    found[places[first]] = False
    return found


def _among(keys: Hashes, few: Hashes) -> Bools:
    """Which keys are in a sorted array."""
    if not len(few):
        return np.zeros(len(keys), bool)
    found: Bools = few[np.minimum(np.searchsorted(few, keys), len(few) - 1)] == keys
    return found


def _share(part: Ints | Floats, whole: Ints) -> Floats:
    return part / np.maximum(whole, 1)


def _codes(chars: str) -> Ints:
    return np.array([ord(char) for char in chars])


def _kinds_of(codes: NDArray[np.uint32]) -> NDArray[np.uint8]:
    table = _table()
    return table[np.minimum(codes, len(table) - 1)]


@lru_cache(1)
def _table() -> NDArray[np.uint8]:
    """The kind of each character of the first three planes."""
    return np.array([_kind(chr(code)) for code in range(0x30000)], np.uint8)


def _kind(char: str) -> int:
    if char.isspace():
        return SPACE
    if "가" <= char <= "힣":
        return HANGUL
    if "ㄱ" <= char <= "ㆎ" or "ᄀ" <= char <= "ᇿ":
        return JAMO
    if char.isdecimal():
        return DIGIT
    if not category(char).startswith(("L", "M")) or "\ufe00" <= char <= "\ufe0f":  # those make a heart an emoji
        return SYMBOL
    kind = name(char, "").split(" ", 1)[0]
    return {"LATIN": LATIN, "FULLWIDTH": LATIN, "CJK": HAN, "HIRAGANA": KANA, "KATAKANA": KANA}.get(kind, OTHER)
