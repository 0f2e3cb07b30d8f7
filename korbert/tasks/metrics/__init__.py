"""Metrics, one file per kind of task: plain functions of arrays or lists, 0 to 1 unless stated otherwise.

1. classification.py: one label per text, from the confusion matrix.
2. multilabel.py: several labels per text.
3. regression.py: numbers, such as the similarity of two texts.
4. token_classification.py: entities and tags of characters or words.
5. question_answering.py: KLUE-MRC's scores of answers, and questions without an answer as in SQuAD 2.0.

Undefined cases (no entity at all, constant predictions) follow scikit-learn, scipy or seqeval, without their warnings;
if they return no number, the score is None. statistics.py has confidence intervals and comparisons of models,
calibration.py what probabilities are worth, misses.py the causes of wrong answers.
"""
