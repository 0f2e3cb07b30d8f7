"""An index: the right texts in the right order, whatever was added, removed or read in between."""

import json
import math
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
import zlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import get_args

import numpy as np
import pandas as pd
import polars
import pytest
from datasets import Dataset
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import dice
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.neighbors import NearestNeighbors

from korbert.errors import ArtifactError, CorpusError, SettingsError
from korbert.model import Model
from korbert.modeling import EmbeddingModel, PretrainingModel, save_model
from korbert.search import Added, Index, database, index, nearest, words
from korbert.search.hits import letters_found, shared_letters
from korbert.search.words import read_texts
from korbert.tasks.retrieval import fuse_scores
from korbert.vectors.names import SearchWay

TEXTS = ["대출을 신청하고 싶어요", "신용 대출 신청은 어떻게 하나요?", "카드를 잃어버렸어요", "영화가 정말 재미있다"]
TEXTS += ["배우의 연기가 좋았다", "내일 비가 온다", "", "..."]
WAYS = get_args(SearchWay)
PAIRS = [(f"t{number}", text) for number, text in enumerate(TEXTS)]
QUERIES = ["대출 신청", "비 오는 영화", "카드", ""]


@pytest.fixture
def filled(encoder, tmp_path):
    made = Index.create(tmp_path / "index", encoder)
    made.add(PAIRS)
    return made


def shown(found):
    return [[(hit.id, round(hit.score, 4)) for hit in hits] for hits in found]


def test_by_vectors_as_scikit_learn_finds_them(filled, encoder):
    vectors = encoder.embed(TEXTS)
    far, rows = NearestNeighbors(n_neighbors=3, metric="cosine").fit(vectors).kneighbors(encoder.embed(QUERIES))
    for hits, distances, numbers in zip(filled.search(QUERIES, 3, "vectors"), far, rows, strict=True):
        assert [hit.id for hit in hits] == [f"t{number}" for number in numbers]
        assert [hit.text for hit in hits] == [TEXTS[number] for number in numbers]
        assert [hit.score for hit in hits] == pytest.approx((1 - distances).tolist(), abs=1e-5)
        ranks = [(hit.rank_vectors, hit.rank_words, hit.score_words) for hit in hits]
        assert ranks == [(rank, None, None) for rank in (1, 2, 3)]


@pytest.mark.parametrize("had_a_long_text", [False, True])
def test_texts_of_one_passage_score_as_the_formulas_say(filled, encoder, had_a_long_text):
    """To the bit: BM25 by hand (Robertson and Zaragoza 2009, equation 3.15, with the idf of Lucene), and both ways."""
    if had_a_long_text:  # numbers of passages and of texts are no longer the same
        filled.add([("long", "카드를 잃어버렸어요. " * 99)])
        filled.remove(["long", "t0"])
        filled.add(PAIRS[:1])
    ids, texts = zip(*filled, strict=True)
    terms = [own for _, own in read_texts(encoder.tokenizer, texts, 32)]
    lengths = np.array([len(own) for own in terms], np.uint32)
    with database.reading(filled.folder) as file:
        blobs = [blob for (blob,) in file.execute("SELECT vector FROM vectors ORDER BY number")]
    vectors = np.frombuffer(b"".join(blobs), np.float32).reshape(len(texts), -1).astype(np.float64)
    for query in QUERIES:
        ((encoding, asked),) = read_texts(encoder.tokenizer, [query], 32)
        words = np.zeros(len(texts), np.float32)
        for term, times in Counter(asked).items():
            counts = np.array([own.count(term) for own in terms], np.float32)
            having = np.count_nonzero(counts)
            idf = np.log1p((len(texts) - having + 0.5) / (having + 0.5))
            words += times * idf * counts / (counts + 1.2 * (1 - 0.75 + 0.75 * lengths / (lengths.sum() / len(texts))))
        cosines = vectors @ encoder.pool_encoded([encoding], filled.settings)[0].astype(np.float64)
        for way, scores in (("words", words), ("both", fuse_scores(words, cosines.astype(np.float32), 2))):
            expected = [(ids[row], scores[row]) for row in np.argsort(-scores, kind="stable")]
            found = [(hit.id, hit.score) for hit in filled.search(query, 9, way)[0]]
            assert found == [one for one in expected if way == "both" or one[1] > 0]


