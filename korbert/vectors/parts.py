"""Vectors of the parts of texts (pieces, morphemes, eojeols) with their spans, and of a word wherever it stands."""

import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import get_args

import numpy as np
import torch
from numpy.typing import NDArray

from korbert.errors import SettingsError
from korbert.modeling import Model as Network
from korbert.tokenization import AnyTokenizer, Tokenizer
from korbert.tokenization.encoding import Encoding, Span, span_of
from korbert.tokenization.morphemes import eojeols_after
from korbert.training.devices import device_of, moved
from korbert.training.examples import Examples, by_length
from korbert.training.scoring import NotFinite
from korbert.vectors.encoder import hidden_of
from korbert.vectors.encoder import unit as unit_vectors
from korbert.vectors.names import Unit
from korbert.vectors.settings import VectorSettings

_ROWS_AT_ONCE = 32


@dataclass(frozen=True)
class Parts:
    """The P parts of a text, without special tokens. names: the piece, the form of the morpheme, or the eojeol. spans:
    half-open, in code points of the text; vectors: (P, D) float32, means over pieces."""

    text: str
    unit: Unit
    names: list[str]
    spans: list[Span]
    vectors: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.names)

    def runs(self, word: str) -> Iterator[slice]:
        """The runs of neighbouring parts whose names make up the word, spaces aside."""
        sought = unicodedata.normalize("NFC", "".join(word.split()))
        for start in range(len(self)):
            for end in range(start + 1, min(start + len(sought), len(self)) + 1):
                if "".join(self.names[start:end]) == sought:
                    yield slice(start, end)


@dataclass(frozen=True)
class Occurrences:
    """The N places where a word stands in texts, in order; a text with it twice has two.

    numbers: of their texts, from 0. spans: half-open, in code points of the text. vectors: (N, D) float32.
    """

    word: str
    texts: list[str]
    numbers: list[int]
    spans: list[Span]
    vectors: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.numbers)

    def first(self, count: int) -> "Occurrences":
        cut = slice(count)
        return replace(self, numbers=self.numbers[cut], spans=self.spans[cut], vectors=self.vectors[cut])

    @property
    def cosines(self) -> NDArray[np.float32]:
        """(N, N), -1 to 1."""
        directions = unit_vectors(self.vectors)
        return np.clip(directions @ directions.T, -1, 1)


def parts_of(
    network: Network,
    tokenizer: AnyTokenizer,
    texts: Sequence[str],
    unit: Unit,
    settings: VectorSettings,
    max_length: int,
) -> list[Parts]:
    """The parts of each text; of the settings, layer and mix are used. SettingsError for an unknown unit."""
    if unit not in get_args(Unit):
        raise SettingsError(f"unit {unit!r}: take {', '.join(get_args(Unit))}")
    encodings = tokenizer.encode_batch(texts, max_length=max_length, workers=0)
    vectors_of = vectors_of_pieces(network, tokenizer, encodings, settings)
    parts = []
    for text, encoding, vectors in zip(texts, encodings, vectors_of, strict=True):
        owners = owners_of((text,), encoding, unit)
        inner = [index for index, special in enumerate(encoding.special_tokens_mask) if not special]
        names, spans, rows = [], [], []
        for _, run in groupby(inner, key=owners.__getitem__):
            pieces = list(run)
            span = span_of(encoding.spans, pieces[0], pieces[-1])
            if unit == "eojeol":
                names.append(text[slice(*span)])
            elif unit == "piece":
                names.append(encoding.pieces[pieces[0]])
            else:
                form = "".join(encoding.pieces[index].removeprefix("▁") for index in pieces)
                is_spelled = isinstance(tokenizer, Tokenizer) and "<0x" not in form  # else bytes, or marks as in ##는
                names.append(form if is_spelled else text[slice(*span)])
            spans.append(span)
            rows.append(vectors[pieces].mean(axis=0))
        parts.append(Parts(text, unit, names, spans, np.array(rows, np.float32).reshape(len(rows), vectors.shape[1])))
    return parts


def vectors_of_pieces(
    network: Network, tokenizer: AnyTokenizer, encodings: Sequence[Encoding], settings: VectorSettings
) -> list[NDArray[np.float32]]:
    """(T, D) of each encoding, special tokens included, in order; shortest first in the network. NotFinite for NaN."""
    layers, device = settings.places(network.config.num_hidden_layers), device_of(network)
    rows = ((encoding.input_ids, encoding.boundaries) for encoding in encodings)
    examples = Examples.of_rows(rows, [0] * len(encodings), tokenizer.pad_id)
    vectors: list[NDArray[np.float32]] = [np.zeros(0, np.float32)] * len(encodings)
    with torch.inference_mode():
        for numbers in by_length(examples.lengths, _ROWS_AT_ONCE):
            hidden = hidden_of(network, moved(examples.batch(numbers), device), settings, layers)
            for number, row in zip(numbers.tolist(), hidden.float().cpu().numpy(), strict=True):
                vectors[number] = row[: len(encodings[number])].copy()
    if not all(np.isfinite(rows).all() for rows in vectors):
        raise NotFinite("vectors")
    return vectors


def owners_of(texts: Sequence[str], encoding: Encoding, unit: Unit) -> list[int]:
    """The unit of each piece of one or two texts, numbered from 0 in text order. Each special token is its own unit.

    eojeol: split by white space. morpheme: those of the tokenizer; for one of `transformers`, its words.
    """
    later = [eojeols_after(text) for text in texts]
    numbers: dict[object, int] = {}
    owners = []
    for index, special in enumerate(encoding.special_tokens_mask):
        segment = encoding.token_type_ids[index]
        key: object = ("piece", index)
        if not special and unit == "morpheme":
            key = (segment, encoding.morphemes[index])
        elif not special and unit == "eojeol":
            key = (segment, bisect_right(later[segment], encoding.spans[index][0]))
        owners.append(numbers.setdefault(key, len(numbers)))
    return owners
