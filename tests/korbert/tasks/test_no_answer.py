"""Questions without an answer: weighed against the best span, and learned by heart."""

import json
import math

import numpy as np
import pytest
import torch
from torch import nn

from korbert.model import Model
from korbert.modeling import QuestionAnsweringModel, read_config
from korbert.tasks.metrics.question_answering import KORQUAD, answer_scores, best_threshold
from korbert.tasks.passages import encode_passages
from korbert.tasks.question_answering.answers import Answer
from korbert.tasks.question_answering.windows import cut_windows, reading_loss
from korbert.training.examples import Batches
from tests.korbert.tasks.answering import TOKENIZER, letters, reading, search
from tests.korbert.tiny import tiny_config

# --- SQuAD 2.0's evaluate-v2.0.py, from its definition (Rajpurkar et al. 2018, 3 and the script's own description) ---


SMALL = reading(max_length=16, stride=3, max_query_pieces=4, unanswerable=True)


class Scripted(nn.Module):
    """Gives each piece the two scores drawn for its id, and all pieces of a window what `shifts` has for its first."""

    def __init__(self, seed=0, **shifts):
        super().__init__()
        self.anchor = nn.Parameter(torch.zeros(1))
        self.table = torch.randn(2, 500, generator=torch.Generator().manual_seed(seed)) * 3
        self.shifts = shifts

    def forward(self, input_ids, *rest, lengths):
        rows = [str(ids[ids >= 100].min().item()) if (ids >= 100).any() else "" for ids in input_ids]
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


@pytest.mark.parametrize("text", ["", " \n"])
def test_a_blank_context_is_surely_without_answer(text):
    one = searched(Scripted(), letters(text))
    assert one.candidates == []
    assert one.no_answer > 1e8
    assert json.loads(json.dumps(one.no_answer, allow_nan=False)) == one.no_answer
    assert SMALL.best_answers(one) == [one.none]


# --- learned by heart ---

LAKE = (
    "한강은 태백산맥에서 시작해 서울을 지나 황해로 흐른다. 길이는 494킬로미터이고, 예전에는 아리수라고도 불렸다."
    " 강에는 서른 개가 넘는 다리가 있으며 가장 오래된 것은 한강철교이다."
)
KING = "세종은 1443년에 한글을 만들었다. 그는 조선의 네 번째 임금이다."
ISLAND = "제주도의 가장 높은 산은 한라산이다."
ASKED = [
    (KING, "한글은 언제 만들었나?", "1443년"),
    (KING, "세종은 어느 나라의 임금인가?", "조선"),
    (KING, "세종의 아내는 누구인가?", ""),
    (LAKE, "한강은 어디에서 시작하는가?", "태백산맥"),
    (LAKE, "가장 오래된 다리는?", "한강철교"),
    (LAKE, "한강의 예전 이름은?", "아리수"),
    (LAKE, "한강의 깊이는?", ""),
    (LAKE, "한강철교는 누가 설계했나?", ""),
    (ISLAND, "가장 높은 산은?", "한라산"),
    (ISLAND, "제주도의 인구는?", ""),
]


def test_ten_questions_are_learned_by_heart_four_of_them_without_answer(tiny_tokenizer, tmp_path):
    contexts, questions, answers = map(list, zip(*ASKED, strict=True))
    kind = reading(max_length=36, stride=8, max_query_pieces=12, unanswerable=True, threshold=1e30)
    rows = [
        {"context": context, "question": question, "answers": [(answer, None)] if answer else None}
        for context, question, answer in ASKED
    ]
    texts = list(dict.fromkeys((*contexts, *questions)))
    encoded = dict(zip(texts, encode_passages(tiny_tokenizer, texts), strict=True))
    prepared = kind.prepare(rows, encoded, tiny_tokenizer)
    examples = prepared.examples
    assert len(examples) > len(rows)  # the long context is cut
    config = tiny_config(vocab_size=tiny_tokenizer.vocab_size, num_attention_heads=2, intermediate_size=64)
    model = QuestionAnsweringModel(config, torch.Generator().manual_seed(0)).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3)
    batches = Batches(examples, batch_size=8, seed=0)
    for step in range(40 * batches.steps_per_epoch):
        (batch,) = batches(step)
        optimizer.zero_grad()
        reading_loss(model, batch)["loss"].backward()
        optimizer.step()

    predictions = kind.predict(model, prepared, device=torch.device("cpu"))
    right = [[answer] if answer else [] for answer in answers]
    _, f1 = answer_scores([one["answer"] for one in predictions], right, KORQUAD)
    no_answer = np.array([one["no_answer_score"] for one in predictions])
    threshold = best_threshold(f1, np.array(list(map(bool, right))), no_answer)
    assert threshold.score == 1.0
    kind = kind.model_copy(update={"threshold": threshold.value})
    Model(model, tiny_tokenizer, kind).save(tmp_path / "model")
    assert read_config(tmp_path / "model")["task"]["threshold"] == threshold.value

    reader = Model.load(tmp_path / "model", "cpu")
    assert reader.kind == kind
    assert [one.answer for one in reader.answer(questions, contexts)] == answers
    answered, unanswered = reader.answer(["한강의 예전 이름은?", "한강의 깊이는?"], [LAKE, LAKE])
    assert (answered.answer, LAKE[answered.start : answered.end]) == ("아리수", "아리수")
    assert answered.no_answer_score <= threshold.value < unanswered.no_answer_score
    assert (unanswered.answer, unanswered.start, unanswered.end) == ("", 0, 0)
    assert 0 < unanswered.score <= 1
