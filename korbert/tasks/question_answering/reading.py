"""Extractive reading comprehension on texts of any length.

1. Question and context are encoded with spans (passages.py) and cut into windows (windows.py).
2. The model scores each piece of a window as start and end of the answer.
3. The best spans of each window are merged into the n_best answers of the question.
4. If questions may have no answer, the best span is compared with [CLS], which means none.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple, NotRequired, Self, TypedDict, overload

import numpy as np
import torch

from korbert.errors import ModelError, SettingsError
from korbert.modeling import ReadingModel, load_model, read_config
from korbert.processor import cores
from korbert.progress import track
from korbert.tasks.passages import Passage, encode_passages, span_of_pieces
from korbert.tasks.question_answering.settings import ReadingSettings
from korbert.tasks.question_answering.windows import Scored, Window, choice_logits, collate, context_slice, cut_windows
from korbert.texts import as_texts
from korbert.tokenization import AnyTokenizer
from korbert.training.devices import autocast, choose_device, moved
from korbert.vectors.encoder import TextEncoder

__all__ = ["Candidate", "Found", "Reader", "Reading", "found_in"]

_Span = tuple[float, int, int, str]  # log probability, start, end, text

_SPANS_PER_ENTRY = 4  # candidate spans per window and n-best entry: several spans may have the same text
_NO_SPAN = -1e9  # score of the best span if there is none; JSON has no infinity


class Candidate(TypedDict):
    """One answer: `text == context[start:end]`, and the probability of its two ends in its window."""

    text: str
    score: float
    start: int
    end: int


class Found(NamedTuple):
    """Search result for one question, before the threshold is applied.

    candidates: its n_best answers, best first; empty if the context is white space.
    none: the empty answer; its score is the probability of [CLS] as both ends, the minimum over windows.
    no_answer: score of no answer minus score of the best candidate, where the score of a span is the sum of the log
    probabilities of its ends in its window. With one window this is the difference of logit sums in Devlin et al.
    2018, 4.3, whose tau is minus the threshold. Logits of different windows are not comparable: the loss does not
    change if a constant is added to all logits of a window.
    """

    candidates: list[Candidate]
    none: Candidate
    no_answer: float


class Reading(TypedDict):
    """Result of `Reader.answer`: the answer, its half-open span in the context, and its score, 0 to 1.

    With `unanswerable` there is also `no_answer_score`, which is `Found.no_answer`. No answer is the empty string, with
    span (0, 0).
    """

    answer: str
    span: tuple[int, int]
    score: float
    no_answer_score: NotRequired[float]


class Reader(TextEncoder[ReadingModel]):
    """A reading model that answers questions on texts of any length.

    reader = Reader.load("artifacts/demo/korquad")
    reader.answer("세종은 1443년에 한글을 만들었다.", "한글은 언제 만들어졌나?")
      ->  {"answer": "1443년", "span": (4, 9), "score": 0.93}
    """

    def __init__(
        self,
        model: ReadingModel,
        tokenizer: AnyTokenizer,
        settings: ReadingSettings | None = None,
        *,
        batch_size: int = 32,
    ) -> None:
        """batch_size: windows per forward pass, on the model's device."""
        super().__init__(model, tokenizer)
        self.settings = settings or ReadingSettings()
        self.batch_size = batch_size

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto", *, batch_size: int = 32) -> Self:
        """Loads a folder written by korbert. Raises ModelError if it is not one, or of another kind."""
        model, tokenizer = load_model(folder, "reading", choose_device(device))
        settings = ReadingSettings.of_task(read_config(folder)["task"], folder)
        reader = cls(model, tokenizer, settings, batch_size=batch_size)
        reader.name = str(folder)
        return reader

    @overload
    def answer(self, context: str, question: str) -> Reading: ...  # type: ignore[overload-overlap]
    @overload
    def answer(self, context: Iterable[str], question: Iterable[str]) -> list[Reading]: ...
    def answer(self, context: str | Iterable[str], question: str | Iterable[str]) -> Reading | list[Reading]:
        """The best answer to a question on a context, or a list for equally many questions and contexts, in order.

        If the context is white space, the answer is empty, with score 0. With `unanswerable` in the settings it is also
        empty, with the score of none, if that exceeds the best answer's by more than `threshold` (Found). Raises
        SettingsError for anything but strings, and if contexts and questions differ in number.
        """
        (contexts, one_context), (questions, one_question) = (
            as_texts(context, "context"),
            as_texts(question, "question"),
        )
        if one_context != one_question or len(contexts) != len(questions):
            given = "one string" if one_context else len(contexts)
            asked = "one string" if one_question else len(questions)
            raise SettingsError(f"context is {given} and question {asked}: give two strings, or lists of one length")
        texts = list(dict.fromkeys([*questions, *contexts]))  # shared contexts are analysed once
        passages = dict(zip(texts, encode_passages(self.tokenizer, texts, workers=cores()), strict=True))
        pairs = zip(questions, contexts, strict=True)
        found = self.search([(passages[question], passages[context]) for question, context in pairs])
        readings = [self.reading(one) for one in found]
        return readings[0] if one_context else readings

    def reading(self, found: Found) -> Reading:
        """Converts a result of `search` to the result of `answer`."""
        best = next(iter(self.decided(found)), None)
        if best is None:
            return {"answer": "", "span": (0, 0), "score": 0.0}
        reading: Reading = {"answer": best["text"], "span": (best["start"], best["end"]), "score": best["score"]}
        if self.settings.unanswerable:
            reading["no_answer_score"] = found.no_answer
        return reading

    def decided(self, found: Found) -> list[Candidate]:
        """The n_best answers of a question; the empty one comes first if its score is above the threshold."""
        if self.settings.unanswerable and found.no_answer > self.settings.threshold:
            return [found.none, *found.candidates][: self.settings.n_best]
        return found.candidates

    def search(self, pairs: Sequence[tuple[Passage, Passage]]) -> list[Found]:
        """Search results of each (question, context), from which a threshold can be chosen."""
        special = self.tokenizer.frame.special
        windows = [
            window
            for index, pair in enumerate(pairs)
            for window in cut_windows(*pair, self.settings, index=index, special=special)
        ]
        return found_in(self._scored(windows), len(pairs), self.settings)

    @torch.inference_mode()
    def _scored(self, windows: Sequence[Window]) -> Iterator[Scored]:
        """The scores of each window, longest window first."""
        self.model.eval()
        by_length = sorted(windows, key=lambda window: window.first - window.last)  # little padding
        long = len(windows) > self.batch_size
        with track("answer", len(windows), "windows") if long else nullcontext(lambda count: None) as advance:
            for i in range(0, len(by_length), self.batch_size):
                chosen = by_length[i : i + self.batch_size]
                batch = collate(chosen, self.tokenizer, self.settings)
                with autocast(self.device, self.precision):
                    logits = choice_logits(self.model, moved(batch, self.device))
                start, end = (torch.log_softmax(part.double(), dim=-1).cpu().numpy() for part in logits)
                if np.isnan(start).any() or np.isnan(end).any():
                    raise ModelError(
                        f"{self.name}: its scores are not finite: train it again with a lower learning_rate"
                    )
                for row, window in enumerate(chosen):
                    inside = context_slice(window, self.tokenizer, self.settings)
                    yield window, start[row, inside], end[row, inside], float(start[row, 0] + end[row, 0])
                advance(len(chosen))


