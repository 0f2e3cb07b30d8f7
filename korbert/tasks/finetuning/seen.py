"""Fine-tuning only the embeddings of pieces that occur in the training examples.

20,000 reviews contain a fifth of 102,400 pieces. The other embeddings get no gradient, but the optimizer would still
visit them in every step, which takes longer than the layers of a small encoder. So they are frozen: they keep their
vectors, without weight decay.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from korbert.modeling import Encoder
from korbert.training import Examples


class SeenEmbedding(nn.Module):
    """An embedding of V pieces, of which U are trained (`weight`) and the rest is frozen. Maps ids to (..., E).

    In training, the ids have to be among the U: another one is an IndexError, on a GPU a failed assertion.
    """

    initial: Tensor
    row_of_id: Tensor
    seen: Tensor

    def __init__(self, whole: nn.Embedding, seen: Tensor) -> None:
        super().__init__()
        vectors = whole.weight.detach()
        seen = seen.to(vectors.device)
        row_of_id = torch.full((len(vectors),), -1, device=vectors.device)
        row_of_id[seen] = torch.arange(len(seen), device=vectors.device)
        self.weight = nn.Parameter(vectors[seen])
        self.register_buffer("initial", vectors.clone(), persistent=False)  # (V, E), read for frozen pieces
        self.register_buffer("row_of_id", row_of_id, persistent=False)  # (V,), rows of `weight`; -1 for frozen pieces
        self.register_buffer("seen", seen, persistent=False)  # (U,)
        # State dicts hold the full embedding, so that a model has one format inside and outside only_seen_embeddings.
        self.register_state_dict_post_hook(_save_whole)  # type: ignore[no-untyped-call]
        self.register_load_state_dict_pre_hook(_load_whole)  # type: ignore[no-untyped-call]

    def forward(self, ids: Tensor) -> Tensor:
        rows = self.row_of_id[ids]
        if self.training:
            return F.embedding(rows, self.weight)
        trained_vectors = F.embedding(rows.clamp(min=0), self.weight)
        return torch.where((rows < 0)[..., None], F.embedding(ids, self.initial), trained_vectors)

    @torch.no_grad()
    def full_weight(self) -> Tensor:
        """All vectors, (V, E)."""
        return self.initial.index_copy(0, self.seen, self.weight)


def _save_whole(module: SeenEmbedding, state_dict: dict[str, Tensor], prefix: str, metadata: object) -> None:
    state_dict[f"{prefix}weight"] = module.full_weight()


def _load_whole(module: SeenEmbedding, state_dict: dict[str, Tensor], prefix: str, *rest: object) -> None:
    module.initial.copy_(state_dict[f"{prefix}weight"])
    state_dict[f"{prefix}weight"] = module.initial[module.seen]


@contextmanager
def only_seen_embeddings(model: Any, examples: Examples) -> Iterator[None]:
    """Restricts training to the embeddings of the pieces in these examples; restores the full matrix afterwards.

    An encoder of `transformers`, or one whose embedding does not learn, stays as it is.
    """
    encoder = model.encoder
    if not isinstance(encoder, Encoder) or not encoder.token_weight.requires_grad:
        yield
        return
    embeddings = encoder.embeddings
    seen = torch.from_numpy(np.unique(np.append(examples.input_ids, examples.pad_id)).astype(np.int64))
    embeddings.token = SeenEmbedding(embeddings.token, seen)  # type: ignore[assignment]
    try:
        yield
    finally:
        weight: Tensor = embeddings.token.full_weight()  # type: ignore[operator]
        embeddings.token = nn.Embedding.from_pretrained(weight, freeze=False)  # type: ignore[no-untyped-call]
