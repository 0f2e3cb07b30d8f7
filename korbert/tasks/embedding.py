"""Vectors of texts: the losses that bring texts near or apart, and an Embedder for new texts."""

from pathlib import Path
from typing import Self

import torch
from torch import Tensor
from torch.nn import functional as F

from korbert.modeling import EmbeddingModel, load_model, read_config
from korbert.training.devices import choose_device
from korbert.vectors.encoder import TextEncoder
from korbert.vectors.settings import Asked

__all__ = ["Embedder", "contrastive_loss", "cosines", "ranking_loss"]


def contrastive_loss(anchors: Tensor, positives: Tensor, negatives: Tensor, same: Tensor, temperature: float) -> Tensor:
    """Cross entropy of finding each anchor's positive among all positives and negatives, by cosine / temperature.

    anchors, positives: (N, D); negatives: (M, D), M may be 0. same: (N, N) bool, which anchors are one text: their
    positives are no negatives of each other. Gao et al. 2021, equations 4 (without negatives) and 5.
    """
    with torch.autocast(anchors.device.type, enabled=False):  # divided by 0.05, the error of bf16 would show
        found = F.normalize(anchors, dim=-1) @ F.normalize(torch.cat([positives, negatives]), dim=-1).T / temperature
    own = torch.arange(len(anchors), device=anchors.device)
    others = same & (own[:, None] != own)
    masked = F.pad(others, (0, len(negatives)))
    return F.cross_entropy(found.masked_fill(masked, float("-inf")), own)


def ranking_loss(first: Tensor, second: Tensor, targets: Tensor, temperature: float) -> Tensor:
    """log(1 + the sum of exp((c_j - c_i) / temperature) over all i, j with target i above target j), c the cosines.

    first, second: (N, D); targets: (N,), of any scale. Su 2022 (CoSENT), https://kexue.fm/archives/8847. On KorSTS
    above the squared error of cosines against scaled scores: Spearman on validation 0.590 to 0.532 at a rate of 2e-4,
    0.632 to 0.604 at 1e-3 (2 layers of 128 numbers, one epoch, batches of 64, one seed).
    """
    found = cosines(first, second) / temperature
    wrong = (found[None, :] - found[:, None])[targets[:, None] > targets[None, :]]
    return torch.cat([wrong.new_zeros(1), wrong]).logsumexp(dim=0)


def cosines(first: Tensor, second: Tensor) -> Tensor:
    """(N,) the cosine of each row with that of the other side. first, second: (N, D)."""
    return F.cosine_similarity(first, second, dim=-1)


class Embedder(TextEncoder[EmbeddingModel]):
    """Gives texts vectors with a model folder of kind "embedding", pooled as the model was trained."""

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto") -> Self:
        """From a folder written by korbert. Raises ModelError where it is not one, or of another kind."""
        model, tokenizer = load_model(folder, "embedding", choose_device(device))
        embedder = cls(model, tokenizer, read_config(folder)["task"].get("max_length"))
        embedder.name = str(folder)
        return embedder

    @property
    def size(self) -> int:
        """Numbers a vector."""
        return self.model.config.hidden_size

    @property
    def vector_defaults(self) -> Asked:
        return {"pooling": self.model.pooling, "normalize": self.model.normalize}