def found_in(scored: Iterable[Scored], questions: int, settings: ReadingSettings) -> list[Found]:
    """Merges window scores into a Found per question. scored: all windows, in any order, whose `index` is the question.

    The probability of no answer is that of [CLS] as both ends.
    """
    spans: list[list[_Span]] = [[] for _ in range(questions)]
    none = [0.0] * questions  # the highest log probability
    for window, start, end, score in scored:
        spans[window.index] += _window_answers(window, start, end, settings)
        none[window.index] = min(none[window.index], score)
    found = []
    for own, score in zip(spans, none, strict=True):
        best = max((span_score for span_score, _, _, text in own if text.strip()), default=_NO_SPAN)
        empty: Candidate = {"text": "", "score": math.exp(score), "start": 0, "end": 0}
        found.append(Found(_merged(own, settings.n_best), empty, score - best))
    return found


def _window_answers(window: Window, start: np.ndarray, end: np.ndarray, settings: ReadingSettings) -> list[_Span]:
    """The best spans of one window. start, end: (P,), log probabilities of its P context pieces."""
    spans = window.context.spans[window.first : window.last]
    widths = spans[None, :, 1] - spans[:, None, 0]  # (P, P) characters, from first piece to last
    allowed = np.triu(widths > 0)
    if (allowed & (widths <= settings.max_answer_chars)).any():  # otherwise allow long answers
        allowed &= widths <= settings.max_answer_chars
    scores = np.where(allowed, start[:, None] + end[None, :], -np.inf).ravel()
    count = min(settings.n_best * _SPANS_PER_ENTRY, int(allowed.sum()))
    if count == 0:
        return []
    threshold = np.partition(scores, -count)[-count]
    best = np.flatnonzero(scores >= threshold)  # with all ties, by first piece, then by last
    scored = []
    for place in best[np.argsort(-scores[best], kind="stable")][:count]:
        a, b = span_of_pieces(spans, *divmod(int(place), len(spans)))
        scored.append((float(scores[place]), a, b, window.context.text[a:b]))
    return scored


def _merged(spans: Sequence[_Span], n_best: int) -> list[Candidate]:
    """The n_best answers with distinct texts."""
    by_text: dict[str, Candidate] = {}
    for score, start, end, text in sorted(spans, key=lambda scored: (-scored[0], scored[1], scored[2])):
        if len(by_text) < n_best and text not in by_text and text.strip():
            by_text[text] = {"text": text, "score": math.exp(score), "start": start, "end": end}
    return list(by_text.values())
