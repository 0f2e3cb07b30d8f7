"""Three ways to score vectors of texts: by scores of pairs, by retrieval, and by the vectors of a teacher."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from korbert.errors import SettingsError
from korbert.messages import Message
from korbert.tasks import retrieval
from korbert.tasks.files import TaskRow
from korbert.tasks.kinds.kind import Baseline, Morphemes, TaskPrediction
from korbert.tasks.metrics import regression
from korbert.tasks.metrics.statistics import RunArray
from korbert.tasks.retrieval import Retrieval
from korbert.vectors import to_unit_length

UnitVectors = NDArray[np.float32]
Metrics = Mapping[str, Callable[[RunArray], float | None]]


_SAID = {"pair": Message("second text"), "score": Message("score"), "vector": Message("vector")}


def require_value(row: TaskRow, role: Literal["pair", "score", "vector"]) -> Any:
    """The value of a role. ValueError for a row without one."""
    if row.get(role) is None:
        raise ValueError(Message("has no {role}, which this task needs", role=_SAID[role]))
    return row[role]


class VectorScores(ABC):
    """What the target of a row is, what is predicted for it, and how far the two agree.

    metrics: functions of a run, the array that `run` returns. role: the role that a row needs to be scored in this
    way. compared: the role whose vector is compared with the vector of the row's first text.
    """

    metrics: ClassVar[Metrics]
    role: ClassVar[str]
    compared: ClassVar[str] = "pair"

    @abstractmethod
    def target(self, row: TaskRow) -> float | str:
        """The target of a row. ValueError for a row without one."""

    def group_texts(self, row: TaskRow) -> list[str]:
        """The texts of a scored row that no training row may have."""
        return [row["text"]] if row.get("pair") is None else [row["text"], row["pair"]]

    @abstractmethod
    def predictions(
        self, rows: Sequence[TaskRow], queries: UnitVectors, others: Sequence[UnitVectors]
    ) -> list[TaskPrediction]:
        """A prediction for each row. queries: (N, D), unit vectors of the first texts; others: (n, D) for each row, of
        its other texts."""

    @abstractmethod
    def run(self, rows: Sequence[TaskRow], predictions: Sequence[TaskPrediction]) -> RunArray:
        """What the metrics are computed from, (N, ..)."""

    def baselines(self, train: Sequence[str], rows: Sequence[TaskRow], morphemes: Morphemes) -> Iterator[Baseline]:
        """Rankings without an encoder. train: the distinct texts to fit on."""
        yield from ()


class BySimilarity(VectorScores):
    """A target is a score, a prediction the cosine of the two vectors; a run is (N, 2), score and cosine."""

    metrics: ClassVar[Metrics] = {
        "spearman": lambda run: regression.spearman(run[:, 0], run[:, 1]),
        "pearson": lambda run: regression.pearson(run[:, 0], run[:, 1]),
    }
    role = "score"

    def target(self, row: TaskRow) -> float | str:
        require_value(row, "pair")
        return float(require_value(row, "score"))

    def predictions(
        self, rows: Sequence[TaskRow], queries: UnitVectors, others: Sequence[UnitVectors]
    ) -> list[TaskPrediction]:
        return [float(query @ vectors[0]) for query, vectors in zip(queries, others, strict=True)]

    def run(self, rows: Sequence[TaskRow], predictions: Sequence[TaskPrediction]) -> RunArray:
        return np.array([list(map(self.target, rows)), predictions], dtype=np.float64).T

    def baselines(self, train: Sequence[str], rows: Sequence[TaskRow], morphemes: Morphemes) -> Iterator[Baseline]:
        from korbert.tasks.baselines.features import tfidf_features

        sides = ([morphemes[row[role]] for row in rows] for role in ("text", "pair"))
        first, second = tfidf_features([morphemes[text] for text in train], *sides)
        yield Baseline("tfidf", {}, np.asarray(first.multiply(second).sum(axis=1)).ravel().tolist())


class ByRetrieval(VectorScores):
    """A target is the right passage, a prediction {"cosine": .., "rank": of that passage among those of all rows, from
    1}; a run is (N,), ranks."""

    metrics: ClassVar[Metrics] = retrieval.METRICS
    role = "pair"

    def target(self, row: TaskRow) -> float | str:
        return str(require_value(row, "pair"))

    def group_texts(self, row: TaskRow) -> list[str]:
        return [row["pair"]]  # no passage to find is trained on

    def run_search(self, rows: Sequence[TaskRow], others: Sequence[UnitVectors]) -> tuple[Retrieval, UnitVectors]:
        """The retrieval of the rows, and the vectors of its passages."""
        searched = Retrieval.of(rows)
        texts = chain.from_iterable((row["pair"], *(row.get("negatives") or ())) for row in rows)
        vectors = dict(zip(texts, chain.from_iterable(others), strict=True))
        return searched, np.stack([vectors[text] for text in searched.passages])

    def predictions(
        self, rows: Sequence[TaskRow], queries: UnitVectors, others: Sequence[UnitVectors]
    ) -> list[TaskPrediction]:
        searched, passages = self.run_search(rows, others)
        ranks = searched.ranks(lambda part: queries[part] @ passages.T).tolist()
        return [
            {"cosine": float(query @ vectors[0]), "rank": rank}
            for query, vectors, rank in zip(queries, others, ranks, strict=True)
        ]

    def run(self, rows: Sequence[TaskRow], predictions: Sequence[TaskPrediction]) -> RunArray:
        return np.array([prediction["rank"] for prediction in predictions], np.int64)

    def baselines(self, train: Sequence[str], rows: Sequence[TaskRow], morphemes: Morphemes) -> Iterator[Baseline]:
        searched = Retrieval.of(rows)
        ranks = searched.ranks(searched.by_words(morphemes))
        yield Baseline("bm25", {}, [{"cosine": None, "rank": rank} for rank in ranks.tolist()])


class ByTeacher(VectorScores):
    """A target is 1, a prediction the cosine to the teacher's vector; a run is (N,), cosines.

    If the teacher's vector is shorter than the model's, only the leading dimensions of the model's are compared.
    """

    metrics: ClassVar[Metrics] = {"teacher_cosine": lambda run: float(run.mean())}
    role = "vector"
    compared = "vector"

    def target(self, row: TaskRow) -> float | str:
        require_value(row, "vector")
        return 1.0

    def predictions(
        self, rows: Sequence[TaskRow], queries: UnitVectors, others: Sequence[UnitVectors]
    ) -> list[TaskPrediction]:
        teacher = np.stack([row["vector"] for row in rows])
        if queries.shape[1] < (size := teacher.shape[1]):
            raise SettingsError(
                "the vectors have {size} numbers, those of the model {shape}: cut them, as `korbert distill` does",
                size=size,
                shape=queries.shape[1],
            )
        return list(np.einsum("nd,nd->n", to_unit_length(queries[:, :size]), to_unit_length(teacher)).tolist())

    def run(self, rows: Sequence[TaskRow], predictions: Sequence[TaskPrediction]) -> RunArray:
        return np.array(predictions)


BY_SIMILARITY = BySimilarity()
BY_RETRIEVAL = ByRetrieval()
ALL_SCORES: Sequence[VectorScores] = (BY_SIMILARITY, BY_RETRIEVAL, ByTeacher())
