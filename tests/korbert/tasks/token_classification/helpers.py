"""What the tests here share."""

import re
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from korbert.tasks.passages import Passage
from korbert.tasks.token_classification.bio import LabelledSpan, bio_labels
from korbert.tasks.token_classification.tagger import best_spans
from korbert.tasks.token_classification.viterbi import Transitions


def _passage(text: str, spans: list[tuple[int, int]]) -> Passage:
    """A text with pieces that stand for those spans; ids count up from 100."""
    count = len(spans)
    boundaries = np.ones(count, dtype=np.uint8)
    return Passage(text, np.arange(100, 100 + count), boundaries, np.array(spans, dtype=np.int32).reshape(-1, 2))


def _marked(marked: str) -> tuple[str, list[LabelledSpan]]:
    """The text of "<세종:PS>은 왕이다", and its spans."""
    text, spans = "", []
    for part in re.split(r"(<[^<>]*:\w+>)", marked):
        inner, label = part[1:-1].rsplit(":", 1) if part.startswith("<") else (part, "")
        if label:
            spans.append(LabelledSpan(len(text), len(text) + len(inner), label))
        text += inner
    return text, spans


def _decoded(tags: Sequence[str], passage: Passage) -> list[LabelledSpan]:
    """The spans of a text whose pieces surely have these tags."""
    labels = bio_labels(["AF", "DT", "EV", "JB", "LC", "OG", "PD", "PS", "QT", "TI"])
    scores = np.full((len(tags), len(labels)), -50.0, dtype=np.float32)
    scores[np.arange(len(tags)), [labels.index(tag) for tag in tags]] = 0.0
    return [LabelledSpan(*span) for *span, _ in best_spans(passage, scores, labels, Transitions(labels))]


@pytest.fixture(scope="session")
def decoded() -> Callable[..., list[LabelledSpan]]:
    return _decoded


@pytest.fixture(scope="session")
def passage() -> Callable[..., Passage]:
    return _passage


@pytest.fixture(scope="session")
def marked() -> Callable[[str], tuple[str, list[LabelledSpan]]]:
    return _marked
