import pytest

from korbert.errors import CorpusError
from korbert.tasks.baselines.sentences import nearest_sentences, sentences

CONTEXT = "세종은 1.5배 큰 집에 살았다. 한글을 만들었다!\n 끝  "


def test_sentences():
    spans = sentences(CONTEXT)
    assert [CONTEXT[start:end] for start, end in spans] == ["세종은 1.5배 큰 집에 살았다.", "한글을 만들었다!", "끝"]
    assert sentences(" \n ") == []
    assert sentences("?") == [(0, 1)]


def test_the_nearest_one():
    found = nearest_sentences([CONTEXT], [("누가 한글을 만들었나?", CONTEXT), ("quux", CONTEXT), ("한글", " ")])
    assert [CONTEXT[start:end] for start, end, _ in found] == ["한글을 만들었다!", "세종은 1.5배 큰 집에 살았다.", ""]
    cosines = [cosine for *_, cosine in found]
    assert 0 < cosines[0] < 1
    assert cosines[1:] == [0, 0]
    assert nearest_sentences([CONTEXT], [("한글을 만들었다!", CONTEXT)])[0][2] == pytest.approx(1)


def test_texts_without_characters_are_refused():
    with pytest.raises(CorpusError, match="no characters"):
        nearest_sentences([" "], [])
