import unicodedata

import numpy as np
import pytest
import torch

from korbert.errors import ModelError, SettingsError
from korbert.model import Model
from korbert.modeling import QuestionAnsweringModel
from korbert.tasks import korquad
from korbert.tasks.files import GoldAnswer
from korbert.tasks.korquad.metrics import exact_match
from korbert.tasks.passages import encode_passages, span_of_pieces
from korbert.tasks.question_answering.answers import Answer, right_answers
from korbert.tasks.question_answering.window_settings import WindowSettings
from korbert.tasks.question_answering.windows import cut_windows
from tests.korbert.tasks.answering import Scripted, letters, passage, reading, search, small_network
from tests.korbert.tiny import tiny_config

SMALL = reading(max_length=16, stride=3, max_query_pieces=4)
CONTEXT = "세종은 1443년에 한글을 만들었다."


def read(context, starts, ends, **settings):
    kind = reading(**settings)
    return kind.best_answers(*search(Scripted(starts, ends), kind, [(letters("언제였나", 50), context)]))


def test_the_answer_is_cut_from_the_text_as_given_and_scores_are_probabilities_that_fall():
    context = letters("🙂세종은\u3000 1443년에 한글을")
    place = context.ids[context.spans[:, 0].tolist().index(context.text.index("1443"))]
    (best, *_) = read(context, {place: 9.0}, {place + 4: 9.0})
    assert best.answer == context.text[best.start : best.end] == "1443년"
    found = read(letters("가나다라"), {101: 2.0}, {102: 1.0}, n_best=5)
    assert [found[0].answer, len(found)] == ["나다", 5]
    total_start, total_end = np.exp(2.0) + 4, np.exp(1.0) + 4  # three other pieces and [CLS]
    assert found[0].score == pytest.approx(np.exp(3.0) / total_start / total_end)
    scores = [candidate.score for candidate in found]
    assert scores == sorted(scores, reverse=True)


def test_ties_go_to_the_earlier_then_to_the_shorter_span():
    found = read(letters("가나다"), {}, {}, n_best=20)
    assert [candidate.answer for candidate in found] == ["가", "가나", "가나다", "나", "나다", "다"]
    context = letters("가나다라마바사아자차카타파하거")  # two full windows, so that all scores are the same
    assert len(cut_windows(letters("언제였나"), context, SMALL, special=3)) == 2
    found = read(context, {}, {}, **SMALL.model_dump(exclude={"metrics"}) | {"n_best": 3, "max_answer_chars": 1})
    assert [candidate.start for candidate in found] == [0, 1, 2]
    # One entry a text, at its best place in any window.
    found = read(letters("가나가나"), {102: 3.0}, {103: 3.0}, n_best=20)
    texts = [candidate.answer for candidate in found]
    assert len(texts) == len(set(texts))
    assert (found[0].answer, found[0].start, found[0].end) == ("가나", 2, 4)
    context = letters("가" * 200 + "정답" + "나" * 200)
    found = read(context, {300: 20.0}, {301: 20.0}, max_length=32, stride=8, max_query_pieces=8)
    assert (found[0].answer, found[0].start) == ("정답", 200)


def test_which_spans_are_answers():
    found = read(letters("가나 다라"), {100: 9.0}, {103: 9.0}, max_answer_chars=3, n_best=20)
    assert max(candidate.end - candidate.start for candidate in found) == 3
    assert read(passage("ㅋ" * 40, [(0, 40)]), {}, {}, max_answer_chars=5)[0].answer == "ㅋ" * 40
    context = passage("의사다", [(0, 2), (2, 2), (2, 3)])  # 의사 이 다
    found = read(context, {101: 9.0}, {101: 9.0}, n_best=20)
    assert all(candidate.answer for candidate in found)
    assert found[0].answer in ("의사", "다")
    with pytest.raises(ModelError, match="scores are not finite: train it again"):
        read(letters("가나"), {100: float("nan")}, {})


def test_answers_do_not_depend_on_the_batch():
    network = small_network()
    pairs = [(letters("언제", 150), letters("가나다라마바사아자차"[:n] * 3, 300)) for n in (1, 5, 10, 3)]
    together = map(SMALL.best_answers, search(network, SMALL, pairs))
    for pair, many in zip(pairs, together, strict=True):
        (one,) = map(SMALL.best_answers, search(network, SMALL, [pair]))
        assert one[0].answer == many[0].answer
        assert [answer.score for answer in one] == pytest.approx([answer.score for answer in many], rel=1e-3)


