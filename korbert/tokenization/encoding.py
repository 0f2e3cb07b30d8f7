"""Texts as pieces: the record of an encoded text or pair, windows, batches, and the way back to characters."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from korbert.errors import SettingsError

__all__ = [
    "CONTINUATION",
    "EOJEOL",
    "MORPHEME",
    "SENTENCE",
    "Encoding",
    "Pieces",
    "Span",
    "assemble",
    "assemble_many",
    "cut_within",
    "is_slice",
    "pad_batch",
    "span_of",
    "span_to_pieces",
    "windows",
]

# What begins at a piece (uint8 in files). A level includes those below: a sentence begins an eojeol and a morpheme.
CONTINUATION = 0  # nothing: the morpheme goes on; special tokens too
MORPHEME = 1
EOJEOL = 2
SENTENCE = 3

Span = tuple[int, int]  # half-open, in code points of the text as given


class Frame(NamedTuple):
    """The special tokens that stand around segments: [CLS] A [SEP], or [CLS] A [SEP] B [SEP]."""

    cls_id: int
    sep_id: int
    cls: str = "[CLS]"
    sep: str = "[SEP]"


@dataclass(slots=True)
class Pieces:
    """A text as pieces, without special tokens: parallel lists of P entries.

    boundaries: CONTINUATION to SENTENCE. spans: the characters each piece stands for; all pieces of a fused morpheme
    (한다: 하, ᆫ다) have its whole span. morphemes: index into the analysis. tags: of that morpheme.
    """

    ids: list[int]
    pieces: list[str]
    boundaries: list[int]
    spans: list[Span]
    morphemes: list[int]
    tags: list[str]

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def joined(cls, parts: Iterable["Pieces"]) -> "Pieces":
        """The parts one behind the other, their numbers of morphemes as they are."""
        columns = zip(*(part._columns() for part in [_NOTHING, *parts]), strict=True)
        return cls(*(list(chain.from_iterable(column)) for column in columns))

    def __getitem__(self, part: slice) -> "Pieces":
        return Pieces(*(column[part] for column in self._columns()))

    def _columns(self) -> tuple[list[Any], ...]:
        return self.ids, self.pieces, self.boundaries, self.spans, self.morphemes, self.tags


_NOTHING = Pieces([], [], [], [], [], [])


@dataclass(slots=True)
class Encoding:
    """A text, or a pair of texts, as a model reads it: parallel lists of T entries, special tokens included.

    token_type_ids: 1 on the second segment and its [SEP]. spans: (0, 0) for special tokens; those of the second segment
    are of the second text. morphemes: index into the analysis of its text, -1 for special tokens. tags: "" for those.
    """

    input_ids: list[int]
    token_type_ids: list[int]
    attention_mask: list[int]
    special_tokens_mask: list[int]
    spans: list[Span]
    boundaries: list[int]
    pieces: list[str]
    tags: list[str]
    morphemes: list[int]

    def __len__(self) -> int:
        return len(self.input_ids)

    def segment_spans(self, segment: int) -> list[Span]:
        """The spans with those of the other segment blanked as (0, 0): what span_to_pieces takes."""
        return [span if kind == segment else (0, 0) for span, kind in zip(self.spans, self.token_type_ids, strict=True)]


def assemble(first: Pieces, second: Pieces | None, frame: Frame, max_length: int | None = None) -> Encoding:
    """[CLS] first [SEP], or [CLS] first [SEP] second [SEP]; the longer segment loses its last pieces until all fits."""
    if max_length is not None:
        room = _room(max_length, second is not None)
        if second is None:
            first = first[:room]
        else:
            keep_first, keep_second = _longest_first(len(first), len(second), room)
            first, second = first[:keep_first], second[:keep_second]
    return _alone(first, 0, len(first), frame) if second is None else _framed(first, second, frame)


def assemble_many(
    found: Pieces, bounds: Sequence[int], frame: Frame, max_length: int | None = None
) -> Iterator[Encoding]:
    """[CLS] text [SEP] of each of N texts whose pieces stand in a row. bounds: N + 1, where they begin and end."""
    room = len(found) if max_length is None else _room(max_length, pair=False)
    for begin, end in pairwise(bounds):
        yield _alone(found, begin, min(end, begin + room), frame)


def windows(first: Pieces, second: Pieces | None, frame: Frame, max_length: int, stride: int) -> list[Encoding]:
    """As many encodings as it takes to show all of the last segment; with two, the first stands whole in each.

    Neighbours share `stride` pieces. Raises SettingsError where a window would not get ahead.
    """
    long = first if second is None else second
    room = _room(max_length, second is not None) - (0 if second is None else len(first))
    if room <= 0:
        raise SettingsError(
            f"max_length {max_length} leaves no room for the second segment: the first takes {len(first)} pieces,"
            " special tokens three; shorten the first or raise max_length"
        )
    if not 0 <= stride < room:
        raise SettingsError(
            f"stride {stride} is not below the window of {room} pieces: lower stride or raise max_length"
        )
    parts = (long[begin : begin + room] for begin in _starts(len(long), room, stride))
    if second is None:
        return [_alone(part, 0, len(part), frame) for part in parts]
    return [_framed(first, part, frame) for part in parts]


def _starts(length: int, room: int, stride: int) -> Iterator[int]:
    yield 0
    yield from range(room - stride, length - stride, room - stride)


def _room(max_length: int, pair: bool) -> int:
    special = 3 if pair else 2
    if max_length < special:
        raise SettingsError(f"max_length {max_length} is below the {special} special tokens: raise it")
    return max_length - special


def _longest_first(first: int, second: int, room: int) -> tuple[int, int]:
    """How much of each stays: the longer is shortened down to the other, then both in turn, the second first."""
    if first + second <= room:
        return first, second
    half = (room + 1) // 2  # the first keeps the odd one
    if first <= half:
        return first, room - first
    if second <= room - half:
        return room - second, second
    return half, room - half


def _alone(found: Pieces, begin: int, end: int, frame: Frame) -> Encoding:
    """[CLS] and [SEP] around the pieces from begin to end."""
    count = end - begin
    return Encoding(
        input_ids=[frame.cls_id, *found.ids[begin:end], frame.sep_id],
        token_type_ids=[0] * (count + 2),
        attention_mask=[1] * (count + 2),
        special_tokens_mask=[1, *[0] * count, 1],
        spans=[(0, 0), *found.spans[begin:end], (0, 0)],
        boundaries=[CONTINUATION, *found.boundaries[begin:end], CONTINUATION],
        pieces=[frame.cls, *found.pieces[begin:end], frame.sep],
        tags=["", *found.tags[begin:end], ""],
        morphemes=[-1, *found.morphemes[begin:end], -1],
    )


def _framed(first: Pieces, second: Pieces, frame: Frame) -> Encoding:
    """The first segment with [CLS] and [SEP], the second with a [SEP] after it."""
    found, tail = _alone(first, 0, len(first), frame), len(second) + 1
    return Encoding(
        input_ids=[*found.input_ids, *second.ids, frame.sep_id],
        token_type_ids=[*found.token_type_ids, *[1] * tail],
        attention_mask=[*found.attention_mask, *[1] * tail],
        special_tokens_mask=[*found.special_tokens_mask, *[0] * len(second), 1],
        spans=[*found.spans, *second.spans, (0, 0)],
        boundaries=[*found.boundaries, *second.boundaries, CONTINUATION],
        pieces=[*found.pieces, *second.pieces, frame.sep],
        tags=[*found.tags, *second.tags, ""],
        morphemes=[*found.morphemes, *second.morphemes, -1],
    )


def pad_batch(encodings: Sequence[Encoding], pad_id: int) -> dict[str, NDArray[np.int64]]:
    """Arrays (B, T) int64 by the names models take, T the longest. Padding: mask 0, type 0, boundary 0, special 1."""
    columns = {
        "input_ids": pad_id,
        "attention_mask": 0,
        "token_type_ids": 0,
        "boundaries": CONTINUATION,
        "special_tokens_mask": 1,
    }
    shape = len(encodings), max(map(len, encodings), default=0)
    arrays = {name: np.full(shape, fill, dtype=np.int64) for name, fill in columns.items()}
    for row, encoding in enumerate(encodings):
        for name, array in arrays.items():
            array[row, : len(encoding)] = getattr(encoding, name)
    return arrays


def span_to_pieces(spans: Sequence[Span], start: int, end: int) -> tuple[int, int] | None:
    """The shortest run of pieces that covers those characters of [start, end) that any piece covers: (first, last).

    Both are inside the run. None where no piece touches the span. Pieces of fused morphemes overlap
    (이걸: 이거 [0, 2), ᆯ [1, 2)): of those only what is needed is taken, the earlier before the later.
    """
    touching = [place for place, span in enumerate(spans) if span[0] < end and span[1] > start]
    if not touching:
        return None
    first, last = touching[0], touching[-1]
    low, high = span_of(spans, first, last)
    while last > first and span_of(spans, first, last - 1) == (low, high):
        last -= 1
    while first < last and span_of(spans, first + 1, last) == (low, high):
        first += 1
    return first, last


def span_of(spans: Sequence[Span], first: int, last: int) -> Span:
    """The characters that the pieces first to last (both inside) stand for.

    Pieces without characters do not widen it: with 의사 [0, 2), 이 [2, 2), 다 [3, 4), 이 to 다 is 다.
    """
    run = [span for span in spans[first : last + 1] if span[1] > span[0]] or [spans[first]]
    return min(span[0] for span in run), max(span[1] for span in run)


def cut_within(text: str, found: Pieces | Encoding, first: int, last: int, start: int, end: int) -> Span:
    """The characters of pieces first to last (both inside), trimmed to [start, end) as far as characters tell.

    They tell where a piece is the very slice of the text; a piece of a fused morpheme is taken whole.
    """
    low, high = span_of(found.spans, first, last)
    if is_slice(text, found, first):
        low = max(low, min(start, found.spans[first][1]))
    if is_slice(text, found, last):
        high = min(high, max(end, found.spans[last][0]))
    return low, high


def is_slice(text: str, found: Pieces | Encoding, place: int) -> bool:
    """Whether the piece is written as the text is: 학교, not the 었 of 했. text: as it was encoded."""
    return text[slice(*found.spans[place])] == found.pieces[place].removeprefix("▁")
