"""Distillation (distill; Sanh et al. 2019): a student learns the predictions of a teacher with the same vocabulary.

Besides the other objectives, the student matches the teacher's distribution over pieces at each gap, softened by a
temperature, and the direction of its vectors of all pieces.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from korbert.errors import ModelError
from korbert.modeling import PretrainingModel, Rows
from korbert.pretraining.objective_settings import DistillationSettings
from korbert.pretraining.objectives.objective import SCORED_AT_ONCE, Objective, best_classes, sums
from korbert.training import Batch


def take_layers(model: PretrainingModel, teacher: PretrainingModel) -> None:
    """Copies the teacher's embeddings, heads and evenly spaced layers, the first one included, into the student.

    A reader's head that the teacher lacks stays as it is. ModelError if the two differ in more than the number of
    layers.
    """
    weights = teacher.state_dict()
    state = model.state_dict()
    for name in state:
        parts = name.split(".")
        if name.startswith("encoder.layers."):
            parts[2] = str(int(parts[2]) * teacher.config.distinct_layers // model.config.distinct_layers)
        source = weights.get(".".join(parts))
        if source is None and name.startswith("reader."):
            continue
        if source is None or source.shape != state[name].shape:
            raise ModelError(
                "{name} is {shape} in the student, and of another shape or absent in the teacher: give both "
                "the same encoder but for num_hidden_layers, or set pretrain.distill.begin = false",
                name=name,
                shape=list(state[name].shape),
            )
        state[name] = source
    model.load_state_dict(state)


class Distillation(Objective):
    """The loss is the sum of two means: over gaps, soft x T^2 x the divergence of the student's distribution from the
    teacher's at temperature T; over pieces, cosine x (1 - the cosine of both vectors). The teacher has no gradient.
    """

    name = "distill"

    def __init__(self, teacher: PretrainingModel, settings: DistillationSettings) -> None:
        self._teacher = teacher.eval().requires_grad_(False)
        self._settings = settings

    def loss(self, model: PretrainingModel, vectors: Tensor, batch: Batch, rows: Rows) -> Tensor:
        """Both means, times the pieces of all rows (distill_count)."""
        targets = self._vectors(vectors.device, batch, rows)
        loss = vectors.new_zeros((), dtype=torch.float32)
        if self._settings.soft:
            temperature = self._settings.temperature
            places = batch["label_places"]
            student = (model.mlm_head(vectors[places]).float() / temperature).log_softmax(dim=1)
            with torch.no_grad():
                expected = (self._teacher.mlm_head(targets[places]).float() / temperature).log_softmax(dim=1)
            gaps = F.kl_div(student, expected, reduction="sum", log_target=True) * temperature**2
            loss = loss + self._settings.soft * gaps * batch["distill_count"] / batch["mlm_count"].clamp(min=1)
        if self._settings.cosine:
            loss = loss + self._settings.cosine * (1 - F.cosine_similarity(vectors.float(), targets.float())).sum()
        return loss

    def score(self, model: PretrainingModel, vectors: Tensor, batch: Batch, rows: Rows) -> Tensor:
        """The divergence at temperature 1; a gap is correct if its top piece equals the teacher's."""
        targets = self._vectors(vectors.device, batch, rows)
        total = torch.zeros(3, dtype=torch.float64)
        for places in batch["label_places"].split(SCORED_AT_ONCE):
            student = model.mlm_head(vectors[places]).float()
            expected = self._teacher.mlm_head(targets[places]).float()
            losses = F.kl_div(student.log_softmax(1), expected.log_softmax(1), reduction="sum", log_target=True)
            total += sums(losses, best_classes(student) == best_classes(expected))
        return total

    @torch.no_grad()
    def _vectors(self, device: torch.device, batch: Batch, rows: Rows) -> Tensor:
        """The teacher's vectors of all pieces, (N, D)."""
        encoder = self._teacher.to(device).encoder
        return encoder.forward_flat(batch["input_ids"], rows, batch["token_type_ids"], batch["boundaries"])
