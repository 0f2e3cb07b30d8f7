"""Fill-mask: the pieces that a pretrained model predicts at each [MASK], or at every position of a text."""

import unicodedata
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain, zip_longest

import numpy as np
import torch
from torch import Tensor

from korbert.errors import ModelError
from korbert.modeling import PretrainingModel
from korbert.system import track
from korbert.tokenization import FIRST_PIECE, MARK, AnyTokenizer, Encoding, pad_batch
from korbert.tokenization.pieces import Span
from korbert.training import check_finite, device_of
from korbert.vectors import encode_whole

_ROWS_AT_ONCE = 32  # rows whose vocabulary scores are in memory at a time


@dataclass(frozen=True)
class Expected:
    """Predictions for a masked piece: the most likely pieces with their probabilities, best first.

    own: the probability of the original piece; None if it is a [MASK].
    """

    own: float | None
    guesses: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Candidate:
    """A candidate piece for a gap, with its probability over the vocabulary.

    text: the whole text with the piece in its gap, and the most probable piece in every other gap.
    """

    piece: str
    id: int
    probability: float
    text: str


def encode_gaps(network: PretrainingModel, tokenizer: AnyTokenizer, text: str) -> Encoding:
    """Encodes a text with gaps. ModelError if it has no [MASK], or more pieces than the model has positions."""
    encoding = encode_whole(network, tokenizer, text)
    if tokenizer.mask_id not in encoding.input_ids:
        raise ModelError("{text!r}: has no [MASK]: write [MASK] where a word is to be filled in", text=text[:60])
    return encoding


def fill_gaps(
    network: PretrainingModel, tokenizer: AnyTokenizer, texts: Sequence[str], encodings: Sequence[Encoding], top: int
) -> list[list[list[Candidate]]]:
    """The `top` pieces for each [MASK] of each text, most probable first, from one forward pass.

    encodings: of the texts, each with a [MASK]. NotFinite if scores are NaN.
    """
    batch = pad_batch(encodings, tokenizer.pad_id)
    rows, columns = np.nonzero(batch["input_ids"] == tokenizer.mask_id)
    inputs = {name: torch.from_numpy(batch[name]) for name in ("input_ids", "attention_mask", "boundaries")}
    device = device_of(network)
    with torch.inference_mode():
        hidden = network.encoder(**{name: tensor.to(device) for name, tensor in inputs.items()})
        best = [_most_probable(tokenizer, row, top) for row in _probabilities(network, hidden[rows, columns])]
    filled = []
    for number, (text, encoding) in enumerate(zip(texts, encodings, strict=True)):
        gaps = np.flatnonzero(rows == number)
        spans = [encoding.spans[columns[gap]] for gap in gaps]
        pieces = [best[gap][0][0] for gap in gaps]
        filled.append(
            [
                [
                    Candidate(
                        piece, id, probability, _fill_spans(text, spans, [*pieces[:index], piece, *pieces[index + 1 :]])
                    )
                    for piece, id, probability in best[gap]
                ]
                for index, gap in enumerate(gaps)
            ]
        )
    return filled


@torch.inference_mode()
def expect(
    network: PretrainingModel, tokenizer: AnyTokenizer, text: str, pair: str | None = None, top: int = 5
) -> list[Expected | None]:
    """Predictions at each position of a text or pair, masked one piece at a time; None for special tokens.

    Other pieces stay visible, even those of the same word. Errors as in encode_whole and fill_gaps.
    """
    encoding = encode_whole(network, tokenizer, text, pair)
    device = device_of(network)
    ids, segments, boundaries = (
        torch.tensor([column], device=device)
        for column in (encoding.input_ids, encoding.token_type_ids, encoding.boundaries)
    )
    # Each row is the whole text with one piece masked.
    positions = [position for position, special in enumerate(encoding.special_tokens_mask) if not special]
    expected: list[Expected | None] = [None] * len(encoding)
    is_long = len(positions) > 2 * _ROWS_AT_ONCE
    with track("guess", len(positions), "places") if is_long else nullcontext(lambda count: None) as advance:
        for start in range(0, len(positions), _ROWS_AT_ONCE):
            part = positions[start : start + _ROWS_AT_ONCE]
            rows = torch.arange(len(part), device=device)
            masked = ids.repeat(len(part), 1)
            masked[rows, part] = tokenizer.mask_id
            hidden = network.encoder(
                masked, token_type_ids=segments.expand_as(masked), boundaries=boundaries.expand_as(masked)
            )
            for position, row in zip(part, _probabilities(network, hidden[rows, part]), strict=True):
                id = encoding.input_ids[position]
                guesses = tuple((piece, probability) for piece, _, probability in _most_probable(tokenizer, row, top))
                own_probability = None if id == tokenizer.mask_id else float(row[id])
                expected[position] = Expected(own_probability, guesses)
            advance(len(part))
    return expected


def _probabilities(network: PretrainingModel, vectors: Tensor) -> Tensor:
    """(N, D) -> (N, V), on CPU. NotFinite if one is NaN."""
    probabilities = network.mlm_head(vectors).float().softmax(-1).cpu()
    check_finite(probabilities.numpy())
    return probabilities


def _most_probable(tokenizer: AnyTokenizer, probabilities: Tensor, top: int) -> list[tuple[str, int, float]]:
    """Piece, id and probability of the `top` most probable entries that are not special tokens."""
    best = probabilities[FIRST_PIECE:].topk(min(top, len(probabilities) - FIRST_PIECE))
    ids = (best.indices + FIRST_PIECE).tolist()
    return list(zip(tokenizer.tokens(ids), ids, best.values.tolist(), strict=True))


def _fill_spans(text: str, spans: Sequence[Span], pieces: Sequence[str]) -> str:
    """Replaces each span of a text with a piece; jamo join the preceding syllable (가 + ᆫ다 -> 간다)."""
    ends = [0, *(end for _, end in spans)]
    starts = [*(start for start, _ in spans), len(text)]
    between = [text[end:start] for end, start in zip(ends, starts, strict=True)]
    shown = [piece.removeprefix(MARK) for piece in pieces]
    return unicodedata.normalize("NFC", "".join(chain.from_iterable(zip_longest(between, shown, fillvalue=""))))
