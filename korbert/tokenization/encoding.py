"""Pieces to encodings: special tokens, truncation, pairs, windows and batches, and mapping back to characters."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from korbert.errors import SettingsError
from korbert.tokenization.pieces import CONTINUATION, Pieces, Span

_T = TypeVar("_T")


class Frame(NamedTuple):
    """The special tokens around segments: [CLS] A [SEP], or [CLS] A [SEP] B [SEP].

    between: how many [SEP] stand between A and B; RoBERTa has two.
    """

    cls_id: int
    sep_id: int
    cls: str = "[CLS]"
    sep: str = "[SEP]"
    between: int = 1

    @property
    def special(self) -> int:
        """Special tokens of a pair."""
        return 2 + self.between


@dataclass(slots=True)
class Encoding:
    """A text or pair as a model reads it: parallel lists of T entries, special tokens included.

    token_type_ids: 1 on the second segment and its [SEP]. spans: each in its own text, (0, 0) for special tokens.
    morphemes: index into the analysis of the text, -1 for special tokens. tags: "" for special tokens.
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


def assemble(first: Pieces, second: Pieces | None, frame: Frame, max_length: int | None = None) -> Encoding:
    """[CLS] first [SEP], or [CLS] first [SEP] second [SEP]; the longer segment loses its last pieces until all fits."""
    if max_length is not None and second is None:
        first = first[: _room(max_length, 2)]
    elif max_length is not None and second is not None:
        kept_first, kept_second = truncated_lengths(len(first), len(second), frame, max_length)
        first = first[:kept_first]
        second = second[:kept_second]

    def add_special(name: str, cls: _T, sep: _T) -> list[_T]:
        """A column of both segments, with its entries for [CLS] and [SEP] added."""
        if second is None:
            return [cls, *getattr(first, name), sep]
        return [cls, *getattr(first, name), *[sep] * frame.between, *getattr(second, name), sep]

    ids = add_special("ids", frame.cls_id, frame.sep_id)
    in_second = 0 if second is None else len(second) + 1
    middle = [] if second is None else [*[1] * frame.between, *[0] * len(second)]
    return Encoding(
        input_ids=ids,
        token_type_ids=[*[0] * (len(ids) - in_second), *[1] * in_second],
        attention_mask=[1] * len(ids),
        special_tokens_mask=[1, *[0] * len(first), *middle, 1],
        spans=add_special("spans", (0, 0), (0, 0)),
        boundaries=add_special("boundaries", CONTINUATION, CONTINUATION),
        pieces=add_special("pieces", frame.cls, frame.sep),
        tags=add_special("tags", "", ""),
        morphemes=add_special("morphemes", -1, -1),
    )


def with_prompt(prompt: Pieces, encoding: Encoding, max_length: int) -> Encoding:
    """The encoding of a text with a prompt after [CLS]; beyond max_length, the last pieces of the text are cut."""
    end = min(len(encoding) - 1, max_length - 1 - len(prompt))
    beginning = assemble(prompt, None, Frame(encoding.input_ids[0], encoding.input_ids[-1]))
    columns = {
        name: [*getattr(beginning, name)[:-1], *getattr(encoding, name)[1:end], getattr(encoding, name)[-1]]
        for name in (field.name for field in fields(Encoding))
    }
    return Encoding(**columns)


def truncated_lengths(first: int, second: int, frame: Frame, max_length: int) -> tuple[int, int]:
    """Number of pieces to keep of each segment of a pair.

    The longer one is shortened down to the other, then both in turn, the second first.
    """
    room = _room(max_length, frame.special)
    if first + second <= room:
        return first, second
    half = (room + 1) // 2  # the first keeps the odd one
    keep = first if first <= half else max(half, room - second)
    return keep, room - keep


def windows(first: Pieces, second: Pieces | None, frame: Frame, max_length: int, stride: int) -> list[Encoding]:
    """Encodings that together cover the last segment; with two segments, each contains the whole first.

    Neighbours share `stride` pieces. Raises SettingsError if a window would add nothing new.
    """
    covered = first if second is None else second
    special = 2 if second is None else frame.special
    repeated = 0 if second is None else len(first)
    room = _room(max_length, special) - repeated
    if room <= 0:
        raise SettingsError(
            "max_length {max_length} leaves no room for the second segment: the first takes {num_first} "
            "pieces, special tokens {special}; shorten the first or raise max_length",
            max_length=max_length,
            num_first=len(first),
            special=frame.special,
        )
    if not 0 <= stride < room:
        raise SettingsError(
            "stride {stride} is not below the window of {room} pieces: lower it or raise max_length",
            stride=stride,
            room=room,
        )
    starts = [0, *range(room - stride, len(covered) - stride, room - stride)]
    cuts = [covered[start : start + room] for start in starts]
    return [assemble(cut, None, frame) if second is None else assemble(first, cut, frame) for cut in cuts]


def _room(max_length: int, special: int) -> int:
    if max_length < special:
        raise SettingsError(
            "max_length {max_length} is below the {special} special tokens: raise it",
            max_length=max_length,
            special=special,
        )
    return max_length - special


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
    """(first, last) of the shortest run of pieces that covers all of [start, end) that any piece covers.

    Both ends are inclusive. None where no piece touches the span. Pieces of fused morphemes overlap
    (이걸: 이거 [0, 2), ᆯ [1, 2)): only those needed are in the run, earlier ones before later ones.
    """
    touching = [index for index, span in enumerate(spans) if span[0] < end and span[1] > start]
    if not touching:
        return None
    first = touching[0]
    last = touching[-1]
    low, high = span_of(spans, first, last)
    while last > first and span_of(spans, first, last - 1) == (low, high):
        last -= 1
    while first < last and span_of(spans, first + 1, last) == (low, high):
        first += 1
    return first, last


def span_of(spans: Sequence[Span], first: int, last: int) -> Span:
    """The characters that the pieces first to last (inclusive) stand for.

    Pieces without characters do not widen the span: with 의사 [0, 2), 이 [2, 2), 다 [3, 4), 이 to 다 is 다.
    """
    run = [span for span in spans[first : last + 1] if span[1] > span[0]] or [spans[first]]
    return min(span[0] for span in run), max(span[1] for span in run)
