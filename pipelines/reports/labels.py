"""Names of a record, `train_windows_without_answer`, as people read them."""

from collections.abc import Mapping

__all__ = ["label"]

_LABELS: Mapping[str, str] = {
    "bad_csv": "bad CSV",
    "bad_json": "bad JSON",
    "bad_xml": "bad XML",
    "chars": "characters kept",
    "count": "questions scored",
    "cut.documents": "documents with lines cut out",
    "cut.lines": "lines cut out",
    "distinct": "distinct morphemes",
    "f1": "F1",
    "gold_unreachable": "answers that no run of pieces matches",
    "heldout_documents": "documents held out",
    "heldout_morphemes": "morphemes held out",
    "heldout_pieces": "pieces held out",
    "kiwi_crashed": "Kiwi crashed",
    "kiwi_timeout": "Kiwi timed out",
    "looked_for": "texts long enough to look for",
    "pretrained_accuracy": "accuracy, pretrained",
    "questions_cut": "questions cut short",
    "rows": "training rows",
    "rows_of_first_epoch": "training rows in one epoch",
    "scratch_accuracy": "accuracy, not pretrained",
    "size": "vocabulary entries",
    "steps": "optimizer steps",
    "test": "test reviews",
    "tfidf_accuracy": "accuracy, TF-IDF baseline",
    "too_little_hangul": "too little Hangul",
    "train": "training reviews",
    "train_questions": "training questions",
    "train_questions_cut": "training questions cut short",
    "train_windows": "training windows",
    "train_windows_without_answer": "training windows without an answer",
    "unseen": "test reviews whose text is new",
    "validation": "validation reviews",
}
_NAMING = ("contaminated", "evaluation", "kept")  # what follows is a name that the recipe gave


def label(key: str) -> str:
    """The words for a key, the parts of a dotted one joined by commas: kept.wiki -> kept, wiki.

    Keys that have no words of their own have spaces for underscores.
    """
    if key in _LABELS:
        return _LABELS[key]
    first, *rest = key.split(".")
    given = rest[:1] if first in _NAMING else []
    return ", ".join([_word(first), *given, *map(_word, rest[len(given) :])])


def _word(key: str) -> str:
    return _LABELS.get(key, key.replace("_", " "))
