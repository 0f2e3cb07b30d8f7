"""Losses of text embeddings: contrastive and ranking; and large batches in little memory."""

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from korbert.training import Batch

_MASKED = -1e4  # finite: the difference of two infinities is NaN


def contrastive_loss(anchors: Tensor, candidates: Tensor, fits: Tensor, temperature: float) -> Tensor:
    """Cross-entropy of picking each anchor's own candidate among all candidates, by cosine / temperature.

    anchors: (N, D); candidates: (C, D): candidate i < N belongs to anchor i, candidates from N on are negatives of all
    anchors. fits: (N, C) bool, True where a candidate fits an anchor; fitting candidates other than the anchor's own
    are left out of its denominator. Gao et al. 2021, equations 4 (no negatives) and 5.
    """
    with torch.autocast(anchors.device.type, enabled=False):  # divided by 0.05, bf16 errors would matter
        scores = F.normalize(anchors, dim=-1) @ F.normalize(candidates, dim=-1).T / temperature
    targets = torch.arange(len(anchors), device=anchors.device)
    left_out = fits.clone()
    left_out[targets, targets] = False
    return F.cross_entropy(scores.masked_fill(left_out, float("-inf")), targets)


def distillation_loss(vectors: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """1 - cosine to the teacher's vectors, plus the KL divergence from the teacher's neighbour distributions.

    The neighbour distribution of a text is the softmax of its cosines / temperature to the other texts of the batch.
    vectors: (N, D); teacher: (N, K). With K > D there is only the second term; with K < D, the first term compares the
    leading K dimensions of `vectors`. Reimers and Gurevych 2020 use the distance of vectors, Passalis and Tefas 2018
    the divergence. Squared differences of cosines were worse: "A model for search" in benchmarks/RESULTS.md.
    """
    width = min(vectors.shape[1], teacher.shape[1])
    with torch.autocast(vectors.device.type, enabled=False):
        diagonal = torch.eye(len(vectors), dtype=torch.bool, device=vectors.device)
        unit_vectors = (F.normalize(side, dim=-1) for side in (vectors, teacher))
        student_neighbours, teacher_neighbours = (
            (side @ side.T / temperature).masked_fill(diagonal, _MASKED).log_softmax(dim=-1) for side in unit_vectors
        )
        loss = F.kl_div(student_neighbours, teacher_neighbours, reduction="batchmean", log_target=True)
        if width == teacher.shape[1]:
            loss = loss + (1 - F.cosine_similarity(vectors[:, :width], teacher)).mean()
        return loss


def in_chunks(model: nn.Module, inputs: Batch, pieces: int) -> Tensor:
    """Returns the model's vectors of all rows, (N, D) float32, in chunks of about `pieces` pieces, at least one row.

    If there are several chunks, only their vectors are kept: the backward pass computes each chunk once more, under the
    same dropout. Loss and gradients are those of one large batch, in the memory of one chunk (GradCache, Gao et al.
    2021, arXiv 2101.06983).
    """
    lengths = inputs["lengths"]
    chunks = np.cumsum(lengths) // pieces
    if chunks[-1] == chunks[0] or not torch.is_grad_enabled():
        return model(**inputs).float()  # type: ignore[no-any-return]

    def vectors_of(rows: slice) -> Tensor:
        longest = max(lengths[rows])
        chunk = {
            name: value[rows, :longest] if isinstance(value, Tensor) else value[rows] for name, value in inputs.items()
        }
        return model(**chunk).float()  # type: ignore[no-any-return]

    starts = np.searchsorted(chunks, np.unique(chunks)).tolist()
    parts = [slice(start, end) for start, end in pairwise([*starts, len(lengths)])]
    return torch.cat([checkpoint(vectors_of, rows, use_reentrant=False) for rows in parts])


def ranking_loss(first: Tensor, second: Tensor, targets: Tensor, temperature: float) -> Tensor:
    """CoSENT: log(1 + sum of exp((c_j - c_i) / temperature) over all i, j with target i above target j), c the cosines.

    first, second: (N, D); targets: (N,), of any scale. Su 2022, https://kexue.fm/archives/8847. On KorSTS better than
    squared error between cosines and scaled scores: validation Spearman 0.590 against 0.532 at a learning rate of
    2e-4, 0.632 against 0.604 at 1e-3 (2 layers, hidden size 128, one epoch, batches of 64, one seed).
    """
    scores = F.cosine_similarity(first, second) / temperature
    differences = (scores[None, :] - scores[:, None])[targets[:, None] > targets[None, :]]
    return torch.cat([differences.new_zeros(1), differences]).logsumexp(dim=0)
