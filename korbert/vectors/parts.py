"""Vectors of the parts of texts (pieces, morphemes, eojeols) with their spans."""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from korbert.errors import ModelError, SettingsError
from korbert.tokenization.encoding import Encoding, Span, span_of
from korbert.tokenization.morphemes import eojeols_after
from korbert.training.devices import moved
from korbert.training.examples import Examples
from korbert.vectors.names import Unit
from korbert.vectors.settings import VectorSettings

__all__ = ["Parts", "parts_of", "vectors_of_pieces"]

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


def parts_of(model: Any, texts: Sequence[str], unit: Unit, settings: VectorSettings) -> list[Parts]:
    """The parts of each text. model: a TextEncoder. SettingsError for an unknown unit."""
    if unit not in _OWNERS:
        raise SettingsError(f"unit {unit!r}: take {', '.join(_OWNERS)}")
    encodings = model.tokenizer.encode_batch(texts, max_length=model.max_length, workers=0)
    found = []
    for text, encoding, vectors in zip(texts, encodings, vectors_of_pieces(model, encodings, settings), strict=True):
        owners = _OWNERS[unit](text, encoding)
        inner = [place for place, special in enumerate(encoding.special_tokens_mask) if not special]
        names, spans, rows = [], [], []
        for _, run in groupby(inner, key=lambda place: owners[place]):
            places = list(run)
            span = span_of(encoding.spans, places[0], places[-1])
            shown = "".join(encoding.pieces[place].removeprefix("▁") for place in places)
            names.append(
                text[slice(*span)] if unit == "eojeol" else encoding.pieces[places[0]] if unit == "piece" else shown
            )
            spans.append(span)
            rows.append(vectors[places].mean(axis=0))
        found.append(Parts(text, unit, names, spans, np.array(rows, np.float32).reshape(len(rows), vectors.shape[1])))
    return found


def vectors_of_pieces(model: Any, encodings: Sequence[Encoding], settings: VectorSettings) -> list[NDArray[np.float32]]:
    """(T, D) of each encoding, special tokens included, in order; shortest first in the model."""
    from korbert.vectors.encoder import hidden_of

    places = settings.places(model.model.config.num_hidden_layers)
    device = model.device
    rows = ((encoding.input_ids, encoding.boundaries) for encoding in encodings)
    examples = Examples.of_rows(rows, [0] * len(encodings), model.tokenizer.pad_id)
    found: list[NDArray[np.float32]] = [np.zeros(0, np.float32)] * len(encodings)
    with torch.inference_mode():
        for numbers in examples.by_length(_ROWS_AT_ONCE):
            hidden = hidden_of(model.model, moved(examples.batch(numbers), device), settings, places)
            for number, row in zip(numbers.tolist(), hidden.float().cpu().numpy(), strict=True):
                found[number] = row[: len(encodings[number])].copy()
    if not all(np.isfinite(vectors).all() for vectors in found):
        raise ModelError(f"{model.name}: its vectors are not finite: train it again with a lower learning_rate")
    return found


def _eojeols(text: str, encoding: Encoding) -> list[int]:
    later = eojeols_after(text)
    return [bisect_right(later, start) for start, _ in encoding.spans]


_OWNERS: Mapping[Unit, Callable[[str, Encoding], Sequence[int]]] = {  # the part of each piece, by number
    "piece": lambda text, encoding: range(len(encoding)),
    "morpheme": lambda text, encoding: encoding.morphemes,
    "eojeol": _eojeols,
}
