"""Text embeddings: similar texts get nearby vectors, and so do queries and the passages that answer them.

The training objective depends on the columns of the training rows:

| columns | positives and negatives |
|---|---|
| text | positive: the same text under another dropout mask; negatives: other texts of the batch |
| text, pair (query, passage) | positive: the two texts; negatives: second texts of other rows of the batch |
| text, pair, negatives | the same, and the negatives of all rows of the batch |
| text, pair, label | the same for pairs with a label in `near`; pairs of the same text in `far` are negatives |
| text, pair, score | ranking: the higher the score, the nearer |
| text, vector | the vectors of a teacher, such as those of `korbert distill` |

All but the last two are SimCSE (Gao et al. 2021, 3 and 4); on pairs, also known as multiple negatives ranking
(Henderson et al. 2017, 4.4). Rows with scores are validated and tested by the rank correlation of cosines and scores,
pairs without scores by retrieval: each first text has to find its second one among those of all rows. Rows with vectors
alone are validated by the mean cosine to these. With several processes, each has a part of the batch and so fewer
in-batch negatives.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import not_
from typing import Any, ClassVar, Literal, Self, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from korbert.errors import CorpusError, SettingsError
from korbert.messages import Message
from korbert.modeling import AnyConfig, EmbeddingModel, EncoderConfig, Pooling
from korbert.system import current_world, package
from korbert.tasks import retrieval
from korbert.tasks.embedding import contrastive_loss, distillation_loss, in_chunks, ranking_loss
from korbert.tasks.files import ROLES, Role, TaskRow, TaskRows
from korbert.tasks.kinds.kind import Baseline, Kind, Morphemes, Prepared, TaskPrediction, score_named
from korbert.tasks.kinds.sections import EmbeddingSection
from korbert.tasks.kinds.texts import Groups, NearGroups
from korbert.tasks.kinds.vector_scores import ALL_SCORES, BY_RETRIEVAL, BY_SIMILARITY, VectorScores, require_value
from korbert.tasks.metrics.statistics import RunArray, Score, repeated
from korbert.tasks.passages import Passage, encode_passages
from korbert.tasks.retrieval import fuse_scores, weight_among
from korbert.tasks.splits import Splits
from korbert.tokenization import AnyTokenizer
from korbert.training import Batch, Scoring, model_inputs, outputs
from korbert.vectors import Side

_logger = logging.getLogger(__name__)

_Form = Literal["texts", "pairs", "labels", "scores", "vectors"]

_ABOUT: Mapping[_Form, Message] = {
    "texts": Message("texts alone, each under two draws of dropout"),
    "pairs": Message("pairs that are near"),
    "labels": Message("pairs that are near or far by their label"),
    "scores": Message("scores of pairs"),
    "vectors": Message("the vectors of a teacher"),
}


QUERY = replace(ROLES["text"], names=(*ROLES["text"].names, "query", "anchor", "question", "질의", "질문"))
PASSAGE = replace(ROLES["pair"], names=(*ROLES["pair"].names, "passage", "positive", "context", "지문", "문맥"))
NEGATIVES = ROLES["negatives"]

_WEIGHTS = (0.0, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # of cosines, which are added to BM25
_TERMS_PER_MORPHEME = 0.6  # 0.58 to 0.62 on four sets: particles, endings and symbols are not search terms


class Embedding(Kind, frozen=True):
    """Text embeddings. learns: form of the training rows. sizes: leading dimensions that are trained as vectors, too.
    query_prompt, passage_prompt: what is put before queries and passages, of pairs and of a search. cosine_weight: the
    weight of cosines, which are added to BM25 in a search by both, chosen on validation pairs and scaled to texts of
    100 terms (retrieval.weight_among); 0: words alone rank as well. near_batches: as in EmbeddingSection.

    Targets and predictions depend on the rows to validate on. Scored pairs: a target is the score, a prediction the
    cosine of the two vectors. Retrieval: a target is the right passage, a prediction {"cosine": .., "rank": of the
    right passage among those of all rows, from 1}. A teacher's vectors: a target is 1, a prediction the cosine of the
    vector and the teacher's.
    """

    name: ClassVar[str] = "embedding"
    roles: ClassVar[tuple[Role, ...]] = (
        QUERY,
        *(replace(role, required=False) for role in (PASSAGE, ROLES["label"], ROLES["score"])),
        NEGATIVES,
        ROLES["vector"],
    )
    roles_to_score: ClassVar[tuple[Role, ...]] = (QUERY, PASSAGE, replace(ROLES["score"], required=False), NEGATIVES)
    needs: ClassVar[tuple[str, ...]] = ("text", "pair")
    operation: ClassVar[str] = "embed"
    command: ClassVar[str] = "embed"
    cuts_vectors: ClassVar[bool] = True
    predicts_untrained: ClassVar[bool] = True
    compares_rows: ClassVar[bool] = True

    learns: _Form
    near: tuple[str, ...] = ("entailment",)
    far: tuple[str, ...] = ("contradiction",)
    temperature: float = 0.05
    dropout: float = 0.1
    pooling: Pooling = "mean"
    piece_weights: bool | None = None
    normalize: bool = False
    sizes: tuple[int, ...] = ()
    chunk_pieces: int = 8_192
    query_prompt: str = ""
    passage_prompt: str = ""
    cosine_weight: float = 0.0
    near_batches: bool = Field(False, exclude_if=not_)

    @classmethod
    def from_training_rows(cls, rows: TaskRows, settings: EmbeddingSection) -> Self:
        present = {role for role in ("pair", "label", "score") if any(row.get(role) is not None for row in rows)}
        learns: _Form = "scores" if "score" in present else "labels" if "label" in present else "pairs"
        if "pair" not in present:
            learns = "texts" if all(row.get("vector") is None for row in rows) else "vectors"

        # Rows without signal, and settings that cannot learn from such rows.
        if learns == "vectors":
            sizes = {len(row["vector"]) for row in rows if row.get("vector") is not None}
            if len(sizes) > 1:
                raise CorpusError(
                    "{files}: vectors of {sizes} numbers: all need one size",
                    files=rows.files,
                    sizes=", ".join(map(str, sorted(sizes))),
                )
        if learns == "scores":
            scores = {row["score"] for row in rows if row.get("score") is not None}
            if len(scores) == 1:
                raise CorpusError("all rows have the score {scores:g}: give rows with others, too", scores=min(scores))
        elif not settings.valid and learns not in ("pairs", "vectors"):
            raise SettingsError(
                "valid: the training rows are {about}, which vectors cannot be validated on: take them from "
                "files (train), and name one of pairs, with scores or without (valid)",
                about=_ABOUT[learns],
            )
        if learns == "labels":
            labels = {row["label"] for row in rows if row.get("pair") is not None and row.get("label") is not None}
            if not labels & set(settings.near):
                raise CorpusError(
                    "no pair has a label of near ({near}); there are {labels}: name those of pairs that are near, "
                    "near = [..]",
                    near=", ".join(settings.near),
                    labels=", ".join(sorted(labels)[:10]),
                )
        if learns == "texts" and not settings.dropout:
            raise SettingsError("dropout 0: two vectors of a text do not differ then: take some, 0.1 is usual")
        if min(settings.batch_size) < (least := 2 * current_world().size):
            raise SettingsError(
                "batch_size {batch_size}: rows are compared with others of their batch: take {least} at least",
                batch_size=min(settings.batch_size),
                least=least,
            )
        if settings.frozen_layers < 0:
            raise SettingsError(
                "frozen_layers -1: nothing would learn, vectors have no weights but the encoder's: take 0"
            )

        if settings.near_batches and learns != "vectors":
            raise SettingsError("near_batches: is for the vectors of a teacher: leave it out")
        return cls.of_settings(settings, ("spearman", "pearson"), learns=learns)

    def validated_on(self, rows: TaskRows) -> Self:
        """Chooses correlation with scores if there are some, else retrieval of pairs, else the teacher's vectors."""
        if self.learns == "scores":
            return self
        candidates = (scores for scores in ALL_SCORES if any(row.get(scores.role) is not None for row in rows))
        scores = next(candidates, BY_SIMILARITY)
        if scores is BY_RETRIEVAL:
            package("sklearn", "a model that finds texts")  # `complete_task` compares with words
        return self if self.metrics[0] in scores.metrics else self.model_copy(update={"metrics": tuple(scores.metrics)})

    @property
    def _scores(self) -> VectorScores:
        return next((scores for scores in ALL_SCORES if self.metrics[0] in scores.metrics), BY_SIMILARITY)

    def description(self) -> Message:
        return Message("vectors of texts, from {source}", source=_ABOUT[self.learns])

    def texts(self, row: TaskRow) -> list[str]:
        return [row["text"]] if row.get("pair") is None else [row["text"], row["pair"], *(row.get("negatives") or ())]

    def group_texts(self, row: TaskRow) -> list[str]:
        return self._scores.group_texts(row)

    def target(self, row: TaskRow) -> float | str:
        return self._scores.target(row)

    def check_training_row(self, row: TaskRow) -> None:
        if self.learns == "scores":
            self.target(row)
        elif self.learns == "vectors":
            require_value(row, "vector")
        elif self.learns != "texts":
            require_value(row, "pair")
        elif row.get("pair") is not None:  # of warm_up
            raise ValueError(Message("has two texts, where the training rows have one"))
        if self.learns == "labels" and row.get("label") not in (*self.near, *self.far):
            raise ValueError(Message("label {label!r} is neither near nor far", label=row.get("label")))

    def prepare(
        self, rows: Sequence[TaskRow], passages: Sequence[Sequence[Passage]], tokenizer: AnyTokenizer
    ) -> Prepared:
        groups: Sequence[Sequence[Passage]] = passages
        if self.learns == "labels" and any(row.get("label") is not None for row in rows):
            groups = self._by_anchor(rows, passages)
        if self.learns == "scores":
            groups = [group[:2] for group in groups]
            labels = np.array([row.get("score") or 0.0 for row in rows], dtype=np.float32)
        elif self.learns == "vectors" and all(row.get("vector") is not None for row in rows):
            groups = [group[:1] for group in groups]
            labels = np.stack([row["vector"] for row in rows])
        else:  # a number of each text, to recognise equal ones; -1: no text
            texts = dict.fromkeys(passage.text for group in groups for passage in group)
            text_ids = {text: number for number, text in enumerate(texts)}
            labels = np.full((len(groups), max(map(len, groups), default=2)), -1, np.int64)
            for number, group in enumerate(groups):
                labels[number, : len(group)] = [text_ids[passage.text] for passage in group]
        prompted = self.learns == "pairs" and (self.query_prompt or self.passage_prompt)
        if prompted and all(row.get("score") is None for row in rows):
            query_prompt, passage_prompt = encode_passages(tokenizer, [self.query_prompt, self.passage_prompt])
            groups = [[query_prompt.joined(first), *map(passage_prompt.joined, others)] for first, *others in groups]
        members = [[(passage,) for passage in group] for group in groups]
        groups_class = NearGroups if self.near_batches and labels.dtype == np.float32 else Groups
        return Prepared(rows, groups_class.of(members, labels, tokenizer, self.max_length))

    def prompt(self, side: Side) -> str:
        return self.query_prompt if side == "query" else self.passage_prompt

    def _by_anchor(self, rows: Sequence[TaskRow], passages: Sequence[Sequence[Passage]]) -> list[list[Passage]]:
        """(text, near text, far text if any) for each near pair; far texts are assigned in turn."""
        pairs: dict[str, tuple[Passage, list[Passage], list[Passage]]] = {}
        for row, (anchor, other, *_) in zip(rows, passages, strict=True):
            _, near, far = pairs.setdefault(anchor.text, (anchor, [], []))
            (near if row["label"] in self.near else far).append(other)
        groups = [
            [anchor, positive, far[index % len(far)]] if far else [anchor, positive]
            for anchor, near, far in pairs.values()
            for index, positive in enumerate(near)
        ]
        if unused := sum(len(far) for _, near, far in pairs.values() if not near):
            _logger.info("%d far pairs have a text without a near pair: they are left out", unused)
        return groups

    def model(self, config: AnyConfig, generator: torch.Generator | None = None) -> EmbeddingModel:
        if self.sizes and max(self.sizes) >= (width := int(config.hidden_size)):
            raise SettingsError(
                "sizes {sizes}: vectors have {width} numbers: take smaller ones", sizes=list(self.sizes), width=width
            )
        # At least the dropout of the task, everywhere in the encoder.
        if isinstance(config, EncoderConfig):
            names = ("hidden_dropout_prob", "attention_probs_dropout_prob")
            dropout: dict[str, Any] = {name: max(self.dropout, getattr(config, name)) for name in names}
            weighted = config.architecture == "modern" if self.piece_weights is None else self.piece_weights
            config = config.model_copy(update=dropout | {"piece_weights": weighted or config.piece_weights})
        else:
            values = dict(config.transformers)
            for name, value in values.items():
                if "dropout" in name and "classifier" not in name and isinstance(value, float):
                    values[name] = max(self.dropout, value)
            config = config.model_copy(update={"transformers": values})
        return EmbeddingModel(config, self.pooling, self.normalize, generator)

    def loss(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """Contrastive loss, in nats per text, or ranking loss of scores, in nats per batch.

        With `sizes`, the mean over the whole vectors and their leading dimensions (Kusupati et al. 2022, 3).
        """
        inputs = model_inputs(batch)
        sizes = np.array(batch["sizes"])
        labels = batch["labels"]
        if self.learns == "texts":
            inputs = {  # the rows, followed by the same rows again
                name: torch.cat([value, value]) if isinstance(value, Tensor) else (*value, *value)
                for name, value in inputs.items()
            }
            sizes = np.full(len(labels), 2)
            labels = labels.expand(-1, 2)
            order = np.arange(2 * len(labels)).reshape(2, -1).T.ravel()  # each text followed by its second draw
            vectors = in_chunks(model, inputs, self.chunk_pieces)[order]
        else:
            vectors = in_chunks(model, inputs, self.chunk_pieces)
        firsts = np.cumsum(sizes) - sizes
        anchors = vectors[firsts]
        loss_of: Callable[..., Tensor]
        if self.learns == "vectors":
            sides = [anchors]
            loss_of = partial(distillation_loss, teacher=labels, temperature=self.temperature)
        elif self.learns == "scores":
            loss_of = partial(ranking_loss, targets=labels, temperature=self.temperature)
            sides = [anchors, vectors[firsts + 1]]
        else:
            negatives = np.setdiff1d(np.arange(len(vectors)), [firsts, firsts + 1])
            sides = [anchors, vectors[np.concatenate([firsts + 1, negatives])]]
            # The positives of all rows with the same text fit that text, even where they are negatives of another row.
            anchor_ids, positive_ids = labels[:, :2].unbind(1)
            negative_ids = labels[:, 2:]
            same_text = anchor_ids[:, None] == anchor_ids
            same_candidate = positive_ids[:, None] == torch.cat([positive_ids, negative_ids[negative_ids >= 0]])
            fits = same_text.float() @ same_candidate.float() > 0
            loss_of = partial(contrastive_loss, fits=fits, temperature=self.temperature)
        losses = [loss_of(*(side[:, :cut] for side in sides)) for cut in (vectors.shape[1], *self.sizes)]
        return {"loss": torch.stack(losses).mean()}

    def predict(self, model: nn.Module, prepared: Prepared, **how: Unpack[Scoring]) -> list[TaskPrediction]:
        for scores in (self._scores, BY_SIMILARITY):
            if all(row.get(scores.compared) is not None for row in prepared.rows):
                return scores.predictions(prepared.rows, *_vectors(model, prepared, **how))
        raise SettingsError(
            "a row has one text: give pairs, whose cosine is predicted; korbert.load(..).embed gives vectors"
        )

    def complete_task(
        self, model: nn.Module, valid: Prepared, read_morphemes: Callable[[], Morphemes], **how: Unpack[Scoring]
    ) -> Self:
        """Chooses cosine_weight by the mean reciprocal rank, if the task is validated by retrieval.

        The smallest weight with two thirds of the largest gain over words alone is chosen. Words are safer for queries
        unlike those of validation: a weight that gains most on these may lose on others ("A model for search" in
        benchmarks/RESULTS.md).
        """
        if self._scores is not BY_RETRIEVAL:
            return self
        query_vectors, other_vectors = _vectors(model, valid, **how)
        searched, passage_vectors = BY_RETRIEVAL.run_search(valid.rows, other_vectors)
        morphemes = read_morphemes()
        bm25_scores_of = searched.by_words(morphemes)
        num_morphemes = [len(morphemes[text]) for text in searched.passages]
        terms_per_passage = _TERMS_PER_MORPHEME * float(np.mean(num_morphemes))

        def mean_reciprocal_rank(weight: float) -> float:
            cosine_weight = weight_among(terms_per_passage, weight)

            def fused_scores(some_queries: slice) -> NDArray[np.float32]:
                cosines = query_vectors[some_queries] @ passage_vectors.T
                return fuse_scores(bm25_scores_of(some_queries), cosines, cosine_weight)

            return retrieval.METRICS["mrr"](searched.ranks(fused_scores))

        mrr_of_words = mean_reciprocal_rank(0.0)
        gains = {weight: mean_reciprocal_rank(weight) - mrr_of_words for weight in _WEIGHTS}
        required_gain = 2 / 3 * max(gains.values())  # at least 0, the gain of weight 0
        return self.model_copy(
            update={"cosine_weight": min(weight for weight in gains if gains[weight] >= required_gain)}
        )

    def baselines(self, parts: Splits, morphemes: Morphemes) -> Iterator[Baseline]:
        """Cosine of TF-IDF over morphemes, fitted on the training texts; of retrieval, BM25; none with a teacher."""
        texts = list(dict.fromkeys(text for row in parts.train for text in self.texts(row)))
        yield from self._scores.baselines(texts, parts.scored.rows, morphemes)

    def run(self, rows: Sequence[TaskRow], predictions: Sequence[TaskPrediction]) -> RunArray:
        """(N, 2) score and cosine; of retrieval, (N,) ranks; with a teacher, (N,) cosines."""
        return self._scores.run(rows, predictions)

    def score(self, metric: str) -> Score:
        return repeated(score_named(self._scores.metrics, metric))


def _vectors(
    model: nn.Module, prepared: Prepared, **how: Unpack[Scoring]
) -> tuple[NDArray[np.float32], list[NDArray[np.float32]]]:
    """Unit vectors of the rows' first texts, (N, D), and of the other texts of each row, (n, D)."""
    groups = prepared.examples
    assert isinstance(groups, Groups)
    members = groups.members
    if advance := how.get("advance"):  # counts rows, not their texts
        how["advance"] = lambda count: advance(round(count * len(groups) / len(members)))
    vectors = outputs(
        model, members, lambda model, batch: functional.normalize(model(**model_inputs(batch)).float(), dim=-1), **how
    )
    parts = np.split(vectors, groups.firsts[1:-1])
    return vectors[groups.firsts[:-1]], [part[1:] for part in parts]
