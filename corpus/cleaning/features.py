"""Features of texts for filters and deduplication: characters, lines, words and terms of many texts as flat arrays.

A loop over documents would cost more than all the arithmetic: most documents are a review of one line.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import inf
from unicodedata import category, name

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from korbert.corpus.cleaning import hashing
from korbert.corpus.cleaning.hashing import BoolArray, HashArray, IntArray
from korbert.corpus.documents import group_by_size

FloatArray = NDArray[np.float64]

SPACE, HANGUL, JAMO, LATIN, DIGIT, HAN, KANA, OTHER, SYMBOL = range(9)
_KINDS = 9
_LINE_FEED = 10
_REPEATED_SIZES = range(2, 11)  # words of the n-grams whose repetition is measured
BATCH_CHARS = 1 << 18  # measured at once, with about 100 bytes of arrays each: what the processor's caches hold
# Of lines of prose, and of reviews.
_ENDINGS = np.array([ord(char) for char in ".?!…。？！~\"'”’)」』》〉]】ㅋㅎㅠㅜ^♡♥"])
_BULLETS = np.array([ord(char) for char in "-*•·▶▷■□●○◆◇※→▪◦☞✓"])


@dataclass(frozen=True)
class TextSpans:
    """S spans of the joined texts. starts, ends: half-open, in code points. texts: the text of each. All (S,) int64."""

    starts: IntArray
    ends: IntArray
    texts: IntArray


class Features:
    """Features of D texts. A share is 0 if its denominator is.

    min_words: word n-grams are ignored in texts of fewer words.
    """

    def __init__(self, texts: Sequence[str], min_words: int = 0) -> None:
        self._count = len(texts)
        self._min_words = min_words
        self.joined = "".join(f"{text}\n" for text in texts)  # what all spans index
        self.codes = np.frombuffer(self.joined.encode("utf-32-le", "surrogatepass"), "<u4")
        self._bounds = np.cumsum([0, *(len(text) + 1 for text in texts)])
        kinds = kind_table()
        self._kinds = kinds[np.minimum(self.codes, len(kinds) - 1)]
        self._text_of = np.repeat(np.arange(len(texts)), np.diff(self._bounds))
        self._visible_before: IntArray = np.append(0, np.cumsum(self._kinds != SPACE))

    def __len__(self) -> int:
        return self._count

    @cached_property
    def kind_counts(self) -> IntArray:
        """(D, 9) characters of each kind."""
        flat = np.bincount(self._text_of * _KINDS + self._kinds, minlength=len(self) * _KINDS)
        return flat.reshape(len(self), _KINDS)

    @cached_property
    def visible(self) -> IntArray:
        """(D,) characters other than white space."""
        return self.visible_in(self._bounds[:-1], self._bounds[1:])

    def share_of(self, *kinds: int) -> FloatArray:
        """(D,) share of those kinds in the visible characters."""
        return share(self.kind_counts[:, kinds].sum(axis=1), self.visible)

    @cached_property
    def hangul_share(self) -> FloatArray:
        """(D,) share of Hangul syllables in letters and digits; lone jamo (ㅋㅋ) are neither."""
        letters = self.kind_counts[:, (HANGUL, LATIN, DIGIT, HAN, KANA, OTHER)].sum(axis=1)
        return share(self.kind_counts[:, HANGUL], letters)

    @cached_property
    def lines(self) -> TextSpans:
        """Lines that are not blank."""
        ends = np.flatnonzero(self.codes == _LINE_FEED)
        starts = np.append(0, ends[:-1] + 1)
        filled = self.visible_in(starts, ends) > 0
        return TextSpans(starts[filled], ends[filled], self._text_of[ends[filled]])

    @cached_property
    def words(self) -> TextSpans:
        """Words: stretches without white space."""
        return self.stretches(self._kinds != SPACE)

    @cached_property
    def word_hashes(self) -> HashArray:
        """(W,) hash of each word."""
        return hashing.hashes_of(self.codes, self.words.starts, self.words.ends)

    @cached_property
    def terms(self) -> TextSpans:
        """Terms: letters and digits in a row. Punctuation ends a term."""
        return self.stretches((self._kinds != SPACE) & (self._kinds != SYMBOL))

    @cached_property
    def term_hashes(self) -> HashArray:
        """(T,) hash of each term, A-Z lowered."""
        return hashing.hashes_of(self.lower_case_codes, self.terms.starts, self.terms.ends)

    @cached_property
    def numberless_term_hashes(self) -> HashArray:
        """(T,) hash of each term, A-Z lowered and every number replaced by 0."""
        is_digit = self._kinds == DIGIT
        is_kept = ~(is_digit & np.append(False, is_digit[:-1]))
        codes = np.where(is_digit, np.uint32(ord("0")), self.lower_case_codes)[is_kept]
        new_positions = np.append(0, np.cumsum(is_kept))
        return hashing.hashes_of(codes, new_positions[self.terms.starts], new_positions[self.terms.ends])

    @cached_property
    def lower_case_codes(self) -> NDArray[np.uint32]:
        """The characters, A-Z lowered."""
        is_capital = (self.codes >= ord("A")) & (self.codes <= ord("Z"))
        return np.where(is_capital, self.codes + np.uint32(ord("a") - ord("A")), self.codes)

    def term_ngrams(self, *sizes: int, hashes: HashArray | None = None) -> Iterator[tuple[int, HashArray, IntArray]]:
        """(size, hashes, first terms) of the n-grams of each size, the smallest first. Equal n-grams have equal hashes.

        hashes: (T,) of each term; None: term_hashes.
        """
        hashes = self.term_hashes if hashes is None else hashes
        starts = np.arange(len(self.terms.texts))
        keys: HashArray = np.full(len(starts), hashing.NGRAM_SEED)
        for size in range(1, max(sizes) + 1):
            # An n-gram grows by a term if it then still lies within one text.
            extendable = np.flatnonzero(starts + size <= len(self.terms.texts))
            extendable = extendable[
                self.terms.texts[starts[extendable] + size - 1] == self.terms.texts[starts[extendable]]
            ]
            starts = starts[extendable]
            keys = hashing.extend_hashes(keys[extendable], hashes[starts + size - 1])
            if size in sizes:
                yield size, keys, starts

    def count(self, spans: TextSpans) -> IntArray:
        """(D,) number of spans in each text."""
        return np.bincount(spans.texts, minlength=len(self))

    def line_share(self, chosen: BoolArray) -> FloatArray:
        """(D,) share of the chosen lines in the lines of each text. chosen: (lines,)."""
        return share(np.bincount(self.lines.texts[chosen], minlength=len(self)), self.count(self.lines))

    def line_char_share(self, chosen: BoolArray) -> FloatArray:
        """(D,) share of the visible characters of each text that are in the chosen lines. chosen: (lines,)."""
        lines = self.lines
        sizes = self.visible_in(lines.starts[chosen], lines.ends[chosen])
        return share(np.bincount(lines.texts[chosen], sizes, len(self)), self.visible)

    @cached_property
    def line_numbers(self) -> IntArray:
        """(lines,) number of each line in its text, from 0, blank lines counted."""
        ends = np.flatnonzero(self.codes == _LINE_FEED)
        first = np.searchsorted(ends, self._bounds[:-1])
        return np.searchsorted(ends, self.lines.ends) - first[self.lines.texts]

    @cached_property
    def repeated_lines(self) -> BoolArray:
        """(lines,) which lines equal an earlier line of their text."""
        lines = self.lines
        return hashing.repeats(hashing.hashes_of(self.codes, lines.starts, lines.ends), lines.texts)

    @cached_property
    def closed_lines(self) -> BoolArray:
        """(lines,) which lines end as sentences do."""
        last = self.words.ends[np.searchsorted(self.words.ends, self.lines.ends, side="right") - 1] - 1
        return np.isin(self.codes[last], _ENDINGS)

    @cached_property
    def bullet_lines(self) -> BoolArray:
        """(lines,) which lines begin with a bullet."""
        first = self.words.starts[np.searchsorted(self.words.starts, self.lines.starts)]
        return np.isin(self.codes[first], _BULLETS)

    def count_in_lines(self, positions: IntArray) -> IntArray:
        """(lines,) number of the positions that each line holds. positions: indices of `joined`, all within lines."""
        numbers = np.searchsorted(self.lines.starts, positions, side="right") - 1
        return np.bincount(numbers, minlength=len(self.lines.starts))

    @cached_property
    def line_visible(self) -> IntArray:
        """(lines,) visible characters of each line."""
        return self.visible_in(self.lines.starts, self.lines.ends)

    def top_ngram_share(self, size: int) -> FloatArray:
        """(D,) share of the visible characters taken by the n-gram of `size` words that takes most.

        All its occurrences count; an n-gram has to occur twice.
        """
        keys, starts = self.repeated_ngrams[size]
        _, first, counts = np.unique(keys, return_index=True, return_counts=True)
        first = starts[first]
        sizes = self.visible_in(self.words.starts[first], self.words.ends[first + size - 1])
        largest_sizes = np.zeros(len(self))
        np.maximum.at(largest_sizes, self.words.texts[first], counts * sizes)
        return share(largest_sizes, self.visible)

    def repeated_ngram_share(self, size: int) -> FloatArray:
        """(D,) share of the visible characters in n-grams of `size` words that occurred earlier in the text."""
        keys, starts = self.repeated_ngrams[size]
        _, first = np.unique(keys, return_index=True)
        repeat_starts = np.delete(starts, first)
        # Words covered by one repeated n-gram or more: +1 where an n-gram begins, -1 after its end.
        depth_changes = np.zeros(len(self.words.starts) + 1, np.int64)
        np.add.at(depth_changes, repeat_starts, 1)
        np.add.at(depth_changes, repeat_starts + size, -1)
        is_covered = np.cumsum(depth_changes[:-1]) > 0
        words = self.words
        sizes = words.ends[is_covered] - words.starts[is_covered]
        return share(np.bincount(words.texts[is_covered], sizes, len(self)), self.visible)

    @cached_property
    def repeated_ngrams(self) -> dict[int, tuple[HashArray, IntArray]]:
        """Size -> word n-grams that occur twice or more in one text: keys, different between texts, and first words."""
        words = self.words
        starts = np.flatnonzero((self.count(words) >= self._min_words)[words.texts])
        ngrams = {}
        for size in _REPEATED_SIZES:
            # An n-gram repeats only where its beginning does, which leaves few for the next size.
            starts = starts[starts + size <= len(words.texts)]
            starts = starts[words.texts[starts + size - 1] == words.texts[starts]]
            keys: HashArray = np.full(len(starts), hashing.NGRAM_SEED)
            for offset in range(size):
                keys = hashing.extend_hashes(keys, self.word_hashes[starts + offset])
            keys = hashing.keyed_by_text(words.texts[starts], keys)
            chosen = hashing.is_repeated(keys)
            starts = starts[chosen]
            ngrams[size] = keys[chosen], starts
        return ngrams

    def stretches(self, inside: BoolArray) -> TextSpans:
        """Returns the maximal stretches of characters for which `inside` is True; every text ends outside of one."""
        changes = np.flatnonzero(np.diff(inside, prepend=False, append=False))
        starts = changes[::2]
        return TextSpans(starts, changes[1::2], self._text_of[starts])

    def visible_in(self, starts: IntArray, ends: IntArray) -> IntArray:
        """Visible characters of each span."""
        return self._visible_before[ends] - self._visible_before[starts]


DocumentMeasure = Callable[[pa.Table, Features], pa.Table]


def batches(texts: Iterable[str], min_words: int = 0, max_chars: float = inf) -> Iterator[tuple[list[str], Features]]:
    """The texts in order, in batches of about BATCH_CHARS characters, with their features.

    Features cover nothing of a text longer than `max_chars`. min_words: see Features.
    """
    for batch in group_by_size(texts, BATCH_CHARS, len):
        covered = ["" if len(text) > max_chars else text for text in batch]
        yield batch, Features(covered, min_words)


def measure_rows(rows: pa.Table, measures: Mapping[str, DocumentMeasure]) -> dict[str, pa.Table]:
    """The table of each measure over all rows, by its kind.

    rows: documents, with a column `text`. A measure is called with a batch of rows and their features.
    """
    no_features = Features([])
    tables_of = {kind: [measure(rows.slice(0, 0), no_features)] for kind, measure in measures.items()}
    first_row = 0
    for texts, features in batches(rows["text"].to_pylist()):
        for kind, measure in measures.items():
            tables_of[kind].append(measure(rows.slice(first_row, len(texts)), features))
        first_row += len(texts)
    return {kind: pa.concat_tables(tables).combine_chunks() for kind, tables in tables_of.items()}


def share(part: IntArray | FloatArray, whole: IntArray) -> FloatArray:
    return part / np.maximum(whole, 1)


@lru_cache(1)
def kind_table() -> NDArray[np.uint8]:
    """Returns (0x30000,) the kind of each code point of the first three Unicode planes."""
    return np.array([kind_of(chr(code)) for code in range(0x30000)], np.uint8)


def kind_of(char: str) -> int:
    """The kind of a character."""
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
