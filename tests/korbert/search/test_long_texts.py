"""Texts longer than the encoder reads: they are found by their passages, as the formulas say."""

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from korbert.errors import ArtifactError
from korbert.search import Index, check, database
from korbert.search.cutting import cut
from korbert.search.words import read_passages
from korbert.tasks.retrieval import bm25, fuse_scores
from korbert.tokenization import EOJEOL, TransformersTokenizer
from tests.foreign.foreign_folders import foreign_tokenizer

SENTENCES = [
    "신용 대출을 신청하고 싶어요.",
    "카드를 잃어버렸어요!",
    "영화가 정말 재미있다.",
    "내일\n비가 온다.",
    "배우의 연기가 좋았다",
]
QUERIES = ["대출 신청", "비 오는 영화", "카드", "배우의 연기", ""]
LEVELS = st.lists(st.integers(0, 2), min_size=1, max_size=60)


def made_texts(count, seed=0):
    rng = random.Random(seed)
    return {f"t{number}": " ".join(rng.choices(SENTENCES, k=rng.choice([0, 1, 5, 12, 40]))) for number in range(count)}


@pytest.fixture
def made(encoder, tmp_path):
    index = Index.create(tmp_path / "index", encoder)
    index.add((id, text, {"even": int(id[1:]) % 2 == 0}) for id, text in made_texts(24).items())
    return index


def score_all(index, texts, way, step):
    """For each query the score of each passage of each step-th text, by plain arithmetic over all: {(id, passage):
    score}."""
    model = index.model
    read = list(read_passages(model.tokenizer, list(texts.values()), model.max_length))
    owner = np.repeat(np.arange(len(texts)), [len(own.passages) for own in read])
    ids = [list(texts)[text] for text in owner]
    places = [place for own in read for place in own.passages]
    shown = [texts[id][begin:end] for id, (begin, end, _, _) in zip(ids, places, strict=True)]
    terms = [own.terms[first:last] for own in read for _, _, first, last in own.passages]
    whole = [[term for row in np.flatnonzero(owner == text) for term in terms[row]] for text in range(len(texts))]
    asked = [own.terms for own in read_passages(model.tokenizer, QUERIES, model.max_length)]
    words = (bm25(terms, asked)(slice(None)) + bm25(whole, asked)(slice(None))[:, owner]) / 2
    vectors = model.pool_encoded([encoding for own in read for encoding in own.encodings], index.settings)
    cosines = model.embed(QUERIES, normalize=True) @ vectors.T
    chance = 0.3 * cosines.std(axis=1, keepdims=True) * np.log(np.bincount(owner)[owner])
    among = np.flatnonzero(owner % step == 0)
    keys = [(ids[row], shown[row]) for row in among]
    words, cosines = words[:, among], (cosines - chance)[:, among]
    for row in {"words": words, "vectors": cosines, "both": fuse_scores(words, cosines, 2)}[way].tolist():
        yield dict(sorted(zip(keys, row, strict=True), key=lambda one: one[1]))


@pytest.mark.parametrize("way", ["words", "vectors", "both"])
@pytest.mark.parametrize(("where", "step"), [(None, 1), ("even", 2)])
def test_hits_are_those_of_the_formulas_over_all_passages(made, way, where, step):
    texts = made_texts(24)
    for top in (3, 24):
        for hits, scores in zip(made.search(QUERIES, top, way, where), score_all(made, texts, way, step), strict=True):
            best = {id: score for (id, _), score in scores.items()}
            ranked = sorted((score for score in best.values() if way != "words" or score > 0), reverse=True)
            assert [hit.score for hit in hits] == pytest.approx(ranked[:top], rel=1e-4)
            for hit in hits:
                assert (hit.text, hit.passage) == (texts[hit.id], texts[hit.id][hit.begin : hit.end])
                assert hit.score == pytest.approx(scores[hit.id, hit.passage], rel=1e-4)


