"""Labels for texts that have none: a classifier from names of labels, and the texts that are worth labelling next."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax
from scipy.stats import rankdata
from sklearn.cluster import KMeans
from sklearn.neighbors import NearestNeighbors
from torch.nn import functional as F

from korbert.embedder import as_texts
from korbert.errors import SettingsError
from korbert.messages import argument
from korbert.model import Model, load
from korbert.modeling import LinearModel
from korbert.records import is_empty
from korbert.tasks.files.cells import name as label_name
from korbert.tasks.kinds.classification import Classification, Label, Labels
from korbert.tasks.kinds.texts import text_vectors
from korbert.tasks.linear import LinearInputs, fit
from korbert.tasks.terms import Terms
from korbert.vectors.encoder import to_unit_length

_FRAMES = (
    "{}", "이 글은 {}이다", "{}에 관한 글", "이 글은 {}에 대한 글이다", "{}에 대한 이야기", "이것은 {}이다.",
    "분류: {}", "주제: {}",
)  # fmt: skip
_MAX_LENGTH = 128  # pieces of a window of a text
_ROUNDS = 3
_LEARNED_SHARE = 0.5  # of the texts of each label: those whose best two scores differ most
_FEWEST = 4  # texts of a label that are learned from, if it has so many
_NEIGHBOURS = 10
_OWN_SHARE = 0.3  # of the cosines of a text itself; its neighbours have the rest
_TEMPERATURE = 0.05  # of cosines
_C = 2.0  # inverse strength of regularization
_UNSURE = 5  # times as many texts as are wanted: the least sure ones, of which some are suggested
_TYPICAL_SHARE = 0.5  # weight of the rank by near neighbours, beside that by margin
_OTHERS = 20  # neighbours by which a text is typical
_MOST_TEXTS = 10_000


class Suggestion(NamedTuple):
    """A text to label.

    place: among the texts that were given. labels, probability: as a classifier predicts them, and of the most probable
    one; () and None without a classifier.
    """

    place: int
    text: str
    labels: Sequence[str] = ()
    probability: float | None = None


def zero_shot(
    labels: Sequence[str],
    texts: Iterable[str],
    descriptions: Mapping[str, str] | None = None,
    model: Model | str | Path = "korbert-mini-embed",
) -> Model:
    """A classifier from names of labels and texts without labels.

        >>> texts = ["환불해 주세요", "돈을 돌려받고 싶어요", "배송이 언제 오나요", "택배가 안 와요"]
        >>> korbert.zero_shot(["환불", "배송"], texts).predict("물건이 아직 안 왔어요").label
        '배송'

    1. The vector of a label is the mean of those of its name in some short sentences, plus that of its description. A
       text has the label with the largest cosine, its own and those of the ten nearest texts taken together.
    2. Three times: logistic regression learns the half of the texts of each label whose best two scores differ most,
       all labels alike, and gives all texts their labels anew (self-training).
    3. The probabilities are as sure, on average, as those of the cosines: nothing is known that would calibrate them.

    The model is a linear one on the vectors of `model`: all commands take it as any other.

    Args:
        labels: Their names, two or more, as people would say them.
        texts: Of the kind that is to be labelled, some hundred or more.
        descriptions: Label -> a sentence on it.
        model: A model whose vectors tell texts apart.

    Raises:
        SettingsError: Fewer than two labels, one twice or empty, a description of no label, or no texts.
    """
    listed_labels = [labels] if isinstance(labels, str) else list(labels)
    names = list(dict.fromkeys(map(label_name, listed_labels)))  # as a file of labels is read
    described = {label_name(label): description for label, description in (descriptions or {}).items()}
    if len(names) < 2 or len(names) < len(listed_labels) or not all(names):
        raise SettingsError("{option}: {labels}: give two labels or more, each once, none empty",
                            option=argument("labels"), labels=", ".join(listed_labels))  # fmt: skip
    if unknown := [label for label in described if label not in names]:
        raise SettingsError("{option} {unknown}: is none of the labels {labels}",
                            option=argument("describe"), unknown=unknown[0], labels=", ".join(names))  # fmt: skip
    listed = [text for text in as_texts(texts, "texts")[0] if not is_empty(text)]
    if not listed:
        raise SettingsError("texts: all are empty: give texts of the kind that is to be labelled")
    base_model = model if isinstance(model, Model) else load(model)
    kind = Classification(
        metrics=("accuracy", "macro_f1"), max_length=_MAX_LENGTH, rungs=("vectors",), labels=tuple(names)
    )
    network = LinearModel.on(base_model.network, len(names), 0, 1)
    reader = Model(network, base_model.tokenizer, kind, name=base_model.name, precision=base_model.precision)
    vectors = torch.from_numpy(_text_vectors(reader, listed))
    framed_names = [frame.format(name) for name in names for frame in _FRAMES]
    label_vectors = torch.from_numpy(_text_vectors(reader, framed_names)).view(len(names), len(_FRAMES), -1).mean(dim=1)
    for number, name in enumerate(names):
        if name in described:
            vector = torch.from_numpy(_text_vectors(reader, [described[name]])[0])
            label_vectors[number] = F.normalize(label_vectors[number], dim=0) + vector
    center = vectors.mean(dim=0)
    network.center.copy_(center)
    half = center / 2
    cosines = (F.normalize(vectors - half, dim=1) @ F.normalize(label_vectors - half, dim=1).T).numpy()
    rows = network.row_vectors(vectors.to(network.center.device)).cpu().numpy()
    if len(rows) > _NEIGHBOURS:
        _, neighbours = _nearest(rows, _NEIGHBOURS)
        cosines = _OWN_SHARE * cosines + (1 - _OWN_SHARE) * cosines[neighbours].mean(axis=1)
    network = _trained_on_own_labels(network, rows, cosines)
    return Model(network, base_model.tokenizer, kind, name=base_model.name, precision=base_model.precision)


def suggest(model: Model | str | Path, texts: Iterable[str], count: int = 50) -> list[Suggestion]:
    """The texts that are most worth labelling next, unlike each other.

        >>> texts = ["환불해 주세요", "환불이요", "배송 언제 와요"]
        >>> [one.text for one in korbert.suggest("korbert-mini-embed", texts, 2)]
        ['환불해 주세요', '배송 언제 와요']

    With a classifier: half of them are chosen, the other half are drawn at random, as a model that learns hard texts
    alone misjudges the rest. Those chosen are unsure, the two most probable labels being near each other, and typical,
    with near neighbours; of five times as many, clustered by their vectors (k-means), the one nearest to each centre.
    With any other model: of each cluster of all texts, the one with the nearest neighbours. Of more than 10,000 texts,
    those that a classifier is least sure of are looked at, or a random sample.

    Args:
        model: A classifier of single texts, or, if there are no labels yet, any model with vectors.
        texts: Those without labels. Empty ones are left out, and those that stand there before.
        count: Suggestions at most: there are fewer of fewer texts, of equal vectors, and of 10,000 texts that are
            looked at.

    Returns:
        In the order of the texts.

    Raises:
        SettingsError: `count` is below 1, or the model is of another task.
    """
    if count < 1:
        raise SettingsError("{option} {count}: take at least 1", option=argument("rows"), count=count)
    loaded_model = model if isinstance(model, Model) else load(model)
    predicts = "predict" in loaded_model.can
    if predicts and not (isinstance(loaded_model.kind, Classification) and not loaded_model.kind.pair):
        raise SettingsError(
            "{name}: is no classifier of single texts, whose doubts could be asked", name=loaded_model.name
        )
    listed = as_texts(texts, "texts")[0]
    first = {text: place for place, text in reversed([*enumerate(listed)]) if not is_empty(text)}
    distinct_places = np.array(sorted(first.values()), np.int64)
    guesses: dict[int, Label | Labels] = {}
    if predicts:
        predictions = loaded_model.predict([listed[place] for place in distinct_places])
        guesses = dict(zip(distinct_places.tolist(), predictions, strict=True))
        order = np.argsort([_margin(guess) for guess in predictions], kind="stable")
    else:
        order = np.random.default_rng(0).permutation(len(distinct_places))
    places = distinct_places[order[:_MOST_TEXTS]]
    if len(places) > count:
        vectors = loaded_model.embed([listed[place] for place in places])
        vectors = to_unit_length(vectors - vectors.mean(axis=0))
        typical = -_nearest(vectors, min(_OTHERS, len(places) - 1))[0].mean(axis=1)
        if predicts:
            places = places[_least_sure(vectors, typical, math.ceil(count / 2))]
            remaining_places = np.setdiff1d(distinct_places, places)
            random_places = np.random.default_rng(0).choice(remaining_places, count - len(places), replace=False)
            places = np.concatenate([places, random_places])
        else:
            places = places[_of_clusters(vectors, count, typical)]
    return [_suggestion(place, listed[place], guesses.get(place)) for place in sorted(places.tolist())]


def _least_sure(vectors: NDArray[np.float32], typical: NDArray[np.float32], count: int) -> list[int]:
    """Rows that are unsure, typical, and unlike each other. vectors: (N, D), from the least sure row on."""
    ranks = np.arange(len(vectors)) + _TYPICAL_SHARE * rankdata(-typical)
    candidates = np.argsort(ranks, kind="stable")[: _UNSURE * count]
    return [int(candidates[row]) for row in _of_clusters(vectors[candidates], count)]


def _of_clusters(vectors: NDArray[np.float32], count: int, merits: NDArray[np.float32] | None = None) -> list[int]:
    """The row of most merit of each of `count` clusters. merits: (N,); None: by the distance from the centre."""
    clusters = KMeans(min(count, len(vectors)), n_init=1, max_iter=20, random_state=0).fit(vectors)
    if merits is None:
        merits = -clusters.transform(vectors).min(axis=1)
    members = (np.flatnonzero(clusters.labels_ == cluster) for cluster in range(clusters.n_clusters))
    return [int(rows[merits[rows].argmax()]) for rows in members if len(rows)]


def _suggestion(place: int, text: str, guess: Label | Labels | None) -> Suggestion:
    if guess is None:
        return Suggestion(place, text)
    labels = guess.labels if isinstance(guess, Labels) else [guess.label]
    return Suggestion(place, text, [label for label in labels or () if label], max(guess.probabilities.values()))


def _margin(label: Label | Labels) -> float:
    """Returns how much more probable the best label is than the next one.

    For Labels: how far the probability that is nearest to the threshold of a half is from it.
    """
    probabilities = np.array(list(label.probabilities.values()))
    if isinstance(label, Labels):
        return float(np.abs(probabilities - 0.5).min())
    second, first = np.partition(probabilities, (-2, -1))[-2:]
    return float(first - second)


def _trained_on_own_labels(
    network: LinearModel, vectors: NDArray[np.float32], cosines: NDArray[np.float32]
) -> LinearModel:
    """Trains the model on rows labelled by their best cosines, then by itself. vectors: (N, D). cosines: (N, C).

    The mean confidence of the model is set to that of the cosines: its own labels say nothing of how sure it may be.
    """
    no_terms = Terms(np.empty(0, np.int64), np.empty(0, np.float32), np.zeros(len(vectors) + 1, np.int64))
    inputs = LinearInputs(no_terms, vectors)
    device = network.center.device
    num_labels = cosines.shape[1]
    scores = cosines
    for _ in range(_ROUNDS):
        guesses = scores.argmax(axis=1)
        second, first = np.partition(scores, (-2, -1), axis=1)[:, -2:].T
        rows_by_label = (np.flatnonzero(guesses == label) for label in range(num_labels))
        rows = np.concatenate([_clearest(label_rows, first - second) for label_rows in rows_by_label])
        counts = np.bincount(guesses[rows], minlength=num_labels)
        fitted = fit(inputs.rows(rows), guesses[rows], num_labels, "vectors", _C, network)
        shift = torch.from_numpy(-np.log(np.maximum(counts, 1)))  # all labels alike
        network = fitted.scaled(1.0, shift.to(device))
        scores = network.vectors(torch.from_numpy(vectors).to(device)).cpu().numpy()
    return network.scaled(_scale_to(_confidence(cosines / _TEMPERATURE), scores))


def _confidence(scores: NDArray[np.float32]) -> float:
    """The mean probability of the best label."""
    return float(softmax(scores, axis=1).max(axis=1).mean())


def _scale_to(confidence: float, scores: NDArray[np.float32]) -> float:
    """Returns the factor of the scores, 0.05 to 3, that gives them this mean confidence."""
    low, high = 0.05, 3.0
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if _confidence(middle * scores) < confidence else (low, middle)
    return low


def _nearest(vectors: NDArray[np.float32], count: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The cosine distances of the nearest other rows of each row, and their numbers, (N, count)."""
    neighbours: tuple[NDArray[np.float32], NDArray[np.int64]] = (
        NearestNeighbors(n_neighbors=count, metric="cosine").fit(vectors).kneighbors()
    )
    return neighbours


def _clearest(rows: NDArray[np.int64], margins: NDArray[np.float32]) -> NDArray[np.int64]:
    """Returns the half of the rows, but at least four if there are as many, that have the largest margins."""
    count = max(_FEWEST, math.ceil(_LEARNED_SHARE * len(rows)))
    return rows[np.argsort(-margins[rows], kind="stable")[:count]]


def _text_vectors(model: Model, texts: Sequence[str]) -> NDArray[np.float32]:
    """The vectors of texts, read to their ends, (N, D). model: a linear one."""
    batches = model.prepare_rows([{"text": text} for text in texts])
    return np.concatenate([text_vectors(model.fast_network, batch.examples, **model.scoring) for batch in batches])
