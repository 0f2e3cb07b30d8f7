"""Replaced token detection (rtd; Clark et al. 2020): a small generator fills the gaps of a row with pieces drawn from
its distribution, and the encoder predicts for every piece whether it is the original.

The generator has the encoder's depth and a share of its width, and shares the embeddings of pieces with it. It learns
MLM alone: no gradient passes through what it draws.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from korbert.modeling import DetectionModel, EncoderConfig, PretrainingModel, Rows, without_weights
from korbert.pretraining.objective_settings import ReplacementSettings
from korbert.pretraining.objectives.losses import Loss, Part
from korbert.pretraining.objectives.objective import SCORED_AT_ONCE, Objective, Pairing, Prediction, sums
from korbert.training import Batch


def generator_config(config: EncoderConfig, share: float) -> EncoderConfig:
    """The encoder of the generator: layers narrower by `share`, heads of the same size, the embeddings' width equal."""
    heads = max(1, round(config.num_attention_heads * share))
    return config.model_copy(
        update={
            "hidden_size": heads * config.head_size,
            "num_attention_heads": heads,
            "intermediate_size": max(1, round(config.intermediate_size * share)),
            "embedding_size": config.embedding_width,
        }
    )


class ReplacementModel(DetectionModel):
    """A DetectionModel with the generator that it learns from. generator: draws the initial weights."""

    def __init__(
        self, config: EncoderConfig, settings: ReplacementSettings, generator: torch.Generator | None = None
    ) -> None:
        super().__init__(config, generator)
        self.generator = PretrainingModel(generator_config(config, settings.generator_share), generator, ("mlm",))
        # Shared, but a parameter of the encoder only: an attribute not registered as a submodule.
        embeddings: Any = self.generator.encoder.embeddings
        del embeddings.token
        embeddings.__dict__["token"] = self.encoder.embeddings.token

    def detection_model(self) -> DetectionModel:
        """The encoder with its head, as it is saved."""
        with without_weights():
            model = DetectionModel(self.config)
        weights = {name: tensor for name, tensor in self.state_dict().items() if not name.startswith("generator.")}
        model.load_state_dict(weights, assign=True)
        return model

    def generator_model(self) -> PretrainingModel:
        """The generator with its embeddings, as it is saved."""
        with without_weights():
            model = PretrainingModel(self.generator.config, objectives=("mlm",))
        token = {"encoder.embeddings.token.weight": self.encoder.token_weight.detach()}
        model.load_state_dict(self.generator.state_dict() | token, assign=True)
        return model


class Detection(Objective):
    """Whether each piece was replaced, from the vectors of all pieces."""

    name = "rtd"

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def loss(self, model: DetectionModel, vectors: Tensor, batch: Batch, rows: Rows) -> Tensor:
        scores = model.scores(vectors).float()
        return F.binary_cross_entropy_with_logits(scores, batch["replaced"], reduction="sum")

    def score(self, model: DetectionModel, vectors: Tensor, batch: Batch, rows: Rows) -> Tensor:
        correct = (model.scores(vectors) > 0) == batch["replaced"].bool()
        return sums(self.loss(model, vectors, batch, rows), correct)


class ReplacementLoss(Loss):
    """The loss of a ReplacementModel: of its generator (mlm), weighted of its detector (rtd), and of pairs (nsp, sop).

    batch: of PretrainingRows with "rtd", whose lots decide what the generator draws.
    """

    def __init__(self, settings: ReplacementSettings, pairing: str | None = None) -> None:
        self._detection = Detection(settings.weight)
        self._pairing = Pairing(pairing) if pairing else None

    def encode_batch(self, model: ReplacementModel, batch: Batch, rows: Rows) -> tuple[Batch, list[Part]]:
        """Runs generator and encoder. The batch gets `replaced`, (N,) float32: a gap for which the generator draws the
        original piece counts as original.
        """
        inputs = rows, batch["token_type_ids"], batch["boundaries"]
        gaps = batch["label_places"]
        generated = model.generator.encoder.forward_flat(batch["input_ids"], *inputs, wanted=gaps)
        original = batch["input_ids"].index_copy(0, gaps, batch["labels"])
        filled = original.index_copy(0, gaps, self._sample_replacements(model.generator, generated.detach(), batch))
        hidden = model.encoder.forward_flat(filled, *inputs)
        parts: list[Part] = [(Prediction(), model.generator, generated), (self._detection, model, hidden)]
        if self._pairing:
            parts.append((self._pairing, model, hidden[rows.first]))
        return {**batch, "replaced": (filled != original).float()}, parts

    @torch.no_grad()
    def _sample_replacements(self, generator: PretrainingModel, hidden: Tensor, batch: Batch) -> Tensor:
        """(M,) int64: a piece for each gap, drawn from the generator's distribution by its lot."""
        vectors = generator.mlm.transform(hidden)
        pieces = []
        for part, lots in zip(vectors.split(SCORED_AT_ONCE), batch["lots"].split(SCORED_AT_ONCE), strict=True):
            scores = F.linear(part, generator.encoder.token_weight, generator.mlm.bias)
            # Inverse transform sampling: lots are uniform in [0, 1).
            ends = scores.float().softmax(dim=1).cumsum(dim=1)
            place = torch.searchsorted(ends, lots[:, None].to(ends.dtype) * ends[:, -1:])
            pieces.append(place.clamp_(max=scores.shape[1] - 1).flatten())
        return torch.cat(pieces)
