"""Losses of pretraining, and held-out figures with the unigram baseline."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from korbert.modeling.models import PretrainingModel
from korbert.modeling.rows import Rows
from korbert.pretraining.objectives.base import Objective, Pairing, Prediction
from korbert.pretraining.objectives.distillation import Distillation
from korbert.pretraining.objectives.spans import SpanSelection
from korbert.pretraining.objectives.vocabulary import looked_up
from korbert.pretraining.settings import ObjectiveName
from korbert.training.devices import Batch, moved
from korbert.training.distributed import add_over_world
from korbert.world import connected


class Loss(Protocol):
    """The loss of training, and the scores of `evaluate`.

    A call gives `loss`, and each objective's own, as shares of the step's. scores: objective -> see `sums`.
    """

    def __call__(self, model: Any, batch: Batch) -> dict[str, Tensor]: ...
    def scores(self, model: Any, batch: Batch) -> dict[str, Tensor]: ...


class PretrainingLoss:
    """loss = the sum of all objectives' losses, each a mean over its labels, or 0 without labels.

    model: a PretrainingModel with heads for the objectives; batch: of PretrainingRows. Sums are divided by the labels
    of the whole step, so that the losses of its micro-batches add up. A batch with negatives is scored over these alone
    (`sampled_loss`). z_loss: see `full_loss`. distillation: with "distill", the one with the teacher. Waits for nothing
    on the device.
    """

    def __init__(
        self,
        objectives: Sequence[ObjectiveName] = ("mlm", "nsp"),
        z_loss: float = 0.0,
        distillation: Distillation | None = None,
    ) -> None:
        known: dict[str, Objective] = {
            "mlm": Prediction(z_loss),
            "nsp": Pairing("nsp"),
            "sop": Pairing("sop"),
            "spans": SpanSelection(),
        } | ({"distill": distillation} if distillation else {})
        self.objectives = [known[name] for name in objectives]

    def __call__(self, model: PretrainingModel, batch: Batch) -> dict[str, Tensor]:
        vectors, batch = looked_up(batch, model.decoder_weight)
        rows = Rows(batch["lengths"], batch["input_ids"].device)
        losses = {}
        encodings = encoded(model, batch, rows, self.objectives, vectors)
        for objective, hidden in zip(self.objectives, encodings, strict=True):
            labels = batch[f"{objective.name}_count"].clamp(min=1)
            losses[f"{objective.name}_loss"] = objective.loss(model, hidden, batch, rows) / labels
        return {"loss": torch.stack(list(losses.values())).sum(), **losses}

    def scores(self, model: PretrainingModel, batch: Batch) -> dict[str, Tensor]:
        """Objective -> sum of losses, correct predictions, labels: (3,) float64."""
        rows = Rows(batch["lengths"], batch["input_ids"].device)
        pairs = zip(self.objectives, encoded(model, batch, rows, self.objectives), strict=True)
        return {objective.name: objective.score(model, hidden, batch, rows) for objective, hidden in pairs}


pretraining_loss = PretrainingLoss()


def encoded(
    model: PretrainingModel, batch: Batch, rows: Rows, objectives: Sequence[Objective], vectors: Tensor | None = None
) -> Sequence[Tensor]:
    """The vectors that each objective needs, from one pass of the encoder; its last layer computes no others.

    vectors: (N, E), token embeddings of the batch that are already looked up.
    """
    places = [objective.places(batch, rows) for objective in objectives]
    inputs = batch["input_ids"], rows, batch["token_type_ids"], batch["boundaries"]
    some = [its for its in places if its is not None]
    if len(some) < len(places):
        hidden = model.encoder.flat(*inputs, vectors=vectors)
        return [hidden if its is None else hidden[its] for its in places]
    wanted = model.encoder.flat(*inputs, vectors=vectors, wanted=torch.cat(some))
    return torch.split(wanted, [len(its) for its in some])


@torch.no_grad()
def evaluate(
    model: nn.Module, batches: Iterable[Batch], unigram: NDArray[np.int64], loss: Loss = pretraining_loss
) -> dict[str, float | int]:
    """NAME_loss, NAME_accuracy and NAME_count of each objective, means over all labels of the batches; nan without.

    Of several connected processes each gives its own batches, and all get the means over all.
    unigram: (V,) counts of the pieces in the training text. unigram_loss is the cross-entropy of the predicted pieces
    under these counts (unigram_log_probabilities): the baseline of a model that makes no use of context.
    """
    device = next(model.parameters()).device
    expected = torch.from_numpy(unigram_log_probabilities(unigram))
    sums: dict[str, Tensor] = {}
    baseline = torch.zeros(3, dtype=torch.float64)
    for batch in batches:
        baseline[0] -= expected[batch["labels"]].sum()
        baseline[2] += len(batch["labels"])
        for name, scores in loss.scores(model, moved(batch, device)).items():
            sums[name] = sums[name] + scores if name in sums else scores
    totals = torch.stack([*sums.values(), baseline])
    add_over_world(totals, connected())
    figures: dict[str, float | int] = {}
    for name, (total, right, count) in zip(sums, totals.tolist(), strict=False):
        figures |= {
            f"{name}_loss": _ratio(total, count),
            f"{name}_accuracy": _ratio(right, count),
            f"{name}_count": int(count),
        }
    return {**figures, "unigram_loss": _ratio(totals[-1, 0].item(), totals[-1, 2].item())}


def unigram_log_probabilities(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Log probability of each piece, (V,), with add-one smoothing (Laplace) for pieces that never occur."""
    smoothed = counts.astype(np.float64) + 1
    return np.log(smoothed) - np.log(smoothed.sum())


def _ratio(total: float, count: float) -> float:
    return total / count if count else float("nan")