@pytest.fixture(scope="module")
def reader(tiny_tokenizer, tmp_path_factory):
    path = tmp_path_factory.mktemp("reading") / "model"
    model = QuestionAnsweringModel(tiny_config(vocab_size=tiny_tokenizer.vocab_size), torch.Generator().manual_seed(0))
    Model(model.eval(), tiny_tokenizer, reading(max_length=48, stride=8, max_query_pieces=16)).save(path)
    return Model.load(path, "cpu")


def test_answers_to_one_question_or_many_are_spans_of_the_context(reader):
    questions = ["한글은 언제 만들어졌나?", "누가?"]
    answers = reader.answer(questions, [CONTEXT, CONTEXT])
    for answer, question in zip(answers, questions, strict=True):
        assert CONTEXT[answer.start : answer.end] == answer.answer != ""
        assert 0 < answer.score < 1
        alone = reader.answer(question, CONTEXT)
        assert (answer.start, answer.end, answer.score) == (alone.start, alone.end, pytest.approx(alone.score))
    assert reader.answer([], []) == []
    assert reader.answer("언제?", " ") == Answer("", 0, 0, 0.0)


def test_other_arguments_are_refused(reader):
    for question, context, said in (
        ("언제?", None, "context is None: give a string, or a list of strings"),
        (3, CONTEXT, "question is int 3"),
        (["언제?"], CONTEXT, "question is 1 and context one string: give two strings, or lists of one length"),
        (["언제?", "누가?"], [CONTEXT], "question is 2 and context 1: give two strings"),
        (["언제?", "누가?"], [CONTEXT, None], r"context\[1\] is None: give only strings"),
    ):
        with pytest.raises(SettingsError, match=said):
            reader.answer(question, context)


def test_gold_spans_recover_the_answers(tiny_tokenizer, sample):
    rows = korquad.read(sample / "korquad" / "train.json")
    sides = ([row[role] for row in rows] for role in ("question", "context"))
    right, passages = 0, (encode_passages(tiny_tokenizer, texts) for texts in sides)
    for row, asked, context in zip(rows, *passages, strict=True):
        (answer, *_) = right_answers(row)
        windows = cut_windows(asked, context, WindowSettings(), answer=answer.span, special=3)
        first, last = next(window.gold for window in windows if window.gold)
        start, end = span_of_pieces(context.spans, first, last)
        assert answer.text in context.text[start:end]
        right += exact_match(context.text[start:end], [answer.text])
    assert right >= 0.97 * len(rows)


TWICE = "세종은 1443년에 한글을 만들었다. 세종은 왕이다."


def row(*answers, **changes):
    return {"id": None, "context": TWICE, "question": "누구?", "answers": list(answers)} | changes


def test_places_of_answers():
    """Also where answer and context are in other normal forms."""
    both = [GoldAnswer("한글", 11), GoldAnswer("1443년", 4)]
    assert right_answers(row(*both)) == both
    assert right_answers(row(GoldAnswer(" 1443년 ", None))) == both[1:]
    assert right_answers(row(GoldAnswer("세종", None))) == [GoldAnswer("세종", 0)]  # the first of two
    nfd = {text: unicodedata.normalize("NFD", text) for text in (TWICE, "한글")}
    place = nfd[TWICE].index(nfd["한글"])
    for given in (GoldAnswer("한글", None), GoldAnswer("한글", place), GoldAnswer(nfd["한글"], None)):
        assert right_answers(row(given, context=nfd[TWICE])) == [GoldAnswer(nfd["한글"], place)]
    assert right_answers(row(GoldAnswer(nfd["한글"], 11))) == [GoldAnswer("한글", 11)]


def test_questions_without_answer():
    empty = [row(GoldAnswer("", 0)), row(GoldAnswer(" ", None), impossible=None), row(impossible=True)]
    as_in_klue_mrc = row(GoldAnswer("한글", 11), impossible=True)
    for without in (row(), row(answers=None), *empty, as_in_klue_mrc):
        assert right_answers(without) == []
    assert right_answers(row(GoldAnswer("한글", 11), impossible=False)) == [GoldAnswer("한글", 11)]


def test_answers_that_are_not_there():
    for wrong, why in (
        (row(GoldAnswer("훈민정음", None)), "^the context has no '훈민정음'$"),
        (
            row(GoldAnswer("한글", 11), GoldAnswer("1443년", 5)),
            "^the context has '443년에' at 5, the answer is '1443년'$",
        ),
        (row(GoldAnswer("한글", 999)), "^the context has '' at 999, the answer is '한글'$"),
        (row(impossible=False), "the question has no answer, but is not marked as impossible"),
    ):
        with pytest.raises(ValueError, match=why):
            right_answers(wrong)
