"""Questions without an answer: weighed, scored as SQuAD 2.0 scores them, and learned by heart."""

import json
import math
import re
import string
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from korbert.modeling import EncoderConfig, ReadingModel, read_config, save_model
from korbert.tasks import korquad, squad
from korbert.tasks.examples import Batches
from korbert.tasks.metrics.reading import KLUE_MRC
from korbert.tasks.misses import score_answers
from korbert.tasks.no_answer import choose_threshold, score_halves
from korbert.tasks.passages import Passage
from korbert.tasks.questions import Answer, AnswerMetrics, Dataset, Question
from korbert.tasks.reading import Found, Reader, question_pairs
from korbert.tasks.reading_settings import ReadingSettings
from korbert.tasks.windows import WindowExamples, cut_windows, reading_loss
from korbert.tokenization.encoding import Frame

KORQUAD = AnswerMetrics(korquad.exact_match, korquad.f1)

# --- SQuAD 2.0's evaluate-v2.0.py, from its definition (Rajpurkar et al. 2018, 3 and the script's own description) ---


def words(text: str) -> list[str]:
    """Lower case, no ASCII punctuation, no articles."""
    kept = "".join(char for char in text.lower() if char not in string.punctuation)
    return [word for word in re.sub(r"\b(a|an|the)\b", " ", kept).split() if word]


def exact_of(prediction: str, answer: str) -> float:
    return float(words(prediction) == words(answer))


def f1_of(prediction: str, answer: str) -> float:
    """Over words; equal or not where one of them has none."""
    predicted, right = words(prediction), words(answer)
    if not predicted or not right:
        return float(predicted == right)
    shared = sum(min(predicted.count(word), right.count(word)) for word in set(predicted))
    return 0.0 if not shared else 2 / (len(predicted) / shared + len(right) / shared)


SQUAD = AnswerMetrics(
    lambda prediction, answers: any(exact_of(prediction, answer) for answer in answers),
    lambda prediction, answers: max(f1_of(prediction, answer) for answer in answers),
)


def evaluate(answers: dict[str, list[str]], predictions: dict[str, str]) -> dict[str, float]:
    """What the script prints, without thresholds: a question without answers has the one right answer ""."""
    printed: dict[str, float] = {}
    for prefix, ids in (
        ("", list(answers)),
        ("HasAns_", [id for id in answers if answers[id]]),
        ("NoAns_", [id for id in answers if not answers[id]]),
    ):
        for name, score in (("exact", exact_of), ("f1", f1_of)):
            best = [max(score(predictions[id], text) for text in answers[id] or [""]) for id in ids]
            if ids:
                printed[prefix + name] = 100.0 * sum(best) / len(ids)
        printed[prefix + "total"] = len(ids)
    return printed


def dataset_of(answers: dict[str, list[str]]) -> Dataset:
    """Questions with these right answers; their places are not looked at."""
    asked = [Question(id, id, 0, tuple(Answer(text, 0) for text in texts)) for id, texts in answers.items()]
    return Dataset(("",), ("",), tuple(asked))


TEXTS = st.sampled_from(["", ".", "the", "a cat", "The cat!", "cat", "cat cat dog", "세종", "세종 대왕"])


@given(rows=st.lists(st.tuples(TEXTS, st.lists(TEXTS.filter(words), max_size=3)), min_size=1, max_size=8))
def test_scores_are_those_of_squad_2(rows: list[tuple[str, list[str]]]) -> None:
    answers = {f"q{i}": right for i, (_, right) in enumerate(rows)}
    predictions = {f"q{i}": prediction for i, (prediction, _) in enumerate(rows)}
    printed = evaluate(answers, predictions)
    for name, half in score_halves(dataset_of(answers), predictions, SQUAD).items():
        prefix = {"all": "", "has_answer": "HasAns_", "no_answer": "NoAns_"}[name]
        assert half["count"] == printed[prefix + "total"]
        for ours, theirs in (("exact_match", "exact"), ("f1", "f1")):
            assert half[ours] == (pytest.approx(printed[prefix + theirs]) if half["count"] else None)


