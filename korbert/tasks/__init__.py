"""Downstream tasks of a pretrained encoder: fill-mask, classification, reading comprehension; and their metrics.

1. files/ and sets/: rows of a user's files, or of a data set in datasets.toml; splits.py: training, validation, test.
2. kinds/: what a row is, its head, loss, decoding, metrics and baseline: a file for each kind of task.
3. finetuning/: training and its settings. Texts are analysed once and cached (encoded.py); vectors.py caches the
   vectors of a frozen encoder, for heads trained on them. terms.py and linear.py: a classifier without training.
4. token_classification/ (labels of words and spans) and question_answering/ (answers in long contexts) hold the parts
   of their kinds; embedding.py the losses of text embeddings; filling.py fills gaps and needs no training.
5. metrics/: scores, confidence intervals, significance tests, causes of wrong answers. baselines/: scores to beat.

korquad/ holds what is specific to that data set: its files and official metrics.
"""
