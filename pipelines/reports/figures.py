"""Display names for keys of a record: `train_windows_without_answer` -> training windows without an answer."""

from collections.abc import Mapping

__all__ = ["OBJECTIVES", "label"]

OBJECTIVES: Mapping[str, str] = {
    "mlm": "MLM",
    "nsp": "NSP",
    "sop": "SOP",
    "spans": "span selection",
    "rtd": "replaced token detection",
    "distill": "distillation",
}
"""Display names of the pretraining objectives; those that predict pieces come first."""

_LABELS: Mapping[str, str] = {
    "auprc": "AUPRC",
    "bad_json": "bad JSON",
    "bad_xml": "bad XML",
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
    "unseen": "unseen test rows",
    "valid": "validation rows",
    "validation": "validation rows",
}
_NAMING = ("contaminated", "evaluation", "kept")  # keys followed by a name from the recipe


def label(key: str) -> str:
    """The display name of a key. Parts of a dotted key are joined by commas: kept.wiki -> kept, wiki.

    For unknown keys, underscores become spaces.
    """
    if key in _LABELS:
        return _LABELS[key]
    first, *rest = key.split(".")
    given = rest[:1] if first in _NAMING else []
    return ", ".join([_word(first), *given, *map(_word, rest[len(given) :])])


def _word(key: str) -> str:
    return _LABELS.get(key, key.replace("_", " "))