def test_scores_by_hand() -> None:
    answers: dict[str, list[str]] = {"가": ["세종대왕", "세종"], "나": ["서울"], "다": [], "라": []}
    predictions = {"가": "세종", "나": "서울시", "다": "", "라": "서울"}
    halves = score_halves(dataset_of(answers), predictions, KORQUAD)
    assert halves == {
        "all": {"exact_match": 50.0, "f1": pytest.approx(70.0), "count": 4},
        "has_answer": {"exact_match": 50.0, "f1": pytest.approx(90.0), "count": 2},
        "no_answer": {"exact_match": 50.0, "f1": 50.0, "count": 2},
    }
    klue = score_halves(dataset_of({"가": ["대왕 세종"], "다": []}), {"가": "세종 대왕", "다": ""}, KLUE_MRC)
    assert klue["has_answer"]["f1"] == pytest.approx(100 * 2 / 5)  # ROUGE-W: a run of 2 in two texts of 5
    assert klue["all"]["f1"] == pytest.approx(70.0)


def test_a_question_without_a_prediction_is_wrong(caplog: pytest.LogCaptureFixture) -> None:
    halves = score_halves(dataset_of({"가": ["서울"], "나": []}), {"가": "서울"}, KORQUAD)
    assert [halves[name]["exact_match"] for name in ("has_answer", "no_answer")] == [100.0, 0.0]
    assert "1 of 2 questions have no prediction" in caplog.text


def found(text: str, no_answer: float) -> Found:
    candidates: Any = [{"text": text, "score": 0.5, "start": 0, "end": 1}] if text else []
    return Found(candidates, {"text": "", "score": 0.5, "start": 0, "end": 0}, no_answer)


def test_the_threshold_is_chosen_by_f1() -> None:
    dataset = dataset_of({"가": ["서울"], "나": ["서울"], "다": [], "라": [], "마": []})
    given = [found("서울", -3.0), found("부산", 1.0), found("서울", 2.0), found("", 1e9), found("서울", 1.5)]
    assert choose_threshold(dataset, given, KORQUAD) == (-3.0, 4 / 5)
    half = [found("서울", -3.0), found("서울시", 0.5), *given[2:]]  # no exact match: EM would leave it unanswered
    assert choose_threshold(dataset, half, KORQUAD) == (0.5, pytest.approx(4.8 / 5))


# --- a reader's weighing ---

IDS: Any = type("Ids", (), {"pad_id": 0, "cls_id": 2, "sep_id": 3, "frame": Frame(2, 3)})()
SMALL = ReadingSettings(max_length=16, stride=3, max_query_pieces=4, unanswerable=True)


def letters(text: str, first_id: int = 100) -> Passage:
    """A text whose pieces are its characters that are not space; ids count up from first_id."""
    places = [i for i, char in enumerate(text) if not char.isspace()]
    spans = np.array([(i, i + 1) for i in places], dtype=np.int32).reshape(-1, 2)
    ids = np.arange(first_id, first_id + len(places), dtype=np.int32)
    return Passage(text, ids, np.full(len(places), 1, dtype=np.uint8), spans)


class Scripted(nn.Module):
    """Gives each piece the two scores drawn for its id, and all pieces of a window what `shifts` has for its first."""

    def __init__(self, seed: int = 0, **shifts: float) -> None:
        super().__init__()
        self.anchor = nn.Parameter(torch.zeros(1))
        self.table = torch.randn(2, 500, generator=torch.Generator().manual_seed(seed)) * 3
        self.shifts = shifts

    def forward(self, input_ids: torch.Tensor, *rest: Any, lengths: Any) -> tuple[torch.Tensor, torch.Tensor]:
        rows = [str(ids[ids >= 100].min().item()) if (ids >= 100).any() else "" for ids in input_ids]
        shift = torch.tensor([self.shifts.get(f"first_{row}", 0.0) for row in rows])[:, None]
        start, end = self.table[:, input_ids]
        return start + shift, end - 2 * shift

    def logits(self, ids: Sequence[int]) -> tuple[list[float], list[float]]:
        return self.table[0][list(ids)].tolist(), self.table[1][list(ids)].tolist()


def search(model: nn.Module, context: Passage, settings: ReadingSettings = SMALL) -> Found:
    (one,) = Reader(model, IDS, settings).search([(letters("누가", 50), context)])  # type: ignore[arg-type]
    return one


@pytest.mark.parametrize("seed", range(8))
def test_in_one_window_it_is_the_difference_of_logits_of_the_paper(seed: int) -> None:
    """Devlin et al. 2018, 4.3: S.T_i + E.T_j of the best span i <= j against S.C + E.C."""
    model, context = Scripted(seed), letters("가나다라마바사아")
    start, end = model.logits(context.ids)
    best, i, j = max((start[i] + end[j], i, j) for i in range(8) for j in range(i, 8))
    (none_start,), (none_end,) = model.logits([IDS.cls_id])
    one = search(model, context)
    assert one.no_answer == pytest.approx(none_start + none_end - best, abs=1e-4)
    assert one.candidates[0]["text"] == context.text[i : j + 1]