def test_both_ways_are_fused_by_their_scores(filled):
    by_vectors, by_words = (filled.search(QUERIES, 100, way) for way in ("vectors", "words"))
    for query, hits, *rankings in zip(QUERIES, filled.search(QUERIES, way="both"), by_vectors, by_words, strict=True):
        ranks = [{hit.id: rank for rank, hit in enumerate(ranking, 1)} for ranking in rankings]
        cosines, bm25 = ({hit.id: hit.score for hit in ranking} for ranking in rankings)
        best = max(bm25.values(), default=1)
        for hit in hits:
            assert (hit.rank_vectors, hit.rank_words) == tuple(own.get(hit.id) for own in ranks)
            assert (hit.score_vectors, hit.score_words) == (cosines.get(hit.id), bm25.get(hit.id))
            assert hit.score == pytest.approx(bm25.get(hit.id, 0) / best + 2 * cosines[hit.id], rel=1e-5)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        assert {hit.id for hit in hits} == set().union(*ranks), query


NUMBERS = st.sets(st.integers(0, len(TEXTS) - 1), min_size=1, max_size=4)
MIXED = [
    *PAIRS[:6],
    ("long", "대출을 신청하고 싶어요. 영화를 보았다. " * 9),
    ("longer", "카드와 내일의 비. 배우가 온다. " * 20),
]


@given(steps=st.lists(st.tuples(st.booleans(), NUMBERS), max_size=6), bucket=st.integers(1, 5))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_changed_index_finds_what_a_new_one_of_the_same_texts_finds(encoder, tmp_path_factory, steps, bucket):
    there = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "TEXTS_AT_ONCE", 2)
        patch.setattr(words, "_BUCKET", bucket)
        patch.setattr(nearest, "_ROWS_AT_ONCE", 3)
        changed = Index.create(tmp_path_factory.mktemp("steps") / "index", encoder)
        reader = Index.load(changed.folder, encoder)
        for is_adding, numbers in steps:
            pairs = [MIXED[number] for number in sorted(numbers)]
            if is_adding:
                added = changed.add(pairs)
                assert added.new == len(pairs) - sum(id in there for id, _ in pairs)
                assert (added.replaced, added.unchanged) == (0, len(pairs) - added.new)
                there |= dict(pairs)
            else:
                assert changed.remove([id for id, _ in pairs]) == sum(id in there for id, _ in pairs)
                there = {id: text for id, text in there.items() if id not in dict(pairs)}
            reader.search(QUERIES[0], way="vectors")  # keeps what it has read
        assert list(changed) == list(there.items())
        assert len(changed) == len(there)
        once = Index.create(tmp_path_factory.mktemp("once") / "index", encoder)
        once.add(there.items())
        for way in WAYS:
            expected = shown(once.search(QUERIES, 3, way))
            assert shown(changed.search(QUERIES, 3, way)) == shown(reader.search(QUERIES, 3, way)) == expected
        with sqlite3.connect(changed.folder / database.FILE) as file:
            ((entries,),) = file.execute("SELECT coalesce(sum(length(entries)), 0) FROM postings")
            select = "SELECT terms, first, last FROM texts JOIN passages ON passages.text = texts.number"
            terms = [json.loads(zlib.decompress(own))[first:last] for own, first, last in file.execute(select)]
            assert entries == 8 * sum(len(set(own)) for own in terms)
            numbers = [file.execute(f"SELECT number FROM {of} ORDER BY 1").fetchall() for of in ("vectors", "passages")]
            assert numbers[0] == numbers[1]
        file.close()


