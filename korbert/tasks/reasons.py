"""Why a linear model gives a label: what each morpheme of a text adds to the score of the label.

The scores of words and of vectors are sums over the pieces of a text, up to a number that is the same for all texts:

- A term (a piece, a pair of pieces, an n-gram of characters) adds its weight, which its characters share.
- The vector of a text is the mean of those of its pieces, which is centred and scaled. So each piece adds the product
  of the weights and its share of that vector. The encoder has mixed the pieces of a text: one may speak for others.
- For pairs, |a - b| counts as a - b times its sign, and the product of a and b counts half for a and half for b.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from korbert.errors import SettingsError
from korbert.messages import argument
from korbert.modeling import LinearModel
from korbert.tasks.kinds.texts import LinearExamples
from korbert.tasks.passages import Passage
from korbert.tasks.terms import term_ids, term_spans
from korbert.tasks.token_classification import owners
from korbert.training import Batch, to_device

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Reason:
    """A morpheme, [start, end) in characters of its text, and what it adds to the log-odds of the label.

    of: the role of the text, "text" or "pair".
    """

    text: str
    start: int
    end: int
    weight: float
    of: str = "text"


def reasons_of(
    model: LinearModel, examples: LinearExamples, number: int, passages: Sequence[Passage], label: int, *, several: bool
) -> list[Reason]:
    """The morphemes of an example, those first that add or take most. Arguments as `morpheme_weights`."""
    weights = morpheme_weights(model, examples, number, passages, label, several=several)
    reasons = [
        Reason(passage.text[start:end], start, end, float(weight), role)
        for role, passage, text_weights in zip(("text", "pair"), passages, weights, strict=False)
        for (start, end), weight in zip(owners(passage.spans)[1].tolist(), text_weights, strict=True)
    ]
    return sorted(reasons, key=lambda reason: -abs(reason.weight))


@torch.no_grad()
def morpheme_weights(
    model: LinearModel, examples: LinearExamples, number: int, passages: Sequence[Passage], label: int, *, several: bool
) -> list[_Floats]:
    """What each morpheme of each text of an example adds to the score of a label, (K,): those of `owners`.

    number: of the example. passages: the texts of the example. label: the label whose score is explained; unless there
    are `several` labels, the mean of the other labels' scores is subtracted.
    """
    batch = to_device(examples.batch(np.array([number])), model.center.device)
    letters_before = [_letters_before(passage.text) for passage in passages]
    added = [np.zeros((letters[-1] + 1, model.num_outputs)) for letters in letters_before]
    for differences, letters, passage, scores in zip(
        added, letters_before, passages, _of_pieces(model, batch, passages), strict=True
    ):
        _spread(differences, letters[passage.spans], scores)
    for text, passage in enumerate(passages):
        numbers, scores = _of_terms(model, batch, term_ids(passage, text))
        _spread(added[text], letters_before[text][term_spans(passage)[numbers]], scores)
    weights = []
    for passage, differences, letters in zip(passages, added, letters_before, strict=True):
        sums = np.concatenate(
            [np.zeros((1, model.num_outputs)), np.cumsum(np.cumsum(differences[:-1], axis=0), axis=0)]
        )
        starts, ends = letters[owners(passage.spans)[1]].T
        weights.append(margins_of(sums[ends] - sums[starts], label, several=several))
    return weights


def _letters_before(text: str) -> NDArray[np.int64]:
    """How many characters other than white space come before each place of a text, and before its end."""
    return np.cumsum([0, *(not character.isspace() for character in text)], dtype=np.int64)


def margins_of(scores: NDArray[Any], label: int, *, several: bool) -> NDArray[Any]:
    """The scores of a label, (N,), minus the mean of the others unless there are several. scores: (N, C)."""
    label_scores = scores[:, label]
    return label_scores if several else label_scores - np.delete(scores, label, axis=1).mean(axis=1)


def _spread(added: _Floats, spans: NDArray[np.int64], scores: _Floats) -> None:
    """Adds scores (n, C) evenly to the characters of their spans: to `added`, (characters + 1, C), as differences.

    spans: without white space, which belongs to no morpheme.
    """
    sizes = np.maximum(spans[:, 1] - spans[:, 0], 1)[:, None]
    np.add.at(added, spans[:, 0], scores / sizes)
    np.add.at(added, spans[:, 1], -scores / sizes)


def _of_pieces(model: LinearModel, batch: Batch, passages: Sequence[Passage]) -> list[_Floats]:
    """What each piece of each text adds through the vectors, (P, C)."""
    if not model.reads_vectors:
        return [np.zeros((len(passage.ids), model.num_outputs)) for passage in passages]
    scores = piece_scores(model, batch, len(passages)).double().cpu().numpy()
    sizes = batch["attention_mask"].sum(dim=1).tolist()
    texts_of_rows = batch["text_numbers"].tolist()
    added = []
    for text, passage in enumerate(passages):
        inner = [
            row[1 : size - 1]
            for row, size, text_of_row in zip(scores, sizes, texts_of_rows, strict=True)
            if text_of_row == text
        ]
        added.append(np.concatenate(inner)[: len(passage.ids)])
    return added


def piece_scores(model: LinearModel, batch: Batch, num_texts: int) -> Tensor:
    """What each piece of a row adds to the scores through the vectors, special tokens included: (W, T, C).

    Summed, they are the scores of the row's vectors, without the bias. SettingsError if the first piece is the vector.
    """
    if model.pooling != "mean":
        raise SettingsError(
            "{option}: the text vectors of this model are those of their first piece: use korbert look",
            option=argument("why"),
        )
    mask = batch["attention_mask"]
    text_of_row = batch["text_numbers"]
    hidden = model.encoder(batch["input_ids"], mask, None, batch["boundaries"]).float() * mask[..., None]
    sizes = mask.sum(dim=1)
    means = hidden.sum(dim=1) / sizes[:, None]
    sums = hidden.new_zeros(num_texts, hidden.shape[-1]).index_add(0, text_of_row, F.normalize(means, dim=-1))
    centred = F.normalize(sums, dim=-1) - model.center
    # The shares of the pieces of a text sum to its vector: the norms are those of the whole text.
    pieces = sizes.new_zeros(num_texts).index_add(0, text_of_row, sizes)
    norms = sizes * means.norm(dim=-1) * sums.norm(dim=-1)[text_of_row]
    shares = hidden / norms[:, None, None] - (mask[..., None] * model.center) / pieces[text_of_row][:, None, None]
    shares = shares / centred.norm(dim=-1)[text_of_row][:, None, None]
    weights = _weights(model, F.normalize(centred, dim=-1))
    return torch.einsum("wtd,wcd->wtc", shares, weights[text_of_row])


def _weights(model: LinearModel, vectors: Tensor) -> Tensor:
    """The weights that each text vector is multiplied by, (texts, C, D)."""
    weights = model.vectors.weight
    if model.num_texts == 1:
        return weights[None]
    first, second, difference, product = weights.chunk(4, dim=-1)
    sign = (vectors[0] - vectors[1]).sign()
    return torch.stack(
        [first + sign * difference + product * vectors[1] / 2, second - sign * difference + product * vectors[0] / 2]
    )


def _of_terms(model: LinearModel, batch: Batch, occurring: NDArray[np.int64]) -> tuple[NDArray[np.int64], _Floats]:
    """The numbers of the occurring terms that the model knows, and what each adds, (n, C)."""
    known_terms = model.known_terms(batch["terms"], batch["counts"], batch["rows"], 1)
    ids = batch["terms"][known_terms.used].cpu().numpy()
    if not len(ids):
        return np.empty(0, np.int64), np.empty((0, model.num_outputs))
    added = (known_terms.values / batch["counts"][known_terms.used])[:, None] * model.words[known_terms.places]
    places = np.searchsorted(ids, occurring).clip(max=len(ids) - 1)
    numbers = np.flatnonzero(ids[places] == occurring)
    return numbers, added.double().cpu().numpy()[places[numbers]]
