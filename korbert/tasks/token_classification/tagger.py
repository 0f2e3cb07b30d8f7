"""Tagging: the loss, scores of many rows, and a Tagger for new texts.

1. Texts become pieces with spans (../passages.py) and windows (examples.py); labels become targets (labels.py).
2. The model scores each piece; `log_probabilities` does so for many rows, shortest first.
3. viterbi.py chooses the tags, labels.py maps them back to characters of the text.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self, TypedDict, Unpack, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from korbert.errors import ModelError, SettingsError
from korbert.modeling import TaggingModel, load_model, read_config
from korbert.processor import cores
from korbert.tasks.passages import Passage, encode_passages
from korbert.tasks.saved import Lengths, of_config
from korbert.tasks.token_classification.bio import is_bio, read_bio
from korbert.tasks.token_classification.examples import IGNORED, TaggedExamples, by_text, make_examples
from korbert.tasks.token_classification.labels import eojeols, first_pieces, join_words, owners
from korbert.tasks.token_classification.viterbi import Transitions, best_path
from korbert.texts import as_texts
from korbert.tokenization import AnyTokenizer
from korbert.tokenization.pieces import Span
from korbert.training.devices import Batch, choose_device
from korbert.training.distributed import add_over_world
from korbert.training.scoring import Scoring, model_inputs, scored
from korbert.vectors.encoder import TextEncoder
from korbert.world import connected, greatest

__all__ = ["TaggedSpan", "Tagger", "best_labels", "best_spans", "log_probabilities", "tagging_loss"]

_SCORING_BATCH_SIZE = 64
_TEXTS_AT_ONCE = 1_024  # texts whose pieces and scores are in memory at a time


class TaggedSpan(TypedDict):
    """A labelled span: `text` is [start, end) of the given text; score, 0 to 1: see Tagger.tag."""

    start: int
    end: int
    label: str
    text: str
    score: float


def tagging_loss(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """{"loss": cross-entropy in nats per target piece}. batch: from TaggedExamples.batch.

    It is the sum over the batch, divided by its number of rows times the mean number of targets per row over all
    examples: every piece has the same weight in any batch, and processes that share a batch get the same update.
    """
    sums = F.cross_entropy(
        model(**model_inputs(batch)).float().flatten(0, 1),
        batch["labels"].flatten(),
        ignore_index=IGNORED,
        reduction="sum",
    )
    return {"loss": sums / (len(batch["labels"]) * batch["targets_per_row"]).clamp(min=1e-9)}


def log_probabilities(model: nn.Module, examples: TaggedExamples, **how: Unpack[Scoring]) -> NDArray[np.float32]:
    """Log probabilities of the labels for each piece of all rows: (offsets[-1], C).

    With several connected processes, all get all.
    """

    def of_pieces(model: nn.Module, batch: Batch) -> Tensor:
        """Those of a batch, row after row."""
        scores: Tensor = model(**model_inputs(batch)).float().log_softmax(dim=-1)  # (B, T, C)
        return scores[batch["attention_mask"].bool()]

    batches = scored(model, examples, of_pieces, _SCORING_BATCH_SIZE, **how)
    labels = greatest(batches[0][1].shape[1] if batches else 0)
    result = np.zeros((int(examples.offsets[-1]), labels), dtype=np.float32)
    for numbers, found in batches:
        ends = np.cumsum(examples.lengths[numbers])
        for number, part in zip(numbers, np.split(found, ends[:-1]), strict=True):
            result[examples.offsets[number] : examples.offsets[number + 1]] = part
    add_over_world(torch.from_numpy(result), connected())  # one number plus zeros: bit-exact
    return result


def best_spans(
    passage: Passage, scores: NDArray[np.float32], labels: Sequence[str], transitions: Transitions
) -> list[tuple[int, int, str, float]]:
    """Start, end, label and mean probability of the spans on the best legal path of BIO tags, in characters.

    scores: (P, C), log probabilities of the pieces; pieces that own no character are ignored.
    """
    own = owners(passage.spans)
    path = best_path(scores[own.places], transitions)
    shares = np.exp(scores[own.places, path].astype(np.float64))
    return [
        (int(own.runs[first, 0]), int(own.runs[last - 1, 1]), label, float(shares[first:last].mean()))
        for first, last, label in read_bio([labels[label] for label in path])
    ]


def best_labels(
    words: Sequence[Span], passage: Passage, scores: NDArray[np.float32], transitions: Transitions
) -> list[tuple[int, float]]:
    """The label of each word by its first piece, -1 for a word without pieces, and its probability.

    scores: (P, C), log probabilities of the pieces.
    """
    pieces = np.array(first_pieces(words, passage), dtype=np.int64)
    found: list[tuple[int, float]] = [(-1, 0.0)] * len(words)
    places = np.flatnonzero(pieces >= 0)
    own = scores[pieces[places]]
    for place, label, row in zip(places.tolist(), best_path(own, transitions).tolist(), own, strict=True):
        found[place] = (label, float(np.exp(row[label])))
    return found


class Tagger(TextEncoder[TaggingModel]):
    """Labels spans in texts of any length with a model folder of kind "tagging".

        >>> tagger = Tagger.load("artifacts/demo/ner")
        >>> tagger.tag("세종은 한글을 만들었다.")
        [{"start": 0, "end": 2, "label": "PS", "text": "세종", "score": 0.97}]

    A model whose labels are BIO tags gives spans. One with other labels, such as parts of speech, gives each eojeol
    its label; `tag_words` labels words split by the caller.

    max_length: pieces of a window, special tokens included; None: the model's positions. stride: pieces that
    neighbouring windows share; None: a quarter.
    """

    def __init__(
        self, model: TaggingModel, tokenizer: AnyTokenizer, max_length: int | None = None, stride: int | None = None
    ) -> None:
        super().__init__(model, tokenizer, max_length)
        self.stride = self.max_length // 4 if stride is None else stride
        self._transitions = Transitions(model.labels)

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto") -> Self:
        """Loads a folder written by korbert. Raises ModelError if it is not one, or of another kind."""
        model, tokenizer = load_model(folder, "tagging", choose_device(device))
        task = of_config(Lengths, read_config(folder)["task"], folder)
        tagger = cls(model, tokenizer, task.max_length, task.stride)
        tagger.name = str(folder)
        return tagger

    @property
    def labels(self) -> tuple[str, ...]:
        return self.model.labels

    @overload
    def tag(self, texts: str) -> list[TaggedSpan]: ...  # type: ignore[overload-overlap]
    @overload
    def tag(self, texts: Iterable[str]) -> list[list[TaggedSpan]]: ...
    def tag(self, texts: str | Iterable[str]) -> list[TaggedSpan] | list[list[TaggedSpan]]:
        """The labelled spans of a text, in order, or a list of such lists for many texts. Any text is valid.

        score: the mean tag probability over the span's pieces; for a word, that of its first piece. Raises
        SettingsError for anything but strings, ModelError if the model's scores are NaN.
        """
        given, single = as_texts(texts, "texts")
        found: list[list[TaggedSpan]] = []
        for start in range(0, len(given), _TEXTS_AT_ONCE):
            passages = encode_passages(self.tokenizer, given[start : start + _TEXTS_AT_ONCE], workers=cores())
            scores = self.log_probabilities(passages)
            found += [self.decode(passage, own) for passage, own in zip(passages, scores, strict=True)]
        return found[0] if single else found

    def tag_words(self, words: Sequence[str], spaces: bool | Sequence[bool] = True) -> list[str]:
        """The label of each word, by its first piece; "" for one without pieces, such as white space.

        spaces: whether a space follows each word. Raises SettingsError if their numbers differ.
        """
        try:
            text, spans = join_words(words, spaces)
        except ValueError:
            raise SettingsError(f"{len(words)} words, but another number of spaces: give one per word") from None
        (passage,) = encode_passages(self.tokenizer, [text])
        (scores,) = self.log_probabilities([passage])
        found = best_labels(spans, passage, scores, self._transitions)
        return [self.labels[label] if label >= 0 else "" for label, _ in found]

    def log_probabilities(self, passages: Sequence[Passage]) -> list[NDArray[np.float32]]:
        """Log probabilities of the labels for each piece, (P, C) per text. ModelError if one is NaN."""
        examples, windows = make_examples(
            passages, None, self.tokenizer, max_length=self.max_length, stride=self.stride
        )
        scores = log_probabilities(self.model, examples, **self.scoring)
        if np.isnan(scores).any():
            raise ModelError(f"{self.name}: its scores are not finite: train it again with a lower learning_rate")
        return list(by_text(scores, examples, windows))

    def decode(self, passage: Passage, scores: NDArray[np.float32]) -> list[TaggedSpan]:
        """The result of `tag` for a text, from the log probabilities of its pieces (P, C)."""
        if not is_bio(self.labels):
            words = eojeols(passage.text)
            labelled = zip(words, best_labels(words, passage, scores, self._transitions), strict=True)
            return [
                _span(passage.text, *word, self.labels[label], score) for word, (label, score) in labelled if label >= 0
            ]
        return [_span(passage.text, *span) for span in best_spans(passage, scores, self.labels, self._transitions)]


def _span(text: str, start: int, end: int, label: str, score: float) -> TaggedSpan:
    return {"start": start, "end": end, "label": label, "text": text[start:end], "score": score}