@given(boundaries=LEVELS, sentences=st.sets(st.integers(1, 59)), size=st.integers(1, 12))
def test_passages_cover_all_pieces_with_at_most_a_sentence_twice(boundaries, sentences, size):
    passages = cut([at for at in sorted(sentences) if at < len(boundaries)], boundaries, EOJEOL, size)
    assert {at for begin, end in passages for at in range(begin, end)} == set(range(len(boundaries)))
    assert all(0 < end - begin <= size for begin, end in passages)
    for (begin, end), (after, last) in pairwise(passages):
        assert begin < after <= end < last
        assert end - after <= size // 2
        assert not any(after < at < end for at in sentences)


@pytest.mark.parametrize("text", ["가나다라마" * 4_000, "학교에 가서 책을 읽고 " * 3_000, "ㅋ" * 5_000])
def test_a_text_without_ends_of_sentences_is_cut(encoder, text):
    (read,) = read_passages(encoder.tokenizer, [text], encoder.max_length)
    assert max(map(len, read.encodings)) <= encoder.max_length
    begins, ends, firsts, lasts = zip(*read.passages, strict=True)
    assert (begins[0], firsts[0], ends[-1], lasts[-1]) == (0, 0, len(text.rstrip()), len(read.terms))
    assert not any(text[end:begin].strip() for end, begin in zip(ends[:-1], begins[1:], strict=True))


def test_a_sentence_does_not_begin_where_a_line_is_broken(encoder):
    """Unless the line is blank, or the one before ends a sentence."""
    for between, begins_one in (("\n", False), ("\n\n", True), (".\n", True)):
        text = f"{'학교에 가서 ' * 4}책을{between}{'영화를 보고 ' * 4}책을 읽었다."
        (read,) = read_passages(encoder.tokenizer, [text], encoder.max_length)
        assert (text.index("영화") in [begin for begin, *_ in read.passages]) == begins_one


def test_passages_of_a_tokenizer_of_transformers_begin_with_sentences(tmp_path):
    foreign_tokenizer("wordpiece").save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    text = " ".join(SENTENCES * 4)
    (read,) = read_passages(TransformersTokenizer.of_folder(tmp_path), [text], 32)
    firsts = [(text[begin : begin + 2], read.terms[first][:2]) for begin, _, first, _ in read.passages]
    assert len(firsts) > 2
    assert set(firsts) <= {(own[:2], own[:2]) for own in SENTENCES}
    assert {text[end - 1] for _, end, *_ in read.passages} <= set(".!다")


def test_a_document_of_thousands_of_passages_grows_and_shrinks(encoder, tmp_path):
    index = Index.create(tmp_path / "index", encoder)
    short = [(f"s{number}", sentence) for number, sentence in enumerate(SENTENCES)]
    index.add(short)
    before = index.search(QUERIES, way="both")
    long = " ".join(f"{number}번 학교는 문을 닫았다. 학생이 {number}명이다." for number in range(4_000))
    assert index.add([("long", long)]).new == 1
    (hit,) = index.search("2345번 학교", 1, "words")[0]
    assert hit.text == long
    assert "2345번 학교" in hit.passage
    assert len(index.search("학교", 9, "vectors")[0]) == len(short) + 1
    assert index.add([("long", "눈")]).replaced == 1
    assert index.search("눈", 1, "words")[0][0].passage == "눈"
    assert index.remove(["long"]) == 1
    assert index.search(QUERIES, way="both") == before  # to the bit, though numbers of passages are others
    assert check(index.folder) == len(short)


def test_a_damaged_table_of_passages_is_found(made, encoder):
    with database.writing(made.folder) as file:
        file.execute("UPDATE passages SET text = 3 WHERE number = (SELECT max(number) FROM passages WHERE text = 2)")
    with pytest.raises(ArtifactError, match="the table of passages is not as it was written"):
        Index.load(made.folder, encoder).search("대출")
