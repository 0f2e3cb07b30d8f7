import json
import random

import numpy as np
import pytest

from korbert.corpus.cleaning.contamination import load_index, make_index
from korbert.corpus.cleaning.features import batches
from korbert.corpus.cleaning.personal import mask
from korbert.corpus.corpus_settings import CleanSettings, PersonalSettings
from korbert.errors import CorpusError

LONG = "조선 후기에는 상업이 발달하면서 장시가 전국으로 퍼졌고 보부상은 장시를 돌며 물건을 팔았다."
SHORT = "배우들의 연기가 정말로 훌륭했던 영화였습니다"
NO_HASHES = np.empty(0, np.uint64)


def settings(*names, **changed):
    sets = [{"name": name, "path": f"{name}.jsonl"} for name in names]
    return CleanSettings(sources=[{"name": "mine", "path": "x"}], evaluation=sets, decontamination=changed)


@pytest.fixture
def index(tmp_path):
    """Makes the index of evaluation sets, name -> texts."""

    def make(sets, **changed):
        files = {}
        for name, texts in sets.items():
            files[name] = [tmp_path / f"{name}.jsonl"]
            lines = (json.dumps({"text": text}, ensure_ascii=False) for text in texts)
            files[name][0].write_text("\n".join(lines), "utf-8")
        return make_index(settings(*sets, **changed), files)

    return make


def find(index, *texts):
    return [leak for _, features in batches(texts) for leak in index.find(features)]


def names(index, *texts):
    return [None if leak is None else leak.names for leak in find(index, *texts)]


TERMS = LONG.rstrip(".").split()
CAPITALS = "The Best 영화 가운데 하나인 이 작품은 정말로 좋았다고 생각한다"
SETS = {"one": [LONG], "two": [SHORT, LONG], "three": [SHORT]}


@pytest.mark.parametrize(
    ("sets", "text", "found"),
    [
        ({"test": [LONG]}, "앞의 말 " + " ".join(TERMS[2:10]) + " 뒤의 말", ("test",)),  # eight terms
        ({"test": [LONG]}, " ".join(TERMS[2:9]), None),
        ({"test": [LONG]}, " ".join(TERMS[:7]) + " 다른 " + " ".join(TERMS[7:]), None),
        ({"test": [CAPITALS]}, "«the best» 영화 가운데, 하나인\n이 작품은... 정말로 좋았다고!! 생각한다?", ("test",)),
        ({"test": [SHORT]}, f"어제 본 {SHORT}. 추천!", ("test",)),  # a short text, whole
        ({"test": [SHORT]}, "배우들의 연기가 정말로 훌륭했던", None),
        ({"test": [SHORT]}, SHORT, ("test",)),
        (SETS, LONG, ("one", "two")),
        (SETS, SHORT, ("two", "three")),
        (SETS, LONG + " " + SHORT, ("one", "two", "three")),
    ],
)
def test_what_is_text_of_an_evaluation_set(index, sets, text, found):
    assert names(index(sets), text) == [found]


def test_stock_phrases_are_not_looked_for(index):
    kept = ["재밌어요", "정말 재미있게 잘 봤습니다", "아 아 아 아 아", "진짜 진짜 진짜 진짜 진짜 진짜 진짜 진짜", LONG]
    sets = index({"test": kept})
    assert names(sets, *kept) == [None, None, None, None, ("test",)]
    assert sets.text_counts(NO_HASHES) == {"test": {"texts": 5, "looked_for": 1, "found": 0}}


def test_the_contaminated_lines_are_numbered(index):
    (leak,) = find(index({"test": [LONG, SHORT]}), f"제목\n\n{LONG[:30]}\n{LONG[30:]}\n다른 이야기\n{SHORT}")
    assert leak.lines == (2, 3, 5)


def test_found_texts_are_counted_by_set(index):
    others = [f"{number}번째로 적어 둔 {SHORT} 그리고 더 이어지는 말들" for number in range(20)]  # they share an 8-gram
    sets = index({"a": [LONG, *others], "b": others[:3]})
    leaks = [leak.hashes for leak in find(sets, LONG, others[2], "아무 것도 아닌 글") if leak]
    counts = sets.text_counts(np.unique(np.concatenate(leaks)))
    assert {name: numbers["found"] for name, numbers in counts.items()} == {"a": 1 + len(others), "b": 3}
    assert [numbers["found"] for numbers in sets.text_counts(NO_HASHES).values()] == [0, 0]


def test_a_saved_index_finds_the_same(index, tmp_path):
    sets = index({"a": [LONG], "b": [SHORT]})
    sets.save(tmp_path / "index.npz", tmp_path)
    again = load_index(tmp_path / "index.npz")
    assert names(again, LONG, SHORT, "없는 글") == names(sets, LONG, SHORT, "없는 글") == [("a",), ("b",), None]
    assert again.text_counts(NO_HASHES) == sets.text_counts(NO_HASHES)


def test_contamination_equals_a_plain_search(index):
    """Random documents of few distinct words, so that some 8-grams recur and others do not."""
    generator = random.Random(3)
    words = ["가나다", "라마바", "사아자", "차카타", "파하거", "너더러"]
    texts = [" ".join(generator.choices(words, k=generator.randint(9, 14))) for _ in range(400)]
    documents = [" ".join(generator.choices(words, k=60)) for _ in range(400)]
    sets = index({"test": texts})
    ngrams = {tuple(text.split()[i : i + 8]) for text in texts for i in range(len(text.split()) - 7)}
    distinctive = {ngram for ngram in ngrams if 2 * len(set(ngram)) > 8}
    expected = [any(tuple(document.split()[i : i + 8]) in distinctive for i in range(53)) for document in documents]
    assert 0 < sum(expected) < len(expected)
    assert [leak is not None for leak in find(sets, *documents)] == expected


def test_sets_without_usable_text_are_errors(index, tmp_path):
    with pytest.raises(CorpusError, match="evaluation set 'test': no text is long enough"):
        index({"test": ["재밌어요", "최고"]})
    with pytest.raises(ValueError, match="min_terms 9 is more than terms 8"):
        settings("test", min_terms=9)
    path = tmp_path / "test.jsonl"
    for content, said in (
        (json.dumps({"text": LONG}) + '\n{"text": null}\n{"text":\n',
         r"'test': 1 of 3 records cannot be read, first test.jsonl line 3: .* repair"),
        ('{"document": "글"}\n', r"evaluation set 'test': no text in its files \(.*'text' is missing"),
    ):  # fmt: skip
        path.write_text(content, "utf-8")
        with pytest.raises(CorpusError, match=said):
            make_index(settings("test"), {"test": [path]})


def test_texts_of_sets_are_masked_as_the_corpus_is(index):
    text = "예약 문의는 010-1234-5678 번으로 지금 바로 연락 주세요"
    masked, counts = mask([text], PersonalSettings())
    assert counts == {"phone": 1}
    assert names(index({"test": [text]}), *masked) == [("test",)]