def test_a_text_with_a_known_id_replaces(filled):
    assert re.fullmatch(r"<Index .*: searched by words, as the model was not trained .*>", repr(filled))
    assert re.fullmatch(r"<Tokenizer of [\d,]+ pieces: \w{12}>", repr(filled.model.tokenizer))
    added = filled.add([("t0", "오늘은 눈이 온다"), ("t1", TEXTS[1]), ("new", "눈")])
    assert added == Added(new=1, replaced=1, unchanged=1)
    assert dict(filled)["t0"] == "오늘은 눈이 온다"
    assert len(filled) == len(TEXTS) + 1
    assert [hit.id for hit in filled.search("눈", way="words")[0]] == ["new", "t0"]
    for pairs, said in (
        ([("x", "가"), ("x", "나")], "id 'x': is given twice: ids must be unique"),
        ([("y", "가\ud800")], "id 'y': has a lone surrogate, which no file can hold"),
        ([(3, "글")], "id 3: id and text have to be strings"),
    ):
        with pytest.raises(CorpusError, match=said):
            filled.add(pairs)


def test_settings_of_the_vectors(encoder, tmp_path):
    """They travel with the index."""
    asked = {"layer": [1, -1], "mix": "concat", "pooling": "max", "size": 4}
    made = Index.create(tmp_path / "index", encoder, **asked)
    made.add(PAIRS)
    vectors = encoder.embed(TEXTS, normalize=True, **asked)
    expected = pytest.approx(np.sort(vectors @ vectors[0])[::-1].tolist(), abs=1e-5)
    for opened in (made, Index.load(tmp_path / "index", encoder)):
        assert [hit.score for hit in opened.search(TEXTS[0], way="vectors")[0]] == expected
    with pytest.raises(ArtifactError, match=r"index: size: 5 here, 4 in the index: leave the option out, or name"):
        Index.create(tmp_path / "index", encoder, **{**asked, "size": 5})


def test_other_models_are_refused(filled, config, encoder, tmp_path):
    other = Model(PretrainingModel(config), encoder.tokenizer)
    save_model(tmp_path / "model", encoder.network, encoder.tokenizer)
    another = "index: is an index of another model: .* give the model that it was"
    no_index = "nowhere: is not an index: make one with `korbert index`"
    for refused, said in (
        (lambda: Index.load(filled.folder, other), another),
        (lambda: Index.create(filled.folder, other), another),
        (lambda: Index.load(tmp_path / "nowhere", encoder), no_index),
        (lambda: Index.create(tmp_path / "model", encoder), "model: exists and is not an index: name a new folder"),
    ):
        with pytest.raises(ArtifactError, match=said):
            refused()
    with pytest.raises(SettingsError, match="way 'all', top 10: use one of both, vectors, words, and at least 1"):
        filled.search("가", way="all")
    assert len(Index.load(filled.folder, tmp_path / "model").search("대출", way="vectors")[0]) == len(TEXTS)
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / ".DS_Store").write_text("x")  # as a file manager leaves it
    assert len(Index.create(tmp_path / "new", encoder)) == 0


def test_an_index_has_the_vectors_of_its_model(encoder, tmp_path):
    save_model(tmp_path / "model", encoder.network, encoder.tokenizer)
    made = Index.create(tmp_path / "index", Model.load(tmp_path / "model", "cpu"))
    made.add(PAIRS)
    assert made.settings.pooling == "mean"
    assert made.search(TEXTS[0], 1, "vectors")[0][0].score == pytest.approx(1, abs=1e-5)
    trained = Model(EmbeddingModel(encoder.network.config, "first"), encoder.tokenizer)
    assert Index.create(tmp_path / "trained", trained).settings.pooling == "first"
    # An index knows its model.
    assert Index.load(tmp_path / "index").search("카드를 잃어버렸어요", 1)[0][0].id == "t2"


