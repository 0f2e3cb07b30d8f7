"""What the tests here share."""

import re
from collections.abc import Sequence

import numpy as np

from korbert.tasks.files import LabelledSpan
from korbert.tasks.passages import Passage
from korbert.tasks.token_classification.bio import bio_labels
from korbert.tasks.token_classification.tagger import best_tags, tagged_spans, units_of


def marked(text_with_marks: str) -> tuple[str, list[LabelledSpan]]:
    """The text of "<세종:PS>은 왕이다", and its spans."""
    text, spans = "", []
    for part in re.split(r"(<[^<>]*:\w+>)", text_with_marks):
        inner, label = part[1:-1].rsplit(":", 1) if part.startswith("<") else (part, "")
        if label:
            spans.append(LabelledSpan(len(text), len(text) + len(inner), label))
        text += inner
    return text, spans


def decoded(tags: Sequence[str], text: Passage) -> list[LabelledSpan]:
    """The spans of a text whose pieces surely have these tags."""
    labels = bio_labels(["AF", "DT", "EV", "JB", "LC", "OG", "PD", "PS", "QT", "TI"])
    scores = np.full((len(tags), len(labels)), -50.0, dtype=np.float32)
    scores[np.arange(len(tags)), [labels.index(tag) for tag in tags]] = 0.0
    return [
        LabelledSpan(*span) for *span, _ in tagged_spans(text, best_tags(scores[units_of(None, text)], labels), labels)
    ]
