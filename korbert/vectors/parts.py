"""Vectors of the parts of texts (pieces, morphemes, eojeols) with their spans."""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from numpy.typing import NDArray

from korbert.errors import SettingsError
from korbert.modeling import Model as Network
from korbert.tokenization import AnyTokenizer
from korbert.tokenization.encoding import Encoding, Span, span_of
from korbert.tokenization.morphemes import eojeols_after
from korbert.training.devices import device_of, moved
from korbert.training.examples import Examples, by_length
from korbert.training.scoring import NotFinite
from korbert.vectors.encoder import hidden_of
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


def parts_of(
    network: Network,
    tokenizer: AnyTokenizer,
    texts: Sequence[str],
    unit: Unit,
    settings: VectorSettings,
    max_length: int,
) -> list[Parts]:
    """The parts of each text; of the settings, layer and mix are used. SettingsError for an unknown unit."""
    if unit not in _OWNERS:
        raise SettingsError(f"unit {unit!r}: take {', '.join(_OWNERS)}")
    encodings = tokenizer.encode_batch(texts, max_length=max_length, workers=0)
    vectors_of = vectors_of_pieces(network, tokenizer, encodings, settings)
    parts = []
    for text, encoding, vectors in zip(texts, encodings, vectors_of, strict=True):
        owners = _OWNERS[unit](text, encoding)
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
                names.append("".join(encoding.pieces[index].removeprefix("▁") for index in pieces))
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


def _eojeols(text: str, encoding: Encoding) -> list[int]:
    later = eojeols_after(text)
    return [bisect_right(later, start) for start, _ in encoding.spans]


_OWNERS: Mapping[Unit, Callable[[str, Encoding], Sequence[int]]] = {  # the part of each piece, by number
    "piece": lambda text, encoding: range(len(encoding)),
    "morpheme": lambda text, encoding: encoding.morphemes,
    "eojeol": _eojeols,
}