def test_a_damaged_file_is_named_and_one_that_was_only_begun_is_completed(filled, encoder, monkeypatch, tmp_path):
    path = filled.folder / database.FILE
    data = path.read_bytes()
    for damaged in (data[: len(data) // 2], b"x" * len(data), data[:100] + bytes(len(data) - 100)):
        path.write_bytes(damaged)
        with pytest.raises(ArtifactError, match=r"index\.sqlite: is damaged .*: make the index again"):
            Index.load(filled.folder, encoder).search(QUERIES)
    path.unlink()
    for begin in (lambda: None, path.touch):  # the latter as a process leaves it that is killed in `create`
        begin()
        with pytest.raises(ArtifactError, match="is not an index"):
            Index.load(filled.folder, encoder)
    assert Index.create(filled.folder, encoder).add(PAIRS).new == len(PAIRS)
    # An index in a folder that is read-only is searched.
    expected = shown(filled.search(QUERIES))
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda path, mode: False)
        assert shown(Index.load(filled.folder, encoder).search(QUERIES)) == expected
    # One of an earlier version is refused.
    (tmp_path / "index.json").write_text("{}")
    for opening in (Index.create, Index.load):
        with pytest.raises(ArtifactError, match=r"earlier version of korbert: .* `korbert index MODEL CORPUS --output"):
            opening(tmp_path, encoder)


def test_numbers_that_become_ids_are_none_of_those_given(encoder, tmp_path):
    made = Index.create(tmp_path, encoder)
    made.add(["가", ("1", "나"), "다"])
    assert dict(made) == {"1": "나", "2": "가", "3": "다"}


def test_an_index_that_was_replaced_is_not_written_to(encoder, tmp_path):
    old = Index.create(tmp_path / "index", encoder)
    shutil.rmtree(tmp_path / "index")
    Index.create(tmp_path / "index", encoder, words_only=True).add(PAIRS)
    for write in (lambda: old.add(["가"]), lambda: old.remove([PAIRS[0][0]])):
        with pytest.raises(ArtifactError, match="another index is there now"):
            write()
    assert len(Index.load(tmp_path / "index", encoder)) == len(PAIRS)


def test_vectors_have_length_1_whatever_is_asked(encoder, tmp_path):
    for _ in range(2):
        assert Index.create(tmp_path, encoder, normalize=False).settings.normalize


@pytest.fixture
def with_fields(encoder, tmp_path):
    made = Index.create(tmp_path / "fields", encoder)
    kinds = enumerate(["대출", "대출", "카드", "영화", "영화", "날씨"])
    fields = [{"kind": kind, "rank": rank, "a b": [rank], "empty": math.nan} for rank, kind in kinds]
    made.add((*pair, own) for pair, own in zip(PAIRS, fields, strict=False))
    made.add([(*PAIRS[6], {"KIND": "큰"}), (*PAIRS[7], {"done": True, 'say "hi"': -1, "order": 1234567890123456789})])
    return made


@pytest.mark.parametrize(
    ("where", "numbers"),
    [
        ("kind = '영화'", {3, 4}),
        ("rank >= 2 AND kind <> '영화'", {2, 5}),
        ("kind IN ('카드', '날씨') OR text = ''", {2, 5, 6}),
        ("\"a b\" = '[1]'", {1}),
        ("kind IS NULL", {6, 7}),
        ("empty IS NULL", set(range(8))),
        ("text LIKE '%대출%'", {0, 1}),
        ("lower(id) = 't3'", {3}),
        ("kind = '영화' AND rank = 0", set()),
        ("NOT (rank < 2 OR kind IN ('영화'))", {2, 5}),
        ("rank NOT IN (0, 1, 2) AND id LIKE 'T%'", {3, 4, 5}),
        ("rank BETWEEN 1 AND 2 or rank = 5.0", {1, 2, 5}),
        ("kind IS NOT NULL and kind NOT LIKE '대%'", {2, 3, 4, 5}),
        ("KIND = '큰' OR kind = 'it''s'", {6}),
        ("coalesce(kind, '없음') = '없음' AND done = true", {7}),
        ('"say ""hi""" = -1', {7}),
        ("kind <> '(' AND kind <> ')'", set(range(6))),
        ("order = 1234567890123456789", {7}),
        ("order = 1234567890123456788 OR order > 9223372036854775808", set()),
    ],
)
def test_a_condition_on_fields(with_fields, where, numbers):
    ids = {f"t{number}" for number in numbers}
    assert {hit.id for hit in with_fields.search("대출", 9, "vectors", where)[0]} == ids
    by_words = {hit.id for hit in with_fields.search(" ".join(TEXTS), 9, "words")[0]}
    assert {hit.id for hit in with_fields.search(" ".join(TEXTS), 9, "words", where)[0]} == by_words & ids


@pytest.mark.parametrize(
    "where",
    [
        *("", "knid = '영화'", "kind = ?", "kind = '영화"),
        "kind = '영화'; DROP TABLE texts",
        "1) UNION SELECT number FROM vectors WHERE (1",
        "1) UNION SELECT number FROM texts WHERE (1",
        "number IN (SELECT number FROM vectors)",
        "EXISTS (SELECT 1 FROM texts, texts AS more, texts AS most)",
        "terms = '[]' OR EXISTS (SELECT value FROM meta)",
        "load_extension('x')",
        "length(randomblob(1000000000)) > 0",
        "1) LIMIT (1",
        "1) OR (1",
        "kind = '영화' -- and so on",
        "Kind = '영화'",
        "(kind = '영화'",
        "kind = '영화')",
        "kind = '영화', 1",
        "(" * 5_000 + "rank = 1" + ")" * 5_000,
        "rank = 1" + " AND rank = 1" * 5_000,
    ],
)
def test_anything_but_a_condition_on_fields_is_refused(with_fields, where):
    said = r"^where .* condition such as .* over the fields id, text, KIND, a b, done, empty, kind"
    with pytest.raises(SettingsError, match=said):
        with_fields.search("대출", where=where)
    assert len(with_fields) == len(TEXTS)


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (["가나", "가나"], [("1", "가나"), ("2", "가나")]),
        ([("a", "가")], [("a", "가")]),
        ([{"id": "x", "text": "가", "kind": 1}, {"text": "나"}], [("x", "가"), ("1", "나")]),
        ([{"id": 3, "문장": "가"}], [("3", "가")]),
        (iter(["가"]), [("1", "가")]),
        (pd.DataFrame({"text": ["가", "나"], "kind": [1, 2]}), [("1", "가"), ("2", "나")]),
        (Dataset.from_dict({"id": ["x"], "sentence": ["가"]}), [("x", "가")]),
        (polars.DataFrame({"문장": ["눈"], "id": [7], "kind": ["날씨"]}), [("7", "눈")]),
    ],
)
def test_texts_are_added_in_the_forms_of_python(encoder, tmp_path, given, stored):
    made = Index.create(tmp_path / "index", encoder)
    made.add(given)
    assert list(made) == stored


