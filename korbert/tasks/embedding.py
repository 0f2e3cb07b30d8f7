"""Losses of text embeddings: contrastive and ranking."""

import torch
from torch import Tensor
from torch.nn import functional as F


def contrastive_loss(anchors: Tensor, positives: Tensor, negatives: Tensor, same: Tensor, temperature: float) -> Tensor:
    """Cross-entropy of picking each anchor's positive among all positives and negatives, by cosine / temperature.

    anchors, positives: (N, D); negatives: (M, D), M may be 0. same: (N, N) bool, True where two anchors are the same
    text, whose positives are not used as each other's negatives. Gao et al. 2021, equations 4 (no negatives) and 5.
    """
    with torch.autocast(anchors.device.type, enabled=False):  # divided by 0.05, bf16 errors would matter
        scores = F.normalize(anchors, dim=-1) @ F.normalize(torch.cat([positives, negatives]), dim=-1).T / temperature
    own = torch.arange(len(anchors), device=anchors.device)
    others = same & (own[:, None] != own)
    masked = F.pad(others, (0, len(negatives)))
    return F.cross_entropy(scores.masked_fill(masked, float("-inf")), own)


def ranking_loss(first: Tensor, second: Tensor, targets: Tensor, temperature: float) -> Tensor:
    """CoSENT: log(1 + sum of exp((c_j - c_i) / temperature) over all i, j with target i above target j), c the cosines.

    first, second: (N, D); targets: (N,), of any scale. Su 2022, https://kexue.fm/archives/8847. On KorSTS better than
    squared error between cosines and scaled scores: validation Spearman 0.590 against 0.532 at a learning rate of
    2e-4, 0.632 against 0.604 at 1e-3 (2 layers, hidden size 128, one epoch, batches of 64, one seed).
    """
    scores = cosines(first, second) / temperature
    wrong = (scores[None, :] - scores[:, None])[targets[:, None] > targets[None, :]]
    return torch.cat([wrong.new_zeros(1), wrong]).logsumexp(dim=0)


def cosines(first: Tensor, second: Tensor) -> Tensor:
    """Row-wise cosine similarity: (N, D), (N, D) -> (N,)."""
    return F.cosine_similarity(first, second, dim=-1)
