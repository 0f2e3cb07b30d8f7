"""Filling gaps: what a pretrained model expects at each [MASK]."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import torch

from korbert.errors import ModelError
from korbert.modeling.models import PretrainingModel
from korbert.modeling.storage import load_model
from korbert.tokenization import Tokenizer
from korbert.tokenization.vocabulary import FIRST_PIECE
from korbert.training.devices import choose_device

__all__ = ["Candidate", "Filler"]


@dataclass(frozen=True)
class Candidate:
    """A piece for a gap. The probability is that among all pieces of the vocabulary."""

    piece: str
    id: int
    probability: float


class Filler:
    """A pretrained model that fills gaps."""

    def __init__(self, model: PretrainingModel, tokenizer: Tokenizer) -> None:
        self.model = model.eval()
        self.tokenizer = tokenizer

    @classmethod
    def load(cls, folder: Path, device: str = "auto") -> Self:
        """From a folder that korbert has written. ModelError where it is none, or of another kind."""
        return cls(*load_model(folder, "pretraining", choose_device(device)))

    def fill(self, text: str, top: int = 5) -> list[list[Candidate]]:
        """For each [MASK] in the text, in order, the `top` likeliest pieces, the likeliest first.

        '오늘 [MASK] 정말 좋다' -> [[Candidate('날씨', ...), ...]]. Raises ModelError where the text has no [MASK] or is
        longer than the model's rows.
        """
        encoding = self.tokenizer.encode(text, special_tokens=True)
        longest = self.model.config.max_position_embeddings
        if len(encoding.input_ids) > longest:
            raise ModelError(f"the text has {len(encoding.input_ids)} pieces, the model reads {longest}: shorten it")
        gaps = [place for place, id in enumerate(encoding.input_ids) if id == self.tokenizer.mask_id]
        if not gaps:
            raise ModelError(f"{text!r}: has no [MASK]: write [MASK] where a word is to be filled in")
        return [
            self._candidates(row, top) for row in self._probabilities(encoding.input_ids, encoding.boundaries, gaps)
        ]

    def _probabilities(self, ids: list[int], boundaries: list[int], gaps: list[int]) -> torch.Tensor:
        device = next(self.model.parameters()).device
        with torch.inference_mode():
            hidden = self.model.encoder(
                torch.tensor([ids], device=device), boundaries=torch.tensor([boundaries], device=device)
            )  # (1, T, D)
            return self.model.mlm_head(hidden[0, gaps]).float().softmax(-1).cpu()  # (gaps, V)

    def _candidates(self, probabilities: torch.Tensor, top: int) -> list[Candidate]:
        best = probabilities[FIRST_PIECE:].topk(min(top, len(probabilities) - FIRST_PIECE))
        ids = (best.indices + FIRST_PIECE).tolist()
        pieces = self.tokenizer.tokens(ids)
        return [Candidate(*found) for found in zip(pieces, ids, best.values.tolist(), strict=True)]