def test_strings_get_numbers_that_are_free(encoder, tmp_path):
    made = Index.create(tmp_path / "index", encoder)
    made.add([("2", "가"), ("b", "나")])
    made.add(["다", "라"])
    made.remove(["3"])
    made.add(["마"])
    assert list(made) == [("2", "가"), ("b", "나"), ("1", "다"), ("4", "마")]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("가나", "texts is a str: give strings"),
        (b"x", "texts is a bytes: give strings"),
        ({"a": "가"}, "texts is a dict: give strings"),
        (3, "texts is a int: give strings"),
        (["가", 3], r"texts\[1\]: 3 is a int: give strings"),
        ([("a", "가"), ("b",)], r"texts\[1\]: \('b',\) is a tuple: give strings"),
        ([("a", "가", "나")], r"texts\[0\]: .* is a tuple: give strings"),
        ([{"id": "x", "kind": 1}], r"texts\[0\]: id, kind is without a text: give strings"),
        ([{"text": "가"}, {"text": None}], "id and text have to be strings, not None"),
        ([("a", "가"), ("b", 3)], "id 'b': id and text have to be strings, not 3"),
    ],
)
def test_anything_else_is_refused_before_anything_is_stored(filled, given, said):
    with pytest.raises((CorpusError, SettingsError), match=said):
        filled.add(given)
    assert list(filled) == PAIRS


