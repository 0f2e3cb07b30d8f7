"""Questions without an answer: weighed against the best span. test_finetuning_questions.py learns some by heart."""

import math

import pytest
import torch
from pydantic import ValidationError
from torch import nn

from korbert.tasks.question_answering.answers import Answer
from korbert.tasks.question_answering.windows import cut_windows
from tests.korbert.tasks.answering import TOKENIZER, letters, reading, search

SMALL = reading(max_length=16, stride=3, max_query_pieces=4, unanswerable=True)


class Scripted(nn.Module):
    """Gives each piece the two scores drawn for its id, and all pieces of a window what `shifts` has for its first."""

    def __init__(self, seed=0, **shifts):
        super().__init__()
        self.anchor = nn.Parameter(torch.zeros(1))
        self.table = torch.randn(2, 500, generator=torch.Generator().manual_seed(seed)) * 3
        self.shifts = shifts

    def forward(self, input_ids, **rest):
        rows = [min((id for id in ids if id >= 100), default=0) for ids in input_ids.tolist()]
        shift = torch.tensor([self.shifts.get(f"first_{row}", 0.0) for row in rows])[:, None]
        start, end = self.table[:, input_ids]
        return start + shift, end - 2 * shift

    def logits(self, ids):
        return self.table[0][list(ids)].tolist(), self.table[1][list(ids)].tolist()


def searched(network, context, kind=SMALL):
    (found,) = search(network, kind, [(letters("누가", 50), context)])
    return found


@pytest.mark.parametrize("seed", range(8))
def test_the_score_of_no_answer_in_one_window_is_that_of_the_paper(seed):
    """Devlin et al. 2018, 4.3: S.T_i + E.T_j of the best span i <= j against S.C + E.C."""
    model, context = Scripted(seed), letters("가나다라마바사아")
    start, end = model.logits(context.ids)
    best, i, j = max((start[i] + end[j], i, j) for i in range(8) for j in range(i, 8))
    (none_start,), (none_end,) = model.logits([TOKENIZER.cls_id])
    one = searched(model, context)
    assert one.no_answer == pytest.approx(none_start + none_end - best, abs=1e-4)
    assert one.candidates[0].answer == context.text[i : j + 1]


def test_the_score_of_no_answer_over_several_windows():
    model, context = Scripted(3), letters("가나다라마바사아자차카타파하거너더러머버")
    windows = cut_windows(letters("누가", 50), context, SMALL, special=3)
    assert len(windows) == 3
    spans, nones = [], []
    for window in windows:
        ids = [TOKENIZER.cls_id, *context.ids[window.first : window.last]]
        start, end = model.logits(ids)
        totals = [math.log(sum(map(math.exp, scores))) for scores in (start, end)]
        places = range(1, len(ids))
        spans += [start[i] + end[j] - sum(totals) for i in places for j in places if i <= j]
        nones.append(start[0] + end[0] - sum(totals))
    one = searched(model, context)
    assert one.no_answer == pytest.approx(min(nones) - max(spans), abs=1e-4)
    assert one.none == Answer("", 0, 0, pytest.approx(math.exp(min(nones)), rel=1e-5))
    shifted = searched(Scripted(3, first_100=5.0, **{f"first_{100 + windows[1].first}": -4.0}), context)
    assert shifted.no_answer == pytest.approx(one.no_answer, abs=1e-4)  # what the loss does not see does not decide


def test_the_threshold_decides():
    context = letters("가나다라마바사아")
    margin = searched(Scripted(), context).no_answer

    def read(threshold, **changes):
        kind = SMALL.model_copy(update={"threshold": threshold, "n_best": 3, **changes})
        return kind.best_answers(searched(Scripted(), context, kind))

    below, at, off = read(margin - 0.01), read(margin), read(-100.0, unanswerable=False)
    assert [one.answer for one in below] == ["", *(one.answer for one in at[:2])]  # still n_best of them
    assert at == off
    assert all(one.answer for one in at)
    for text in ("", " \n"):  # a blank context is surely without answer
        one = searched(Scripted(), letters(text))
        assert (one.candidates, SMALL.best_answers(one)) == ([], [one.none])
        assert 1e8 < one.no_answer < math.inf


def test_a_threshold_is_a_number():
    with pytest.raises(ValidationError, match="finite number"):
        reading(unanswerable=True, threshold=float("nan"))