def test_in_several_windows_it_is_the_best_span_of_all_against_the_least_none_of_all() -> None:
    model, context = Scripted(3), letters("가나다라마바사아자차카타파하거너더러머버")
    windows = cut_windows(letters("누가", 50), context, SMALL, special=3)
    assert len(windows) == 3
    spans, nones = [], []
    for window in windows:
        ids = [IDS.cls_id, *context.ids[window.first : window.last]]
        start, end = model.logits(ids)
        totals = [math.log(sum(map(math.exp, scores))) for scores in (start, end)]
        places = range(1, len(ids))
        spans += [start[i] + end[j] - sum(totals) for i in places for j in places if i <= j]
        nones.append(start[0] + end[0] - sum(totals))
    one = search(model, context)
    assert one.no_answer == pytest.approx(min(nones) - max(spans), abs=1e-4)
    assert one.none == {"text": "", "score": pytest.approx(math.exp(min(nones))), "start": 0, "end": 0}
    shifted = search(Scripted(3, first_100=5.0, **{f"first_{100 + windows[1].first}": -4.0}), context)
    assert shifted.no_answer == pytest.approx(one.no_answer, abs=1e-4)  # what the loss does not see does not decide


def test_the_threshold_decides() -> None:
    context = letters("가나다라마바사아")
    margin = search(Scripted(), context).no_answer
    pairs = [(letters("누가", 50), context)]

    def read(threshold: float, **changes: Any) -> list[Any]:
        settings = SMALL.model_copy(update={"threshold": threshold, "n_best": 3, **changes})
        return Reader(Scripted(), IDS, settings).read(pairs)[0]  # type: ignore[arg-type]

    below, at, off = read(margin - 0.01), read(margin), read(-100.0, unanswerable=False)
    assert [one["text"] for one in below] == ["", *(one["text"] for one in at[:2])]  # still n_best of them
    assert at == off
    assert all(one["text"] for one in at)


@pytest.mark.parametrize("text", ["", " \n"])
def test_a_blank_context_is_surely_without_answer(text: str) -> None:
    one = search(Scripted(), letters(text))
    assert one.candidates == []
    assert one.no_answer > 1e8
    assert json.loads(json.dumps(one.no_answer, allow_nan=False)) == one.no_answer
    (best,) = Reader(Scripted(), IDS, SMALL).read([(letters("누가", 50), letters(text))])  # type: ignore[arg-type]
    assert best == [one.none]


# --- causes ---


def test_misses_of_both_halves() -> None:
    context = "세종은 1443년에 한글을 만들었다."
    right = (Answer("1443년", 4),)
    dataset = Dataset(("",), (context,), tuple(Question(f"q{i}", "?", 0, right if i < 3 else ()) for i in range(5)))
    spans = np.array([(i, i + 1) for i in range(len(context))], dtype=np.int32)
    passage = Passage(context, np.arange(len(context)), np.zeros(len(context), dtype=np.uint8), spans)
    good, bad = ({"text": context[a:b], "score": 0.5, "start": a, "end": b} for a, b in ((4, 9), (11, 13)))
    none = {"text": "", "score": 0.9, "start": 0, "end": 0}
    n_best: Any = {"q0": [good], "q1": [none, good], "q2": [bad], "q3": [none, bad], "q4": [bad]}
    scores = score_answers(dataset, [(passage, passage)] * 5, n_best, KORQUAD)
    assert (scores["exact_match"], scores["f1"], scores["gold_unreachable"]) == (40.0, 40.0, 0)
    assert scores["has_answer"] == {"exact_match": pytest.approx(100 / 3), "f1": pytest.approx(100 / 3), "count": 3}
    assert scores["no_answer"] == {"exact_match": 50.0, "f1": 50.0, "count": 2}
    causes = {"unreachable": 0, "boundary": 0, "overlap": 0, "elsewhere": 1, "invented": 1, "unanswered": 1}
    assert scores["by_cause"] == causes
    unanswered, elsewhere, invented = scores["misses"]
    assert (unanswered["id"], unanswered["prediction_span"], unanswered["answer_span"]) == ("q1", None, (4, 9))
    assert elsewhere["cause"] == "elsewhere"
    assert (invented["answer_span"], invented["answers"], invented["prediction_span"]) == (None, [], (11, 13))
    assert invented["snippets"] == [{"start": 0, "text": context}]
    assert scores["answer_chars"] == [2, 0, 0, 0, 0, 3]
    assert scores["prediction_chars"] == [2, 0, 2, 0, 0, 1]
    assert json.dumps(scores, allow_nan=False)


