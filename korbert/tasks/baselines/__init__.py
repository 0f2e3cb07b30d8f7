"""Baselines without an encoder. Plain functions of lists and arrays.

1. majority.py: the most frequent label, tag or place, or the mean score, for any text.
2. features.py: TF-IDF of morphemes, of one text, or of two and their overlap.
3. tfidf.py: logistic regression and ridge on these features.
4. sentences.py: the sentence of a context that is nearest to a question.
5. result.py: their common result.

For entities there is also the dictionary of ../tagging/dictionary.py.
"""

from typing import TYPE_CHECKING

from korbert._lazy import attach

if TYPE_CHECKING:
    from korbert.tasks.baselines.features import Choices, Pairs
    from korbert.tasks.baselines.majority import label_shares, majority_place, majority_tag, mean_score
    from korbert.tasks.baselines.result import Baseline
    from korbert.tasks.baselines.tfidf import fit_choices, fit_labels, fit_multilabel, fit_scores

__all__ = [
    "Baseline",
    "Choices",
    "Pairs",
    "fit_choices",
    "fit_labels",
    "fit_multilabel",
    "fit_scores",
    "label_shares",
    "majority_place",
    "majority_tag",
    "mean_score",
]

__getattr__ = attach(
    __name__,
    {
        "Baseline": "result",
        "Choices": "features",
        "Pairs": "features",
        "fit_choices": "tfidf",
        "fit_labels": "tfidf",
        "fit_multilabel": "tfidf",
        "fit_scores": "tfidf",
        "label_shares": "majority",
        "majority_place": "majority",
        "majority_tag": "majority",
        "mean_score": "majority",
    },
)
