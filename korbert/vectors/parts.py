"""Vectors of the parts of texts (pieces, morphemes, eojeols) with their spans."""

import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
import torch
from numpy.typing import NDArray

from korbert.errors import SettingsError
from korbert.modeling import Network
from korbert.tokenization import AnyTokenizer, Encoding, Tokenizer, eojeols_after, span_of
from korbert.tokenization.pieces import Span
from korbert.training import Examples, NotFinite, by_length, device_of, to_device
from korbert.vectors.encoder import hidden_of
from korbert.vectors.names import Unit
from korbert.vectors.vector_settings import VectorSettings

_ROWS_AT_ONCE = 32


@dataclass(frozen=True)
class TextParts:
    """The P parts of a text, without special tokens. names: the piece, the form of the morpheme, or the eojeol. spans:
    half-open, in code points of the text; vectors: (P, D) float32, means over pieces."""

    text: str
    unit: Unit
    names: list[str]
    spans: list[Span]
    vectors: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.names)

    def occurrences(self, word: str) -> "TextParts":
        """Where a word stands: neighbouring parts that spell it, spaces aside, each time as one part.

        Of morphemes: 사랑 stands in 사랑해, not in 짝사랑; 신용 대출 in 신용대출; the stem 듣 in 들었다.
        """
        sought = unicodedata.normalize("NFC", "".join(word.split()))
        ends = [
            (start, end)
            for start in range(len(self))
            for end in range(start, min(start + len(sought), len(self)))
            if "".join(self.names[start : end + 1]) == sought
        ]
        vectors = [self.vectors[start : end + 1].mean(axis=0) for start, end in ends]
        return replace(
            self,
            names=[word] * len(ends),
            spans=[span_of(self.spans, start, end) for start, end in ends],
            vectors=np.array(vectors, np.float32).reshape(len(ends), self.vectors.shape[1]),
        )


def parts_of(
    network: Network,
    tokenizer: AnyTokenizer,
    texts: Sequence[str],
    unit: Unit,
    settings: VectorSettings,
    max_length: int,
) -> list[TextParts]:
    """The parts of each text; of the settings, layer and mix are used. SettingsError for an unknown unit."""
    if unit not in get_args(Unit):
        raise SettingsError("unit {unit!r}: take {get_args}", unit=unit, get_args=", ".join(get_args(Unit)))
    encodings = tokenizer.encode_batch(texts, max_length=max_length, workers=0)
    vectors_of = vectors_of_pieces(network, tokenizer, encodings, settings)
    parts = []
    for text, encoding, vectors in zip(texts, encodings, vectors_of, strict=True):
        names = []
        spans = []
        rows = []
        for pieces in pieces_of_units((text,), encoding, unit):
            if encoding.special_tokens_mask[pieces[0]]:
                continue
            start, end = span_of(encoding.spans, pieces[0], pieces[-1])
            name = "".join(encoding.pieces[index].removeprefix("▁") for index in pieces)
            is_spelled = isinstance(tokenizer, Tokenizer) and "<0x" not in name  # without marks (##는) and bytes
            if unit == "piece":
                name = encoding.pieces[pieces[0]]
            elif unit == "eojeol" or not is_spelled:
                name = text[start:end]
            names.append(name)
            spans.append((start, end))
            rows.append(vectors[pieces].mean(axis=0))
        parts.append(
            TextParts(text, unit, names, spans, np.array(rows, np.float32).reshape(len(rows), vectors.shape[1]))
        )
    return parts


def vectors_of_pieces(
    network: Network, tokenizer: AnyTokenizer, encodings: Sequence[Encoding], settings: VectorSettings
) -> list[NDArray[np.float32]]:
    """(T, D) of each encoding, special tokens included, in order; shortest first in the network. NotFinite for NaN."""
    device = device_of(network)
    rows = ((encoding.input_ids, encoding.boundaries) for encoding in encodings)
    examples = Examples.of_rows(rows, [0] * len(encodings), tokenizer.pad_id)
    vectors: list[NDArray[np.float32]] = [np.zeros(0, np.float32)] * len(encodings)
    with torch.inference_mode():
        for numbers in by_length(examples.lengths, _ROWS_AT_ONCE):
            hidden = hidden_of(network, to_device(examples.batch(numbers), device), settings)
            for number, row in zip(numbers.tolist(), hidden.float().cpu().numpy(), strict=True):
                vectors[number] = row[: len(encodings[number])].copy()
    if not all(np.isfinite(rows).all() for rows in vectors):
        raise NotFinite("vectors")
    return vectors


def pieces_of_units(texts: Sequence[str], encoding: Encoding, unit: Unit) -> list[list[int]]:
    """The pieces of each unit of one or two texts, in text order. Each special token is a unit of its own.

    eojeol: split by white space, but those that one piece spans are one. morpheme: those of the tokenizer; for one of
    `transformers`, its words.
    """
    later = [eojeols_after(text, []) for text in texts]  # by white space, torn words or not
    eojeols = [(0, 0)] * len(texts)  # of each text: the number of the latest eojeol, and where its pieces end
    pieces: dict[object, list[int]] = {}
    for index, special in enumerate(encoding.special_tokens_mask):
        segment = encoding.token_type_ids[index]
        key: object = ("piece", index)
        if not special and unit == "morpheme":
            key = (segment, encoding.morphemes[index])
        elif not special and unit == "eojeol":
            start, end = encoding.spans[index]
            eojeol, reached = eojeols[segment]
            if start >= reached:
                eojeol = bisect_right(later[segment], start)
            eojeols[segment] = (eojeol, max(reached, end))
            key = (segment, eojeol)
        pieces.setdefault(key, []).append(index)
    return list(pieces.values())
