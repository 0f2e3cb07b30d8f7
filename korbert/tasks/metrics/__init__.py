"""Metrics, one file per kind of task: plain functions of arrays or lists, 0 to 1 unless stated otherwise.

1. classification.py: one label per text, from the confusion matrix; area under the precision-recall curve.
2. multilabel.py: several labels per text.
3. regression.py: numbers, such as the similarity of two texts.
4. tagging.py: entities and tags of characters or words.
5. question_answering.py: KLUE-MRC's scores of answers, and questions without an answer as in SQuAD 2.0.
6. ranking.py: documents ordered by a score.

Undefined cases (no entity at all, constant predictions) follow scikit-learn, scipy or seqeval, without their warnings;
if they return no number, the score is None. The names of classification.py are exported here, too.
Confidence intervals: ../statistics.py. Model comparison: ../comparison.py.
"""

from korbert.tasks.metrics.classification import (
    METRICS,
    Metric,
    accuracy,
    auprc,
    confusion,
    f1_of,
    macro_f1,
    matthews,
    measures,
    micro_f1,
)

__all__ = [
    "METRICS",
    "Metric",
    "accuracy",
    "auprc",
    "confusion",
    "f1_of",
    "macro_f1",
    "matthews",
    "measures",
    "micro_f1",
]
