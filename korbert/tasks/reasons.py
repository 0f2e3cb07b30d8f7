"""Why a linear model gives a label: what each morpheme of a text adds to the score of the label.

The scores of words and of vectors are sums over the pieces of a text, up to a number that is the same for all texts:

- A term (a piece, a pair of pieces, an n-gram of characters) adds its weight, which its characters share.
- The vector of a text is the mean of those of its pieces, which is centred and scaled. So each piece adds the product
  of the weights and its share of that vector. The encoder has read the text before: a piece may speak for others.
- For pairs, the weights of |a - b| are those of a - b with its sign, and the product of a and b counts for both, half.
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
        for role, passage, own in zip(("text", "pair"), passages, weights, strict=False)
        for (start, end), weight in zip(owners(passage.spans)[1].tolist(), own, strict=True)
    ]
    return sorted(reasons, key=lambda reason: -abs(reason.weight))


@torch.no_grad()
def morpheme_weights(
    model: LinearModel, examples: LinearExamples, number: int, passages: Sequence[Passage], label: int, *, several: bool
) -> list[_Floats]:
    """What each morpheme of each text of an example adds to the score of a label, (K,): those of `owners`.

    number: of the example. passages: its texts. label: with several labels, its score is explained, else that minus the
    mean of the others.
    """
    batch = to_device(examples.batch(np.array([number])), model.center.device)
    before = [_letters_before(passage.text) for passage in passages]
    added = [np.zeros((own[-1] + 1, model.num_outputs)) for own in before]
    for own, places, passage, scores in zip(added, before, passages, _of_pieces(model, batch, passages), strict=True):
        _spread(own, places[passage.spans], scores)
    for text, passage in enumerate(passages):
        numbers, scores = _of_terms(model, batch, term_ids(passage, text))
        _spread(added[text], before[text][term_spans(passage)[numbers]], scores)
    weights = []
    for passage, own, places in zip(passages, added, before, strict=True):
        sums = np.concatenate([np.zeros((1, model.num_outputs)), np.cumsum(np.cumsum(own[:-1], axis=0), axis=0)])
        starts, ends = places[owners(passage.spans)[1]].T
        weights.append(margins_of(sums[ends] - sums[starts], label, several=several))
    return weights


def _letters_before(text: str) -> NDArray[np.int64]:
    """The number of characters before each place of a text, and at its end, without white space."""
    return np.cumsum([0, *(not character.isspace() for character in text)], dtype=np.int64)


def margins_of(scores: NDArray[Any], label: int, *, several: bool) -> NDArray[Any]:
    """The scores of a label, (N,), minus the mean of the others unless there are several. scores: (N, C)."""
    own = scores[:, label]
    return own if several else own - np.delete(scores, label, axis=1).mean(axis=1)


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
    owners = batch["texts"].tolist()
    found = []
    for text, passage in enumerate(passages):
        inner = [own[1 : size - 1] for own, size, owner in zip(scores, sizes, owners, strict=True) if owner == text]
        found.append(np.concatenate(inner)[: len(passage.ids)])
    return found


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
    owners = batch["texts"]
    hidden = model.encoder(batch["input_ids"], mask, None, batch["boundaries"]).float() * mask[..., None]
    sizes = mask.sum(dim=1)
    means = hidden.sum(dim=1) / sizes[:, None]
    sums = hidden.new_zeros(num_texts, hidden.shape[-1]).index_add(0, owners, F.normalize(means, dim=-1))
    centred = F.normalize(sums, dim=-1) - model.center
    # Of a text, the shares sum to its vector: the norms are those of the whole.
    pieces = sizes.new_zeros(num_texts).index_add(0, owners, sizes)
    norms = sizes * means.norm(dim=-1) * sums.norm(dim=-1)[owners]
    shares = hidden / norms[:, None, None] - (mask[..., None] * model.center) / pieces[owners][:, None, None]
    shares = shares / centred.norm(dim=-1)[owners][:, None, None]
    weights = _weights(model, F.normalize(centred, dim=-1))
    return torch.einsum("wtd,wcd->wtc", shares, weights[owners])


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
    known = model.known_terms(batch["terms"], batch["counts"], batch["rows"], 1)
    ids = batch["terms"][known.used].cpu().numpy()
    if not len(ids):
        return np.empty(0, np.int64), np.empty((0, model.num_outputs))
    added = (known.values / batch["counts"][known.used])[:, None] * model.words[known.places]
    places = np.searchsorted(ids, occurring).clip(max=len(ids) - 1)
    numbers = np.flatnonzero(ids[places] == occurring)
    return numbers, added.double().cpu().numpy()[places[numbers]]
