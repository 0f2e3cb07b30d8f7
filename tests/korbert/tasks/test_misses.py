"""Why answers are wrong, and what the scores count."""

import numpy as np
import pytest

from korbert.tasks import korquad
from korbert.tasks.misses import miss_cause, score_answers, snippets
from korbert.tasks.passages import Passage
from korbert.tasks.questions import Answer, AnswerMetrics

CONTEXT = "세종은 1443년에 한글을 만들었다.\r\n🙂 그것은 훈민정음이다."
METRICS = AnswerMetrics(korquad.exact_match, korquad.f1)


def dataset(count=1):
    qas = [
        {"id": f"q{i}", "question": "한글은 언제 만들어졌나?", "answers": [{"text": "1443년", "answer_start": 4}]}
        for i in range(count)
    ]
    paragraphs = [{"context": CONTEXT, "qas": qas}]
    return korquad.parse({"data": [{"title": "한글", "paragraphs": paragraphs}]}, "train.json")


@pytest.mark.parametrize(
    ("predicted", "reachable", "cause"),
    [
        ((4, 10), True, "boundary"),  # 1443년에
        ((4, 8), True, "boundary"),  # 1443
        ((3, 11), True, "boundary"),
        ((2, 11), True, "overlap"),
        ((0, 14), True, "overlap"),
        ((9, 12), True, "elsewhere"),  # begins where the answer ends
        ((0, 3), True, "elsewhere"),
        (None, True, "elsewhere"),
        ((4, 10), False, "unreachable"),
    ],
)
def test_miss_cause(predicted, reachable, cause):
    assert miss_cause(predicted, [Answer("1443년", 4)], reachable=reachable) == cause


def test_miss_cause_looks_at_every_answer():
    assert miss_cause((20, 22), [Answer("1443년", 4), Answer("한글을", 20)], reachable=True) == "boundary"


def characters(text):
    """A text whose pieces are its characters."""
    spans = np.array([(i, i + 1) for i in range(len(text))], dtype=np.int32)
    return Passage(text, np.arange(len(text)), np.zeros(len(text), dtype=np.uint8), spans)


def candidate(start, end):
    return {"text": CONTEXT[start:end], "score": 0.5, "start": start, "end": end}


def test_scores_count_and_explain():
    n_best = {"q0": [candidate(4, 9)], "q1": [candidate(4, 10), candidate(4, 9)], "q2": [candidate(0, 2)], "q3": []}
    found = score_answers(dataset(4), [(characters("무엇"), characters(CONTEXT))] * 4, n_best, METRICS)
    assert (found["exact_match"], found["count"], found["gold_unreachable"]) == (25.0, 4, 0)
    assert found["f1"] == pytest.approx(100 * (1 + 10 / 11 + 0 + 0) / 4)
    assert found["by_cause"] == {"unreachable": 0, "boundary": 1, "overlap": 0, "elsewhere": 2}
    assert [(miss["id"], miss["prediction"], miss["cause"]) for miss in found["misses"]] == [
        ("q1", "1443년에", "boundary"),
        ("q2", "세종", "elsewhere"),
        ("q3", "", "elsewhere"),
    ]
    assert found["answer_chars"] == [0, 0, 0, 0, 0, 4]
    assert found["prediction_chars"] == [1, 0, 1, 0, 0, 1, 1]


def test_answers_that_no_piece_can_give_are_unreachable():
    whole = Passage(CONTEXT, np.arange(1), np.zeros(1, dtype=np.uint8), np.array([(0, len(CONTEXT))], dtype=np.int32))
    found = score_answers(dataset(1), [(whole, whole)], {"q0": [candidate(0, len(CONTEXT))]}, METRICS)
    assert (found["gold_unreachable"], found["by_cause"]["unreachable"]) == (1, 1)


def test_a_miss_stands_in_what_is_around_it():
    n_best = {"q0": [candidate(0, 2)], "q1": []}
    found = score_answers(dataset(2), [(characters("무엇"), characters(CONTEXT))] * 2, n_best, METRICS)
    first, second = found["misses"]
    assert (first["answer_span"], first["prediction_span"]) == ((4, 9), (0, 2))
    assert first["snippets"] == [{"start": 0, "text": CONTEXT}]
    assert second["prediction_span"] is None


@pytest.mark.parametrize(
    ("spans", "ranges"),
    [
        ([(100, 110)], [(40, 170)]),
        ([(0, 5)], [(0, 65)]),
        ([(295, 300)], [(235, 300)]),
        ([(100, 110), (105, 120)], [(40, 180)]),
        ([(250, 260), (20, 30)], [(0, 90), (190, 300)]),  # in the order of the text
        ([(20, 30), (150, 160)], [(0, 220)]),  # 90 = 90: they touch
    ],
)
def test_snippets_reach_60_characters_to_both_sides(spans, ranges):
    text = "".join(chr(ord("가") + place) for place in range(300))
    found = snippets(text, spans)
    assert [(one["start"], one["start"] + len(one["text"])) for one in found] == ranges
    assert all(text[one["start"] :].startswith(one["text"]) for one in found)
