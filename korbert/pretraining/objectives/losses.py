"""Losses of pretraining, and held-out figures with the unigram baseline."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from korbert.modeling import PretrainingModel, Rows
from korbert.pretraining.objective_settings import ObjectiveName
from korbert.pretraining.objectives.distillation import Distillation
from korbert.pretraining.objectives.objective import Objective, Pairing, Prediction
from korbert.pretraining.objectives.spans import SpanSelection
from korbert.pretraining.objectives.vocabulary import look_up_embeddings
from korbert.system import current_world
from korbert.training import Batch, add_over_world, device_of, to_device

Part = tuple[Objective, Any, Tensor]
"""An objective, the model with its head, and the vectors that it needs."""


class Loss:
    """The loss of training, and the scores of `evaluate`, of a model's objectives. Waits for nothing on the device.

    Each objective's loss is a mean over its labels, or 0 without labels. Sums are divided by the labels of the whole
    step, so that the losses of its micro-batches add up.
    """

    def encode_batch(self, model: Any, batch: Batch, rows: Rows) -> tuple[Batch, list[Part]]:
        """Runs the model on a batch of PretrainingRows. Returns the batch, with columns added for the objectives, and
        the part of each objective.
        """
        raise NotImplementedError

    def __call__(self, model: Any, batch: Batch) -> dict[str, Tensor]:
        """`loss`, the weighted sum of all objectives' losses, and NAME_loss of each."""
        rows = Rows(batch["lengths"], batch["input_ids"].device)
        batch, parts = self.encode_batch(model, batch, rows)
        losses = {}
        weighted = []
        for objective, head_model, vectors in parts:
            labels = batch[f"{objective.name}_count"].clamp(min=1)
            losses[f"{objective.name}_loss"] = loss = objective.loss(head_model, vectors, batch, rows) / labels
            weighted.append(objective.weight * loss)
        return {"loss": torch.stack(weighted).sum(), **losses}

    def scores(self, model: Any, batch: Batch) -> dict[str, Tensor]:
        """Objective -> sum of losses, correct predictions, labels: (3,) float64."""
        rows = Rows(batch["lengths"], batch["input_ids"].device)
        batch, parts = self.encode_batch(model, batch, rows)
        return {
            objective.name: objective.score(head_model, vectors, batch, rows)
            for objective, head_model, vectors in parts
        }


class PretrainingLoss(Loss):
    """The loss of a PretrainingModel with heads for the objectives.

    A batch with negatives is scored over its labels and negatives alone (`sampled_loss`). distillation: the objective
    "distill", with its teacher. compiled: whether torch.compile compiles the sampled loss.
    """

    def __init__(
        self,
        objectives: Sequence[ObjectiveName] = ("mlm", "nsp"),
        distillation: Distillation | None = None,
        *,
        compiled: bool = False,
    ) -> None:
        available: dict[str, Objective] = {
            "mlm": Prediction(compiled=compiled),
            "nsp": Pairing("nsp"),
            "sop": Pairing("sop"),
            "spans": SpanSelection(),
        } | ({"distill": distillation} if distillation else {})
        self._objectives = [available[name] for name in objectives]

    def encode_batch(self, model: PretrainingModel, batch: Batch, rows: Rows) -> tuple[Batch, list[Part]]:
        """Runs the encoder; its last layer computes only the vectors that the objectives need, if none needs all."""
        vectors, batch = look_up_embeddings(batch, model.encoder.token_weight)
        places = [objective.places(batch, rows) for objective in self._objectives]
        inputs = batch["input_ids"], rows, batch["token_type_ids"], batch["boundaries"]
        needed_places = [positions for positions in places if positions is not None]
        if len(needed_places) < len(places):
            hidden = model.encoder.forward_flat(*inputs, vectors=vectors)
            part_vectors = [hidden if positions is None else hidden[positions] for positions in places]
        else:
            selected = model.encoder.forward_flat(*inputs, vectors=vectors, wanted=torch.cat(needed_places))
            part_vectors = list(torch.split(selected, [len(positions) for positions in needed_places]))
        return batch, [(objective, model, part) for objective, part in zip(self._objectives, part_vectors, strict=True)]


@torch.no_grad()
def evaluate(
    model: nn.Module, batches: Iterable[Batch], unigram: NDArray[np.int64], loss: Loss
) -> dict[str, float | int]:
    """NAME_loss, NAME_accuracy and NAME_count of each objective, means over all labels of the batches; nan without.

    Of several connected processes each gives its own batches, and all get the means over all.
    unigram: (V,) counts of the pieces in the training text. unigram_loss is the cross-entropy of the predicted pieces
    under these counts: the baseline of a model that makes no use of context.
    """
    device = device_of(model)
    smoothed = unigram.astype(np.float64) + 1  # add-one smoothing (Laplace), for pieces that never occur
    expected = torch.from_numpy(np.log(smoothed) - np.log(smoothed.sum()))  # log probabilities, (V,)
    sums: dict[str, Tensor] = {}
    baseline = torch.zeros(3, dtype=torch.float64)
    for batch in batches:
        baseline[0] -= expected[batch["labels"]].sum()
        baseline[2] += len(batch["labels"])
        for name, scores in loss.scores(model, to_device(batch, device)).items():
            sums[name] = sums[name] + scores if name in sums else scores
    totals = torch.stack([*sums.values(), baseline])
    add_over_world(totals, current_world())
    means = (totals[:, :2] / totals[:, 2:]).tolist()
    figures: dict[str, float | int] = {}
    for name, (loss_mean, accuracy), count in zip(sums, means, totals[:, 2].tolist(), strict=False):
        figures |= {f"{name}_loss": loss_mean, f"{name}_accuracy": accuracy, f"{name}_count": int(count)}
    return {**figures, "unigram_loss": means[-1][0]}
