"""Filling gaps: the pieces that a pretrained model expects at each [MASK]."""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from typing import Self, overload

import torch

from korbert.errors import ModelError
from korbert.modeling.config import EncoderConfig
from korbert.modeling.models import PretrainingModel
from korbert.modeling.storage import load_model
from korbert.tasks.texts import as_texts
from korbert.tokenization.encoding import Span
from korbert.tokenization.vocabulary import FIRST_PIECE, MARK
from korbert.training.devices import choose_device
from korbert.vectors.encoder import TextEncoder

__all__ = ["Candidate", "Filler"]


@dataclass(frozen=True)
class Candidate:
    """A piece for a gap, with its probability among all pieces of the vocabulary.

    text: the whole text with the piece in its gap, and the most probable piece in every other gap.
    """

    piece: str
    id: int
    probability: float
    text: str


class Filler(TextEncoder[PretrainingModel]):
    """A pretrained model that fills gaps."""

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto") -> Self:
        """From a folder written by korbert. Raises ModelError where it is not one, or of another kind."""
        model, tokenizer = load_model(folder, "pretraining", choose_device(device))
        if isinstance(model.config, EncoderConfig) and model.config.causal:
            raise ModelError(f"{folder}: reads from left to right (clm) and fills no gaps: name a model of mlm")
        filler = cls(model, tokenizer)
        filler.name = str(folder)
        return filler

    @overload
    def fill(self, texts: str, top: int = 5) -> list[list[Candidate]]: ...  # type: ignore[overload-overlap]
    @overload
    def fill(self, texts: Iterable[str], top: int = 5) -> list[list[list[Candidate]]]: ...
    def fill(self, texts: str | Iterable[str], top: int = 5) -> list[list[Candidate]] | list[list[list[Candidate]]]:
        """For each [MASK] in a text, in order, its `top` pieces, the most probable first; for many texts, a list.

        '오늘 [MASK] 정말 좋다' -> [[Candidate('날씨', ...), ...]]. Raises SettingsError for what is not a string,
        ModelError where a text has no [MASK] or more pieces than the model has positions, or where scores are NaN.
        """
        given, single = as_texts(texts, "texts")
        filled = [self._fill(text, top) for text in given]
        return filled[0] if single else filled

    def _fill(self, text: str, top: int) -> list[list[Candidate]]:
        encoding = self.tokenizer.encode(text, special_tokens=True)
        longest = self.model.config.max_position_embeddings
        if len(encoding.input_ids) > longest:
            raise ModelError(f"the text has {len(encoding.input_ids)} pieces, the model reads {longest}: shorten it")
        gaps = [place for place, id in enumerate(encoding.input_ids) if id == self.tokenizer.mask_id]
        if not gaps:
            raise ModelError(f"{text[:60]!r}: has no [MASK]: write [MASK] where a word is to be filled in")
        device = next(self.model.parameters()).device
        with torch.inference_mode():
            hidden = self.model.encoder(
                torch.tensor([encoding.input_ids], device=device),
                boundaries=torch.tensor([encoding.boundaries], device=device),
            )  # (1, T, D)
            probabilities = self.model.mlm_head(hidden[0, gaps]).float().softmax(-1).cpu()  # (gaps, V)
        if not probabilities.isfinite().all():
            raise ModelError(f"{self.name}: gives scores that are no numbers: train it anew, at a lower rate")
        best = [self._best(row, top) for row in probabilities]
        spans = [encoding.spans[gap] for gap in gaps]
        first = [candidates[0][0] for candidates in best]
        return [
            [
                Candidate(piece, id, share, _filled(text, spans, [*first[:gap], piece, *first[gap + 1 :]]))
                for piece, id, share in candidates
            ]
            for gap, candidates in enumerate(best)
        ]

    def _best(self, probabilities: torch.Tensor, top: int) -> list[tuple[str, int, float]]:
        best = probabilities[FIRST_PIECE:].topk(min(top, len(probabilities) - FIRST_PIECE))
        ids = (best.indices + FIRST_PIECE).tolist()
        return list(zip(self.tokenizer.tokens(ids), ids, best.values.tolist(), strict=True))


def _filled(text: str, spans: Sequence[Span], pieces: Sequence[str]) -> str:
    """The text with a piece in place of each span; jamo join the syllable before (가 + ᆫ다 is 간다)."""
    ends = [0, *(end for _, end in spans)]
    starts = [*(start for start, _ in spans), len(text)]
    between = [text[end:start] for end, start in zip(ends, starts, strict=True)]
    shown = [piece.removeprefix(MARK) for piece in pieces]
    return unicodedata.normalize("NFC", "".join(chain.from_iterable(zip_longest(between, shown, fillvalue=""))))
