"""Pretraining objectives, each with its part of a row, its loss and its held-out figures.

| name | predicts | row | head |
|---|---|---|---|
| mlm | masked pieces (Devlin et al. 2019) | masking.py | vocabulary.py |
| nsp | whether B follows A (Devlin et al. 2019) | pairs.py | two classes |
| sop | whether A and B are in order (Lan et al. 2020) | pairs.py | two classes |
| spans | where a hidden span occurs again (Ram et al. 2021) | spans.py | that of a reader |
| rtd | which pieces a small model has replaced (Clark et al. 2020) | masking.py | replacement.py |
| distill | the distribution of a teacher (Sanh et al. 2019) | masking.py | distillation.py |

objective.py: the interface; losses.py: a batch and a model -> losses and figures; vocabulary.py: scores over all
entries of the vocabulary, or over a sample of them.
"""