def test_fields_come_back_and_may_change_alone(with_fields, monkeypatch):
    (hit,) = with_fields.search("카드", 1, "words")[0]
    assert hit.fields == {"kind": "카드", "rank": 2, "a b": [2], "empty": None}
    monkeypatch.setattr(Model, "pool_encoded", lambda *_, **__: np.zeros((0, 16), np.float32))  # nothing is computed
    added = with_fields.add([(*PAIRS[2], {"kind": "분실"}), (*PAIRS[5], {**hit.fields, "kind": "날씨", "rank": 5})])
    assert (added.new, added.replaced) == (0, 2)
    assert with_fields.search("카드", 1, "words", "kind = '분실'")[0][0].fields == {"kind": "분실"}


def test_queries_and_passages_stand_behind_their_prompts(encoder, tmp_path):
    """As if the prompts stood in the texts; the words of a search, and vectors without a side, are without them."""
    task = {"kind": "embedding", "metrics": ["mrr"], "max_length": 12, "learns": "pairs", "cosine_weight": 1.0}
    prompts = {"query": "질문: ", "passage": "카드: "}
    models, network = [], EmbeddingModel(encoder.network.config)
    for more in ({}, {f"{side}_prompt": text for side, text in prompts.items()}):
        save_model(tmp_path / f"model{len(models)}", network, encoder.tokenizer, task | more)
        models.append(Model.load(tmp_path / f"model{len(models)}", "cpu"))
    plain, prompted = models
    texts = [text for text in [*TEXTS, "영화가 정말 재미있다 " * 9] if text]
    for side, prompt in prompts.items():
        expected = plain.embed([prompt + text for text in texts])
        np.testing.assert_allclose(prompted.embed(texts, side=side), expected, atol=1e-6)
        np.testing.assert_allclose(plain.embed(texts, side=side), plain.embed(texts), atol=1e-6)
    np.testing.assert_allclose(prompted.embed(texts), plain.embed(texts), atol=1e-6)
    index = Index.create(tmp_path / "prompted.index", prompted)
    index.add((text, text) for text in texts)
    assert [hit.id for hit in index.search("카드", 9, "words")[0]] == ["카드를 잃어버렸어요"]
    hits = index.search("카드", 9, "vectors")[0]
    cosines = {hit.id: hit.score for hit in hits if hit.passage == hit.text}  # max_length is small
    assert len(cosines) > 4
    for text, cosine in cosines.items():
        assert cosine == pytest.approx(plain.similarity("질문: 카드", "카드: " + text), abs=1e-5)
    with pytest.raises(ArtifactError, match="is an index of another model"):
        Index.load(tmp_path / "prompted.index", plain)


TASK = {"kind": "embedding", "metrics": ["spearman"], "max_length": 32}
WEIGHED = {"learns": "pairs", "cosine_weight": 4.0}
TASKS = [({"learns": "scores"}, "words"), ({"learns": "pairs"}, "words"), (WEIGHED, "both"), (None, "words")]