# --- learned by heart ---

PASSAGES = (
    (
        "세종은 1443년에 한글을 만들었다. 그는 조선의 네 번째 임금이다.",
        (
            ("한글은 언제 만들었나?", "1443년"),
            ("세종은 어느 나라의 임금인가?", "조선"),
            ("세종의 아내는 누구인가?", ""),
        ),
    ),
    (
        "한강은 태백산맥에서 시작해 서울을 지나 황해로 흐른다. 길이는 494킬로미터이고, 예전에는 아리수라고도 불렸다."
        " 강에는 서른 개가 넘는 다리가 있으며 가장 오래된 것은 한강철교이다.",
        (
            ("한강은 어디에서 시작하는가?", "태백산맥"),
            ("가장 오래된 다리는?", "한강철교"),
            ("한강의 예전 이름은?", "아리수"),
            ("한강의 깊이는?", ""),
            ("한강철교는 누가 설계했나?", ""),
        ),
    ),
    ("제주도의 가장 높은 산은 한라산이다.", (("가장 높은 산은?", "한라산"), ("제주도의 인구는?", ""))),
)


def ten_questions() -> Dataset:
    """In SQuAD 2.0's form."""
    data = [
        {
            "context": context,
            "qas": [
                {
                    "id": question,
                    "question": question,
                    "is_impossible": not answer,
                    "answers": [{"text": answer, "answer_start": context.index(answer)}] if answer else [],
                }
                for question, answer in asked
            ],
        }
        for context, asked in PASSAGES
    ]
    return squad.parse({"data": [{"title": "열 물음", "paragraphs": data}]}, "ten.json")


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Steps this small are slower on several, and much slower where other processes have them."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("one_thread")
def test_ten_questions_are_learned_by_heart_four_of_them_without_answer(tiny_tokenizer: Any, tmp_path: Any) -> None:
    dataset = ten_questions()
    assert Counter(len(question.answers) for question in dataset.questions) == {1: 6, 0: 4}
    settings = ReadingSettings(max_length=36, stride=8, max_query_pieces=12, unanswerable=True)
    pairs = question_pairs(dataset, tiny_tokenizer)
    examples = WindowExamples.of_dataset(dataset, pairs, tiny_tokenizer, settings)
    assert len(examples) > len(dataset.questions)  # the long context is cut
    sizes: Any = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    config = EncoderConfig(vocab_size=tiny_tokenizer.vocab_size, **sizes)
    model = ReadingModel(config, torch.Generator().manual_seed(0)).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3)
    batches = Batches(examples, batch_size=8, seed=0)
    for step in range(40 * batches.steps_per_epoch):
        (batch,) = batches(step)
        optimizer.zero_grad()
        reading_loss(model, batch)["loss"].backward()
        optimizer.step()

    threshold = choose_threshold(dataset, Reader(model, tiny_tokenizer, settings).search(pairs), KORQUAD)
    assert threshold.score == 1.0
    settings = settings.model_copy(update={"threshold": threshold.value})
    save_model(tmp_path / "model", model, tiny_tokenizer, task=settings.model_dump())
    assert read_config(tmp_path / "model")["task"]["threshold"] == threshold.value

    reader = Reader.load(tmp_path / "model", "cpu")
    assert reader.settings == settings
    scores = score_answers(dataset, pairs, reader.n_best(dataset), KORQUAD)
    assert scores["exact_match"] == scores["has_answer"]["exact_match"] == scores["no_answer"]["exact_match"] == 100.0
    assert reader.predict(dataset) == {question: answer for _, asked in PASSAGES for question, answer in asked}
    lake = PASSAGES[1][0]
    answered, unanswered = reader.answer([lake, lake], ["한강의 예전 이름은?", "한강의 깊이는?"])
    assert (answered["answer"], lake[slice(*answered["span"])]) == ("아리수", "아리수")
    assert answered["no_answer_score"] <= threshold.value < unanswered["no_answer_score"]
    assert (unanswered["answer"], unanswered["span"]) == ("", (0, 0))
    assert 0 < unanswered["score"] <= 1
