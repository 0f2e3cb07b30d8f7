"""Figures: a number with its name, in its format, as in the terminal, on pages and index, in cards and comparisons.

A figure is known by its key in the JSON of an artifact: `macro_f1`, `mlm_loss`, `train_windows_without_answer`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.reports import formatting


@dataclass(frozen=True)
class Figure:
    """A figure as it is shown: its value, its label, and a note that qualifies it (an error, a baseline)."""

    value: str
    label: str
    note: str = ""

    def __str__(self) -> str:
        return f"{self.value} {self.label}{f' ({self.note})' if self.note else ''}"


OBJECTIVES: Mapping[str, str] = {
    "mlm": "MLM",
    "nsp": "NSP",
    "sop": "SOP",
    "spans": "span selection",
    "rtd": "replaced token detection",
    "distill": "distillation",
}
"""Display names of the pretraining objectives; those that predict pieces come first."""

_LABELS = {
    "bad_json": "bad JSON",
    "bad_xml": "bad XML",
    "byte_share": "byte pieces",
    "c": "C",
    "character_f1": "character F1",
    "character_f1_without_o": "character F1 without O",
    "chars": "kept characters",
    "count": "questions scored",
    "cut.documents": "documents with lines removed",
    "cut.lines": "lines removed",
    "distinct": "distinct morphemes",
    "entity_f1": "entity F1",
    "entity_macro_f1": "entity macro F1",
    "f1": "F1",
    "f1_at_3": "F1 at 3",
    "gold_unreachable": "answers that no span of pieces matches",
    "heldout_documents": "held-out documents",
    "heldout_morphemes": "held-out morphemes",
    "heldout_pieces": "held-out pieces",
    "kiwi_crashed": "Kiwi crashed",
    "kiwi_timeout": "Kiwi timed out",
    "looked_for": "texts searched for",
    "macro_f1": "macro F1",
    "mae": "mean absolute error",
    "matthews": "Matthews correlation",
    "micro_f1": "micro F1",
    "pearson": "Pearson correlation",
    "pretrained_accuracy": "accuracy, pretrained",
    "questions_cut": "questions truncated",
    "rows": "training rows",
    "epochs": "epochs",
    "rouge_w": "ROUGE-W",
    "scratch_accuracy": "accuracy, not pretrained",
    "size": "vocabulary entries",
    "spearman": "Spearman correlation",
    "steps": "optimizer steps",
    "test": "test rows",
    "test_in_train": "scored rows whose texts are in a training row",
    "tfidf_accuracy": "accuracy, TF-IDF baseline",
    "too_little_hangul": "too little Hangul",
    "train": "training rows",
    "train_questions": "training questions",
    "train_questions_cut": "training questions truncated",
    "train_windows": "training windows",
    "train_windows_without_answer": "training windows without an answer",
    "unigram_loss": "unigram baseline",
    "unseen": "unseen test rows",
    "valid": "validation rows",
    "validation": "validation rows",
}
_LABELS |= {
    f"{key}_{figure}": f"{words} {figure}" for key, words in OBJECTIVES.items() for figure in ("loss", "accuracy")
}
_MODELS: Mapping[str, str] = {
    "scratch": "not pretrained",
    "tfidf": "TF-IDF baseline",
    "majority": "majority baseline",
    "mean": "mean baseline",
    "dictionary": "dictionary baseline",
    "sentence": "nearest sentence baseline",
    "no_answer": "no answer baseline",
}
_DECIMALS = {"pearson": 3, "spearman": 3, "matthews": 3, "mae": 3, "pieces_per_morpheme": 2, "pieces_per_eojeol": 2}
_PERCENT_PLACES = {"byte_share": 2}  # 1 for all other shares
_NAMING = ("contaminated", "evaluation", "kept")  # keys followed by a name from the recipe


def label(key: str) -> str:
    """The display name of a key. Parts of a dotted key are joined by commas: kept.wiki -> kept, wiki.

    For unknown keys, underscores become spaces.
    """
    if key in _LABELS:
        return _LABELS[key]
    first, *rest = key.split(".")
    names = rest[:1] if first in _NAMING else []
    words = [_LABELS.get(part, part.replace("_", " ")) for part in (first, *rest[len(names) :])]
    return ", ".join([words[0], *names, *words[1:]])


def model_name(name: str) -> str:
    """The display name of a model in scores.json."""
    return _MODELS.get(name, name)


def known(value: Any) -> bool:
    """Whether a value is defined: undefined ones are None or NaN."""
    return isinstance(value, int | float) and math.isfinite(value)


def in_percent(key: str) -> bool:
    """Whether the figure is a share, from 0 to 1; else it is a loss in nats, a correlation, an error or a mean."""
    return key not in _DECIMALS and not key.endswith("_loss")


def text(key: str, value: Any, more_places: int = 0) -> str:
    """The value: 0.5124 -> 51.2 % for a share, 0.512 for a correlation, 0.51 for a loss; undefined -> a dash."""
    value = value if known(value) else None
    if in_percent(key):
        return formatting.percent(value, _PERCENT_PLACES.get(key, 1) + more_places)
    return formatting.decimal(value, _DECIMALS.get(key, 2) + more_places)


def interval(key: str, ends: Sequence[Any]) -> str:
    """46.2 to 55.1 %."""
    low, high = (text(key, end) for end in ends)
    return f"{low.removesuffix(formatting.PERCENT)} to {high}"
