"""Fill-mask: the pieces that a pretrained model predicts at each [MASK], or at every position of a text."""

import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from typing import Self, overload

import numpy as np
import torch

from korbert.errors import ModelError, SettingsError
from korbert.modeling.models import PretrainingModel
from korbert.modeling.storage import load_model
from korbert.progress import track
from korbert.texts import as_texts
from korbert.tokenization.encoding import Encoding, Span, pad_batch
from korbert.tokenization.vocabulary import FIRST_PIECE, MARK
from korbert.training.devices import choose_device
from korbert.vectors.encoder import TextEncoder

__all__ = ["Candidate", "Expected", "Filler"]

_ROWS_AT_ONCE = 32  # rows whose vocabulary scores are in memory at a time


@dataclass(frozen=True)
class Expected:
    """Predictions for a masked piece: the most likely pieces with their probabilities, best first.

    own: the probability of the original piece; None if it is a [MASK].
    """

    own: float | None
    guesses: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Candidate:
    """A candidate piece for a gap, with its probability over the vocabulary.

    text: the whole text with the piece in its gap, and the most probable piece in every other gap.
    """

    piece: str
    id: int
    probability: float
    text: str


class Filler(TextEncoder[PretrainingModel]):
    """Fills [MASK] gaps with a pretrained model."""

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto") -> Self:
        """Loads a folder written by korbert. Raises ModelError if it is not one, or of another kind."""
        model, tokenizer = load_model(folder, "pretraining", choose_device(device))
        filler = cls(model, tokenizer)
        filler.name = str(folder)
        return filler

    @overload
    def fill(self, texts: str, top: int = 5) -> list[list[Candidate]]: ...  # type: ignore[overload-overlap]
    @overload
    def fill(self, texts: Iterable[str], top: int = 5) -> list[list[list[Candidate]]]: ...
    def fill(self, texts: str | Iterable[str], top: int = 5) -> list[list[Candidate]] | list[list[list[Candidate]]]:
        """The `top` pieces for each [MASK] of a text, most probable first; a list for many texts.

        '오늘 [MASK] 정말 좋다' -> [[Candidate('날씨', ...), ...]]. Raises SettingsError for anything but strings,
        ModelError if a text has no [MASK] or more pieces than the model has positions, or if scores are NaN.
        """
        given, single = as_texts(texts, "texts")
        if top < 1:
            raise SettingsError(f"top {top}: take at least 1")
        longest = self.model.config.max_position_embeddings
        filled = []
        for text in given:
            encoding = self.tokenizer.encode(text, special_tokens=True)
            if len(encoding) > longest:
                raise ModelError(f"the text has {len(encoding)} pieces, the model reads {longest}: shorten it")
            if self.tokenizer.mask_id not in encoding.input_ids:
                raise ModelError(f"{text[:60]!r}: has no [MASK]: write [MASK] where a word is to be filled in")
            filled += self.fill_encoded([text], [encoding], top)
        return filled[0] if single else filled

    def fill_encoded(
        self, texts: Sequence[str], encodings: Sequence[Encoding], top: int
    ) -> list[list[list[Candidate]]]:
        """As `fill`, for texts already encoded, each with a [MASK], in one forward pass."""
        batch = pad_batch(encodings, self.tokenizer.pad_id)
        rows, places = np.nonzero(batch["input_ids"] == self.tokenizer.mask_id)
        inputs = ("input_ids", "attention_mask", "boundaries")
        device = self.device
        with torch.inference_mode():
            hidden = self.model.encoder(**{name: torch.from_numpy(batch[name]).to(device) for name in inputs})
            probabilities = self.model.mlm_head(hidden[rows, places]).float().softmax(-1).cpu()  # (gaps of all, V)
        if not probabilities.isfinite().all():
            raise ModelError(f"{self.name}: its scores are not finite: train it again with a lower learning_rate")
        best = [self._best(row, top) for row in probabilities]
        found = []
        for number, (text, encoding) in enumerate(zip(texts, encodings, strict=True)):
            own = np.flatnonzero(rows == number)
            spans = [encoding.spans[places[gap]] for gap in own]
            first = [best[gap][0][0] for gap in own]
            found.append(
                [
                    [
                        Candidate(piece, id, share, _filled(text, spans, [*first[:place], piece, *first[place + 1 :]]))
                        for piece, id, share in best[gap]
                    ]
                    for place, gap in enumerate(own)
                ]
            )
        return found

    @torch.inference_mode()
    def expect(self, text: str, pair: str | None = None, top: int = 5) -> list[Expected | None]:
        """Predictions at each position of a text or pair, masked one piece at a time; None for special tokens.

        Other pieces stay visible, even those of the same word. Raises ModelError as `fill`.
        """
        encoding = self.tokenizer.encode(text, pair, special_tokens=True)
        longest = self.model.config.max_position_embeddings
        if len(encoding) > longest:
            raise ModelError(f"the text has {len(encoding):,} pieces, the model reads {longest:,}: shorten it")
        device = self.device
        columns = [encoding.input_ids, encoding.token_type_ids, encoding.boundaries]
        ids, segments, boundaries = (torch.tensor([column], device=device) for column in columns)
        places = [place for place, special in enumerate(encoding.special_tokens_mask) if not special]
        expected: list[Expected | None] = [None] * len(encoding)
        long = len(places) > 2 * _ROWS_AT_ONCE
        with track("guess", len(places), "places") if long else nullcontext(lambda count: None) as advance:
            for first in range(0, len(places), _ROWS_AT_ONCE):
                rows = torch.tensor(places[first : first + _ROWS_AT_ONCE], device=device)
                number = torch.arange(len(rows), device=device)
                masked = ids.repeat(len(rows), 1)
                masked[number, rows] = self.tokenizer.mask_id
                hidden = self.model.encoder(
                    masked, token_type_ids=segments.expand_as(masked), boundaries=boundaries.expand_as(masked)
                )
                probabilities = self.model.mlm_head(hidden[number, rows]).float().softmax(-1).cpu()  # (rows, V)
                if not probabilities.isfinite().all():
                    raise ModelError(
                        f"{self.name}: its scores are not finite: train it again with a lower learning_rate"
                    )
                for place, row in zip(rows.tolist(), probabilities, strict=True):
                    id = encoding.input_ids[place]
                    best = tuple((piece, share) for piece, _, share in self._best(row, top))
                    expected[place] = Expected(None if id == self.tokenizer.mask_id else float(row[id]), best)
                advance(len(rows))
        return expected

    def _best(self, probabilities: torch.Tensor, top: int) -> list[tuple[str, int, float]]:
        best = probabilities[FIRST_PIECE:].topk(min(top, len(probabilities) - FIRST_PIECE))
        ids = (best.indices + FIRST_PIECE).tolist()
        return list(zip(self.tokenizer.tokens(ids), ids, best.values.tolist(), strict=True))


def _filled(text: str, spans: Sequence[Span], pieces: Sequence[str]) -> str:
    """Replaces each span of a text with a piece; jamo join the preceding syllable (가 + ᆫ다 -> 간다)."""
    ends = [0, *(end for _, end in spans)]
    starts = [*(start for start, _ in spans), len(text)]
    between = [text[end:start] for end, start in zip(ends, starts, strict=True)]
    shown = [piece.removeprefix(MARK) for piece in pieces]
    return unicodedata.normalize("NFC", "".join(chain.from_iterable(zip_longest(between, shown, fillvalue=""))))
