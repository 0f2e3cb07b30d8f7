"""A linear-chain CRF (Lafferty et al. 2001) on layers of an encoder: tags of a sequence, each beside its neighbours.

The score of a tag sequence is the sum of a score of each tag at its place, which a linear layer gives, of one for each
pair of neighbouring tags, and of one for the first tag. Its probability is the softmax over all sequences.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx

from korbert.modeling.adapters.transformers_encoder import TransformersEncoder, encoder_of
from korbert.modeling.config import AnyConfig
from korbert.modeling.encoder import Encoder
from korbert.modeling.features import LayerReader

_BARRED = -30.0  # of tags that may not follow; finite, as texts that are cut may begin in the middle of a span


class Steps(NamedTuple):
    """Units of several sequences, step by step: the first unit of each sequence, then the second of each, and so on.

    Within a step, the longest sequence comes first. order: (U,) the place of each of these units among the units of
    all sequences, one sequence after the other. sizes: number of sequences that have a unit at each step.
    """

    order: NDArray[np.int64]
    sizes: Sequence[int]

    @classmethod
    def of(cls, lengths: Sequence[int]) -> "Steps":
        """Orders the units of sequences of these lengths; an empty sequence has none."""
        counts = np.asarray(lengths, np.int64)
        firsts = np.cumsum(counts) - counts
        longest = np.argsort(-counts, kind="stable")
        sizes = [int((counts > step).sum()) for step in range(int(counts.max(initial=0)))]
        parts = [firsts[longest[:size]] + step for step, size in enumerate(sizes)]
        return cls(np.concatenate([np.empty(0, np.int64), *parts]), sizes)

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where the units of each step begin; at the end, their number."""
        return np.cumsum([0, *self.sizes])