@pytest.mark.parametrize(("task", "way"), TASKS)
def test_vectors_rank_by_default_only_if_validation_found_that_they_help(encoder, tmp_path, task, way):
    network = encoder.network
    if task is not None:
        network = EmbeddingModel(network.config)
        task = TASK | task
    save_model(tmp_path / "model", network, encoder.tokenizer, task)
    model = Model.load(tmp_path / "model", "cpu")
    made = Index.create(tmp_path / "index", model)
    made.add(PAIRS)
    assert made.way == way
    assert shown(made.search(QUERIES)) == shown(made.search(QUERIES, way=made.way))
    terms = [len(own) for _, own in read_texts(model.tokenizer, [text for _, text, *_ in PAIRS], 99)]
    assert np.mean(terms) < 10
    for hit in made.search("대출", way="both")[0]:
        best = max((other.score_words or 0) for other in made.search("대출", 100, "words")[0])
        assert hit.score_vectors is not None
        short = (100 / np.mean(terms)) ** 0.5
        expected = (hit.score_words or 0) / best + (4 * short if way == "both" else 2) * hit.score_vectors
        letters = 0.3 * short * shared_letters("대출", [hit.text])[0] if way == "both" else 0
        assert hit.score == pytest.approx(expected + letters, rel=1e-4)
    assert Index.create(tmp_path / "other", encoder).way == "words"  # of a model without a folder


@given(st.lists(st.text("가나다 라\n", max_size=12), min_size=2, max_size=2))
def test_shared_letters_are_dices_coefficient(texts):
    """As of scipy.spatial, over scikit-learn's pairs of letters."""
    letters = ["".join(text.split()) for text in texts]
    if max(map(len, letters)) < 2:
        assert shared_letters(texts[0], texts[1:]) == [0]
        return
    pairs = CountVectorizer(analyzer="char", ngram_range=(2, 2), binary=True).fit_transform(letters).toarray()
    assert shared_letters(texts[0], texts[1:]) == [pytest.approx(1 - dice(*pairs.astype(bool)))]


def test_the_first_texts_are_reordered_by_shared_letters(encoder, tmp_path, monkeypatch):
    """The first 50 only, so that all others keep their places. Of long texts, by the share of the query's pairs."""
    save_model(
        tmp_path / "model",
        EmbeddingModel(encoder.network.config),
        encoder.tokenizer,
        WEIGHED | TASK | {"cosine_weight": 0.01},
    )
    model = Model.load(tmp_path / "model", "cpu")
    made = Index.create(tmp_path / "index", model)
    made.add((str(number), f"카드를 {number}번 잃어버렸어요") for number in range(60))
    few, all_of_them = ([hit.id for hit in made.search("카드를 7번", top)[0]] for top in (5, 60))
    assert few == all_of_them[:5]
    assert few[0] == "7"
    assert sorted(all_of_them) == sorted(map(str, range(60)))
    monkeypatch.setattr(index, "LONG_TERMS", 1)
    hit = made.search("카드를 7번", 1)[0][0]
    best = made.search("카드를 7번", 1, "words")[0][0].score
    terms = [len(own) for _, own in read_texts(model.tokenizer, [text for _, text in made], 99)]
    expected = hit.score_words / best + 0.01 * (100 / np.mean(terms)) ** 0.5 * hit.score_vectors
    letters = 0.75 * letters_found("카드를 7번", [hit.text])[0]
    assert hit.score == pytest.approx(expected + letters, rel=1e-4)


def test_an_index_without_vectors(encoder, filled, tmp_path):
    made = Index.create(tmp_path / "words", encoder, words_only=True)
    made.add(PAIRS)
    assert shown(made.search(QUERIES)) == shown(filled.search(QUERIES, way="words"))
    with pytest.raises(SettingsError, match="way 'both': this index has only words: search by words, or make one"):
        made.search("가", way="both")


_ADDING = """
import sys
import korbert
from korbert.search import Index, index
index.TEXTS_AT_ONCE = 2
made = Index.create(sys.argv[2], korbert.load(sys.argv[1], "cpu"))
def texts():
    for number in range(100_000):
        print(number, flush=True)
        yield str(number), f"{number}번째 글이다"
made.add(texts())
"""


