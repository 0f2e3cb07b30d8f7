"""KLUE-MRC's scores against a slow implementation, and thresholds against trying every one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from korbert.tasks.metrics.question_answering import KLUE_MRC, KORQUAD, answer_scores, best_threshold, rouge_w

TEXTS = st.text("가나다 .", max_size=9)
_ROWS = st.tuples(st.booleans(), st.integers(-3, 3), st.sampled_from([0.0, 0.25, 0.5, 1.0]))


@pytest.mark.parametrize(
    ("prediction", "answers", "score"),
    [
        ("서울특별시", ["서울"], 2 * (2 / 5) * 1 / (2 / 5 + 1)),
        ("서울 특별시", ["서울시"], 2 * 2 / (6 + 3)),  # 서울; the 시 stands apart
        ("서울", ["부산", "서울시"], 2 * 2 / (2 + 3)),
        ("'KLUE'-mrc", ["klueMRC"], 1.0),  # punctuation and case
        ("부산", ["서울"], 0.0),
        ("", [], 1.0),
        (".", [], 1.0),
        ("서울", [], 0.0),
        ("", ["서울"], 0.0),
        ("《서울》", ["서울"], 2 * 2 / (4 + 2)),  # brackets that the script means to delete, and does not
        ("가나" * 10, ["다" + "가나" * 150], 2 * 20 / 321),  # for difflib, what is frequent in 200 characters is junk
    ],
)
def test_rouge_w_by_hand(prediction, answers, score):
    assert rouge_w(prediction, answers) == pytest.approx(score)


def _slow_rouge_w(prediction, answer):
    """Precision and recall of the longest common run, which is looked for among all runs of the answer."""
    prediction, answer = (" ".join(text.replace(".", "").split()) for text in (prediction, answer))
    if not answer:
        return float(prediction == answer)
    runs = [answer[i:j] for i in range(len(answer)) for j in range(i + 1, len(answer) + 1)]
    longest = max((len(run) for run in runs if run in prediction), default=0)
    if longest == 0:
        return 0.0
    precision, recall = longest / len(prediction), longest / len(answer)
    return 2 * precision * recall / (precision + recall)


@given(prediction=TEXTS, answers=st.lists(TEXTS, min_size=1, max_size=3))
def test_rouge_w_of_any_text(prediction, answers):
    assert rouge_w(prediction, answers) == pytest.approx(max(_slow_rouge_w(prediction, answer) for answer in answers))
    if KLUE_MRC.exact_match(prediction, answers):
        assert rouge_w(prediction, answers) == 1


@pytest.mark.parametrize("metrics", [KORQUAD, KLUE_MRC])
def test_questions_with_and_without_answer(metrics):
    exact, overlap = answer_scores(["서울", "서울", "", "", "."], [["서울"], [], [], ["서울"], []], metrics)
    assert exact.tolist() == overlap.tolist() == [1, 0, 1, 0, 1]
    assert KLUE_MRC.exact_match("서울  시.", ["부산", "서울 시"])
    assert not KLUE_MRC.exact_match("서울시", ["서울 시"])


@given(rows=st.lists(_ROWS, min_size=1, max_size=12))
def test_the_best_threshold_is_the_best(rows):
    has_answer, no_answer, scores = (np.array(column) for column in zip(*rows, strict=True))
    no_answer = no_answer.astype(float)

    def reached(threshold):
        return np.where(no_answer > threshold, ~has_answer, scores).mean()

    best = best_threshold(scores, has_answer, no_answer)
    assert reached(best) == pytest.approx(max(map(reached, (-4.0, *no_answer.tolist()))))
