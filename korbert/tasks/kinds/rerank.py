"""Reranking: how well a passage answers a query, read together (a cross-encoder, Nogueira and Cho 2019)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, Self, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from korbert.messages import Message
from korbert.modeling import AnyConfig, ClassificationModel, Pooling
from korbert.tasks import retrieval
from korbert.tasks.files import Role, TaskRow, TaskRows
from korbert.tasks.kinds.embedding import NEGATIVES, PASSAGE, QUERY
from korbert.tasks.kinds.kind import Baseline, Kind, Morphemes, Prepared, TaskPrediction, score_named
from korbert.tasks.kinds.multiple_choice import scores_of_choices
from korbert.tasks.kinds.sections import RerankSection
from korbert.tasks.kinds.texts import Groups
from korbert.tasks.metrics.statistics import RunArray, Score, repeated
from korbert.tasks.passages import Passage
from korbert.tasks.splits import Splits
from korbert.tokenization import AnyTokenizer
from korbert.training import Batch, Scoring, outputs


class Rerank(Kind, frozen=True):
    """The relevance of a passage to a query. found_weight: weight of the search score that is added to the relevance
    (korbert.search.index.rerank_hits); 0 in models trained before this setting existed.

    Training rows have a query, its passage, and negatives, such as those of `korbert negatives`: the model learns to
    give the passage the highest score of these. The target is the passage, a prediction {"score": of the passage,
    "rank": among its own negatives, from 1}; without negatives the rank is 1.
    """

    name: ClassVar[str] = "rerank"
    roles: ClassVar[tuple[Role, ...]] = (QUERY, PASSAGE, replace(NEGATIVES, required=True))
    reads_pairs: ClassVar[bool] = True

    pooling: Pooling = "mean"
    found_weight: float = 0.0

    @classmethod
    def from_training_rows(cls, rows: TaskRows, settings: RerankSection) -> Self:
        return cls.of_settings(settings, ("mrr", "recall@1"))

    def description(self) -> Message:
        return Message("relevance of a passage to a query")

    def texts(self, row: TaskRow) -> list[str]:
        if row.get("pair") is None:
            raise ValueError(Message("has no passage"))
        return [row["text"], *dict.fromkeys([row["pair"], *(row.get("negatives") or ())])]

    def group_texts(self, row: TaskRow) -> list[str]:
        return [row["pair"]]  # no passage to find is trained on

    def target(self, row: TaskRow) -> str:
        if len(self.texts(row)) < 3:
            raise ValueError(Message("has no negatives, which `korbert negatives` finds"))
        return str(row["pair"])

    def prepare(
        self, rows: Sequence[TaskRow], passages: Sequence[Sequence[Passage]], tokenizer: AnyTokenizer
    ) -> Prepared:
        groups = [[(query, passage) for passage in candidates] for query, *candidates in passages]
        labels = np.zeros(len(rows), np.int64)
        return Prepared(rows, Groups.of(groups, labels, tokenizer, self.max_length))

    def model(self, config: AnyConfig, generator: torch.Generator | None = None) -> ClassificationModel:
        return ClassificationModel(config, 1, self.pooling, generator=generator, problem_type="regression")

    def loss(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Cross-entropy over a row's passage and negatives, in nats per row."""
        return {"loss": F.cross_entropy(scores_of_choices(model, batch), batch["labels"])}

    def predict(self, model: nn.Module, prepared: Prepared, **how: Unpack[Scoring]) -> list[TaskPrediction]:
        def score_and_rank(model: nn.Module, batch: Batch) -> Tensor:
            scores = scores_of_choices(model, batch)
            return torch.stack([scores[:, 0], (scores >= scores[:, :1]).sum(dim=1)], dim=1)

        scored = outputs(model, prepared.examples, score_and_rank, batch_size=64, **how)
        return [{"score": float(score), "rank": int(rank)} for score, rank in scored]

    def result(self, prediction: TaskPrediction) -> float:
        return float(prediction["score"])

    def baselines(self, parts: Splits, morphemes: Morphemes) -> Iterator[Baseline]:
        """BM25 over morphemes."""
        searched = retrieval.Retrieval.of(parts.scored.rows)
        predictions = []
        numbers = {passage: number for number, passage in enumerate(searched.passages)}
        scores = searched.by_words(morphemes)
        for number, row in enumerate(parts.scored):
            passage_scores = scores(slice(number, number + 1))[0, [numbers[passage] for passage in self.texts(row)[1:]]]
            predictions.append(
                {"score": float(passage_scores[0]), "rank": int((passage_scores >= passage_scores[0]).sum())}
            )
        yield Baseline("bm25", {}, predictions)

    def row_scores(self, rows: Sequence[TaskRow], predictions: Sequence[TaskPrediction]) -> NDArray[np.float64]:
        return np.array([prediction["rank"] == 1 for prediction in predictions])

    def run(self, rows: Sequence[TaskRow], predictions: Sequence[TaskPrediction]) -> RunArray:
        """(N,) ranks."""
        return np.array([prediction["rank"] for prediction in predictions], np.int64)

    def score(self, metric: str) -> Score:
        return repeated(score_named(retrieval.METRICS, metric))