@pytest.mark.slow
def test_a_killed_writer(encoder, tmp_path):
    """While it writes others read and write; when it is killed, what it had added is there."""
    save_model(tmp_path / "model", encoder.network, encoder.tokenizer)
    folder = tmp_path / "index"
    command = [sys.executable, "-c", _ADDING, str(tmp_path / "model"), str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        while next(writer.stdout) != "40\n":
            pass
        reader = Index.load(folder, encoder)
        before = len(reader)
        assert before >= 38
        assert Index.load(folder, encoder).add([("x", "가")]).new == 1
        while next(writer.stdout) != "60\n":
            assert len(reader.search("7번째 글", 5, "both")[0]) == 5
        writer.kill()
    assert len(reader) > before
    again = Index.load(folder, encoder)
    there = [pair for pair in again if pair != ("x", "가")]
    assert there == [(str(number), f"{number}번째 글이다") for number in range(len(again) - 1)]
    assert again.search("7번째 글", way="words")[0][0].id == "7"
    assert again.add(there).unchanged == len(there)


def test_a_writer_waits_for_another_and_then_says_so(filled, monkeypatch):
    monkeypatch.setattr(database, "_WAIT_S", 0.05)
    with database.writing(filled.folder):
        assert filled.search("대출")[0]
        with pytest.raises(ArtifactError, match=r"index: another process has been writing this index for .* seconds"):
            filled.add([("x", "가")])
    assert filled.add([("x", "가")]).new == 1


def test_a_text_that_another_writer_changes_meanwhile(filled, encoder, monkeypatch):
    """The text is known when `add` looks, and so not analysed, but no longer when it writes."""
    other, read_passages = Index.load(filled.folder, encoder), index.read_passages

    def overtaken(*given):
        monkeypatch.setattr(index, "read_passages", read_passages)
        other.add([("t0", "눈이 온다")])
        other.remove(["t1"])
        return read_passages(*given)

    monkeypatch.setattr(index, "read_passages", overtaken)
    added = filled.add(PAIRS)
    assert added == Added(new=1, replaced=1, unchanged=len(PAIRS) - 2)
    assert sorted(filled) == PAIRS
    assert shown(filled.search(TEXTS[0], 1)) == shown(other.search(TEXTS[0], 1))


def test_a_full_disk_loses_only_what_was_being_added(filled, monkeypatch):
    writing = database.add_to_meta

    def filled_up(file, **given):
        file.execute(f"PRAGMA max_page_count = {file.execute('PRAGMA page_count').fetchone()[0]}")
        file.execute("INSERT INTO vectors VALUES (0, zeroblob(1000000), 0)")
        writing(file, **given)

    monkeypatch.setattr(words, "add_to_meta", filled_up)
    with pytest.raises(OSError, match="database or disk is full") as error:
        filled.add([("x", "눈")])
    monkeypatch.undo()
    assert error.value.filename == str(filled.folder / database.FILE)
    assert list(filled) == PAIRS
    assert filled.add([("x", "눈")]).new == 1


def test_searching_while_adding_in_threads_of_one_process(filled, encoder, monkeypatch):
    monkeypatch.setattr(index, "TEXTS_AT_ONCE", 2)
    reader, ended = Index.load(filled.folder, encoder), threading.Event()

    def search():
        while not ended.is_set():
            assert reader.search(QUERIES[0], 1, "both")[0][0].id.startswith(("t", "n"))

    with ThreadPoolExecutor(2) as threads:
        searches = [threads.submit(search) for _ in range(2)]
        for number in range(8):
            filled.add([(f"n{number}{row}", f"{number} {row}번 글") for row in range(3)])
            filled.remove([f"n{number}0"])
        ended.set()
    assert [one.result() for one in searches] == [None, None]
    assert len(reader) == len(TEXTS) + 16


@given(st.data())
@settings(max_examples=30)
def test_the_best_are_those_of_sorting_by_score_and_number(data):
    scores = np.array(data.draw(st.lists(st.integers(-1, 1), max_size=30)), np.float32)
    numbers = 3 * np.arange(len(scores)) + 2
    top = data.draw(st.integers(1, 12))
    expected = sorted(zip(numbers.tolist(), scores.tolist(), strict=True), key=lambda item: (-item[1], item[0]))[:top]
    assert nearest.select_best(numbers, scores, top) == expected