class CrfModel(LayerReader):
    """An encoder and a linear-chain CRF on the vectors of some of its layers, side by side.

    labels: the tags. layers: indices as in Encoder.all_layers. first: (C,) which tags may come first; follows: (C, C)
    which tag (column) may follow which (row). `standardize` brings each dimension to mean 0 and deviation 1.
    """

    kind: ClassVar[str] = "crf"
    saved: ClassVar[tuple[str, ...]] = ("labels", "layers")
    not_exported: ClassVar[str] = 'a CRF, which nothing in transformers computes: train one with only = "encoder"'

    def __init__(
        self,
        config: AnyConfig,
        labels: Sequence[str],
        layers: Sequence[int],
        generator: torch.Generator | None = None,
        encoder: Encoder | TransformersEncoder | None = None,
    ) -> None:
        super().__init__(config, len(layers))
        self.labels = tuple(labels)
        self.layers = tuple(layers)
        count = len(self.labels)
        self.first = nn.Buffer(torch.ones(count, dtype=torch.bool))
        self.follows = nn.Buffer(torch.ones(count, count, dtype=torch.bool))
        self.classifier = nn.Linear(len(layers) * config.hidden_size, count)
        self.transitions = nn.Parameter(torch.zeros(count, count))
        self.starts = nn.Parameter(torch.zeros(count))
        nn.init.zeros_(self.classifier.weight)
        nn.init.zeros_(self.classifier.bias)
        self.encoder = encoder_of(config, generator) if encoder is None else encoder

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, *others: object,
        targets: Tensor | None = None, shares: Tensor | None = None, **named: object,
    ) -> Tensor:  # fmt: skip
        """The score of each tag of each piece, (B, T, C). Arguments as Encoder.forward.

        targets: (B, T) tags; with them, returns the sum of the loss over the batch. A row of pieces with a tag of 0 or
        more is a sequence; pieces with a tag below 0 are left out. shares: (B, T, C) as in `loss`.
        """
        scores = self.classifier(self.vectors(input_ids, attention_mask, *others, **named))
        if targets is None:
            return scores
        is_unit = targets >= 0
        unit_shares = None if shares is None else shares[is_unit]
        return self.loss(scores[is_unit], targets[is_unit], is_unit.sum(dim=1).tolist(), unit_shares)

    def vectors(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, *others: object, **named: object
    ) -> Tensor:
        """The standardized vectors of the layers, side by side: (B, T, K x D)."""
        layers = self.standardized(input_ids, attention_mask, *others, only=self.layers, **named)
        return torch.cat(list(layers), dim=-1)

    def loss(self, scores: Tensor, targets: Tensor, lengths: Sequence[int], shares: Tensor | None = None) -> Tensor:
        """The negative log likelihood of the tags, summed over all sequences, in nats.

        scores: (U, C), the scores of all units, one sequence after the other. targets: (U,). lengths: units of each
        sequence. shares: (U, C), the probability that each tag is right. If given, it replaces targets: the loss is
        then its expectation, as if the tags of neighbours were right or wrong independently.
        """
        steps = Steps.of(lengths)
        if not steps.sizes:
            return scores.sum() * 0.0
        order = torch.from_numpy(steps.order).to(scores.device)
        scores, targets = scores.double()[order], targets[order]
        transitions, starts = self._barred_scores()
        first_size, *later_sizes = steps.sizes
        previous = np.concatenate(
            [np.arange(size) + start for start, size in zip(steps.offsets, later_sizes, strict=False)] or [[]]
        )
        predecessors = torch.from_numpy(previous.astype(np.int64)).to(scores.device)
        if shares is None:
            gold = scores.gather(1, targets[:, None]).sum()
            gold = gold + transitions[targets[predecessors], targets[first_size:]].sum()
            gold = gold + starts[targets[:first_size]].sum()
        else:
            shares = shares.double()[order]
            pairs = shares[predecessors].T @ shares[first_size:]
            gold = (scores * shares).sum() + (transitions * pairs).sum() + (starts * shares[:first_size]).sum()
        total: Tensor = _LogPartition.apply(scores, transitions, starts, steps)  # type: ignore[no-untyped-call]
        return total - gold

    @torch.no_grad()
    def decode(self, scores: NDArray[np.floating[Any]], lengths: Sequence[int]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The best legal tags of sequences, (U,) int64 (Viterbi 1967), and their marginal probabilities, (U,).

        scores, lengths: as in `loss`.
        """
        steps = Steps.of(lengths)
        path = np.empty(len(scores), np.int64)
        probabilities = np.empty(len(scores))
        if not steps.sizes:
            return path, probabilities
        ordered = torch.from_numpy(np.asarray(scores, np.float64)[steps.order])
        transitions, starts = (tensor.cpu() for tensor in self._barred_scores())
        marginals, _, _ = _forward_backward(ordered, transitions, starts, steps)
        best_tags = viterbi(
            ordered.numpy(), self._legal(transitions, self.follows), self._legal(starts, self.first), steps
        )
        path[steps.order] = best_tags
        probabilities[steps.order] = marginals.numpy()[np.arange(len(best_tags)), best_tags]
        return path, probabilities

    @torch.no_grad()
    def marginals(self, scores: NDArray[np.floating[Any]], lengths: Sequence[int]) -> NDArray[np.float64]:
        """The probability of each tag of each unit, (U, C). scores, lengths: as in `loss`."""
        steps = Steps.of(lengths)
        shares = np.empty(np.shape(scores))
        if steps.sizes:
            ordered = torch.from_numpy(np.asarray(scores, np.float64)[steps.order])
            transitions, starts = (tensor.cpu() for tensor in self._barred_scores())
            shares[steps.order] = _forward_backward(ordered, transitions, starts, steps)[0].numpy()
        return shares

    def _barred_scores(self) -> tuple[Tensor, Tensor]:
        """Scores of pairs and of first tags, with illegal ones barred."""
        transitions = torch.where(self.follows, self.transitions.double(), _BARRED)
        return transitions, torch.where(self.first, self.starts.double(), _BARRED)

    @staticmethod
    def _legal(scores: Tensor, legal: Tensor) -> NDArray[np.float64]:
        return np.where(legal.cpu().numpy(), scores.numpy(), -np.inf)


class _LogPartition(torch.autograd.Function):
    """The log partition function, summed over all sequences. Arguments as `_forward_backward`."""

    @staticmethod
    def forward(ctx: FunctionCtx, scores: Tensor, transitions: Tensor, starts: Tensor, steps: Steps) -> Tensor:
        marginals, pairs, total = _forward_backward(scores, transitions, starts, steps)
        ctx.save_for_backward(marginals, pairs, marginals[: steps.sizes[0]].sum(dim=0))
        return total

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        marginals, pairs, starts = ctx.saved_tensors
        return grad * marginals, grad * pairs, grad * starts, None


def _forward_backward(
    scores: Tensor, transitions: Tensor, starts: Tensor, steps: Steps
) -> tuple[Tensor, Tensor, Tensor]:
    """Marginals (U, C), expected numbers of pairs (C, C), and the log partition, by forward-backward.

    scores: (U, C), in the order of `steps`. Probabilities are scaled at each unit (Rabiner 1989, V A).
    """
    peaks = scores.max(dim=1, keepdim=True).values
    local = (scores - peaks).exp()
    pair_peak, start_peak = transitions.max(), starts.max()
    pair, start = (transitions - pair_peak).exp(), (starts - start_peak).exp()
    alphas, betas = torch.empty_like(local), torch.ones_like(local)
    scales = scores.new_empty(len(scores))
    offsets = steps.offsets.tolist()
    for step, size in enumerate(steps.sizes):
        units = slice(offsets[step], offsets[step] + size)
        reached = (alphas[offsets[step - 1] : offsets[step - 1] + size] @ pair if step else start) * local[units]
        scales[units] = reached.sum(dim=1)
        alphas[units] = reached / scales[units, None]
    pairs = torch.zeros_like(pair)
    for step in range(len(steps.sizes) - 1, 0, -1):
        units = slice(offsets[step], offsets[step] + steps.sizes[step])
        previous = slice(offsets[step - 1], offsets[step - 1] + steps.sizes[step])
        following = local[units] * betas[units] / scales[units, None]
        betas[previous] = following @ pair.T
        pairs += alphas[previous].T @ following
    num_sequences = steps.sizes[0]
    total = scales.log().sum() + peaks.sum() + start_peak * num_sequences + pair_peak * (len(scores) - num_sequences)
    return alphas * betas, pairs * pair, total


def viterbi(
    scores: NDArray[np.float64], transitions: NDArray[np.float64], starts: NDArray[np.float64], steps: Steps
) -> NDArray[np.int64]:
    """The tags with the highest sum of each sequence, (U,) (Viterbi 1967). Ties are broken arbitrarily.

    scores: (U, C), in the order of `steps`, as the result. transitions: (C, C); starts: (C,); -inf bars.
    """
    offsets = steps.offsets.tolist()
    sums = starts + scores[: steps.sizes[0]]
    backpointers = [np.empty((0, 0), np.int64)]
    finished = [sums]
    for step, size in enumerate(steps.sizes[1:], 1):
        through = sums[:size, :, None] + transitions  # (sequences, from, to)
        backpointers.append(through.argmax(axis=1))
        sums = through.max(axis=1) + scores[offsets[step] : offsets[step] + size]
        finished.append(sums)
    path = np.empty(len(scores), np.int64)
    tags = np.empty(0, np.int64)
    for step in range(len(steps.sizes) - 1, -1, -1):
        size = steps.sizes[step]
        ending = finished[step][len(tags) : size].argmax(axis=1)  # sequences whose last unit this is
        if len(tags):
            following = backpointers[step + 1][np.arange(len(tags)), tags]
            ending = np.concatenate([following, ending])
        tags = ending
        path[offsets[step] : offsets[step] + size] = tags
    return path
