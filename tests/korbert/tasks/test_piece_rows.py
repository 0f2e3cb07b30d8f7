"""Rows of pieces: those that are cut, and those of foreign tokenizers, with their own special tokens."""

from collections import Counter

import numpy as np
import pytest

from korbert.modeling.adapters.transformers_config import CLASSES
from korbert.tasks.kinds.texts import Groups, examples_of
from korbert.tasks.passages import encode_passages
from korbert.tasks.question_answering.window_settings import WindowSettings
from korbert.tasks.question_answering.windows import cut_windows
from korbert.tasks.token_classification.examples import make_examples
from korbert.tokenization import TransformersTokenizer
from tests.korbert.tasks.answering import Scripted, collate, reading, search

QUESTION, CONTEXT = "친구를 만난다", "대한민국의 수도는 서울이다. 인구는 약 940만 명이다."


def encoded_by(folder):
    """A tokenizer, and the question and the context as it makes them."""
    tokenizer = TransformersTokenizer.of_folder(folder)
    return tokenizer, *encode_passages(tokenizer, [QUESTION, CONTEXT])


@pytest.mark.parametrize("model_type", CLASSES)
def test_rows_are_those_of_their_own_tokenizer(foreign, model_type):
    tokenizer, question, context = encoded_by(foreign(model_type))
    alone, pair = (tokenizer.theirs(*texts)["input_ids"] for texts in ((CONTEXT,), (QUESTION, CONTEXT)))

    for passages, row in (([context], alone), ([question, context], pair)):
        assert examples_of([passages], np.zeros(1), tokenizer, 64).input_ids.tolist() == row
    tagged = make_examples([context], [np.zeros(len(context.ids), int)], tokenizer, max_length=64, stride=8)
    assert tagged.input_ids.tolist() == alone

    settings = WindowSettings(max_length=64, stride=8, max_query_pieces=32)
    span = CONTEXT.index("서울"), CONTEXT.index("서울") + 2
    (window,) = cut_windows(question, context, settings, answer=span, special=tokenizer.frame.special)
    batch = collate([window], tokenizer, settings)
    assert (batch["input_ids"][0].tolist(), batch["lengths"]) == (pair, (len(pair),))
    begin = len(pair) - 1 - len(context.ids)
    assert batch["choices"][0].nonzero().flatten().tolist() == [0, *range(begin, len(pair) - 1)]
    assert batch["start_positions"].item() == begin + window.gold[0]
    assert batch["token_type_ids"][0].tolist() == [0] * begin + [1] * (len(pair) - begin)


@pytest.mark.parametrize("model_type", CLASSES)
def test_the_answer_is_where_the_scores_point(foreign, model_type):
    tokenizer, question, context = encoded_by(foreign(model_type))
    count = Counter([*question.ids, *context.ids])
    once = [count[id] == 1 for id in context.ids]
    first = max(place for place in range(len(once) - 1) if once[place] and once[place + 1])
    kind = reading(max_length=12, stride=3, max_query_pieces=4)
    model = Scripted({int(context.ids[first]): 9.0}, {int(context.ids[first + 1]): 9.0})
    windows = cut_windows(question, context, kind, special=tokenizer.frame.special)
    assert len(windows) > 1
    assert max(collate(windows, tokenizer, kind)["lengths"]) == 12
    (found,) = search(model, kind, [(question, context)], tokenizer)
    expected = context.spans[first][0], context.spans[first + 1][1]
    assert (found.candidates[0].start, found.candidates[0].end) == expected


SHORT, LONG = "좋다", "아주 좋은 영화를 어제 친구와 같이 보았다"


@pytest.mark.parametrize(("rows", "cut"), [
    ([[SHORT], [LONG], [LONG]], 2),
    ([[SHORT, SHORT], [SHORT, LONG], [LONG, LONG]], 2),
])  # fmt: skip
def test_rows_that_lose_pieces_are_counted(tiny_tokenizer, rows, cut):
    passages = [encode_passages(tiny_tokenizer, texts) for texts in rows]
    length = 7 + len(encode_passages(tiny_tokenizer, [SHORT])[0].ids) * 2
    assert examples_of(passages, np.zeros(len(rows)), tiny_tokenizer, length).cut == cut
    groups = Groups.of([passages], np.zeros(1), tiny_tokenizer, length)
    assert groups.cut == cut
