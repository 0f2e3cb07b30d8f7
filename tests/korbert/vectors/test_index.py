"""An index: the right texts in the right order, whatever was added, removed, cut off or read in between."""

import math
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from korbert.errors import ArtifactError, CorpusError, SettingsError
from korbert.model import Model
from korbert.modeling import EmbeddingModel, EncoderConfig, PretrainingModel, save_model
from korbert.vectors import Correction, Hit, Index, PieceCounts, exact, graph, snapshot, storage
from korbert.vectors import index as module
from korbert.vectors.words import terms_of_tags

pytest.importorskip("bm25s")

TEXTS = [
    "대출을 신청하고 싶어요",
    "신용 대출 신청은 어떻게 하나요?",
    "카드를 잃어버렸어요",
    "영화가 정말 재미있다",
    "배우의 연기가 좋았다",
    "내일 비가 온다",
    "",
    "...",
]
PAIRS = [(f"t{number}", text) for number, text in enumerate(TEXTS)]
QUERIES = ["대출 신청", "비 오는 영화", "카드", ""]


@pytest.fixture
def index(encoder: Model, tmp_path: Path) -> Index:
    made = Index.create(tmp_path / "index", encoder)
    made.add(PAIRS)
    return made


def shown(found: list[list[Hit]]) -> list[list[tuple[str, float]]]:
    return [[(hit.id, round(hit.score, 4)) for hit in hits] for hits in found]


def test_by_vectors_as_scikit_learn_finds_them(index: Index, encoder: Model) -> None:
    vectors = encoder.embed(TEXTS)
    far, rows = NearestNeighbors(n_neighbors=3, metric="cosine").fit(vectors).kneighbors(encoder.embed(QUERIES))
    for hits, distances, numbers in zip(index.search(QUERIES, 3, "vectors"), far, rows, strict=True):
        assert [hit.id for hit in hits] == [f"t{number}" for number in numbers]
        assert [hit.text for hit in hits] == [TEXTS[number] for number in numbers]
        assert [hit.score for hit in hits] == pytest.approx((1 - distances).tolist(), abs=1e-5)
        assert [(hit.rank_vectors, hit.rank_words, hit.score_words) for hit in hits] == [
            (rank, None, None) for rank in (1, 2, 3)
        ]


def test_by_words_as_the_formula_ranks_them(index: Index, encoder: Model) -> None:
    """BM25 by hand: Robertson and Zaragoza 2009, equation 3.15, with the idf of Lucene."""
    analyses = encoder.tokenizer.analyzer.analyze_many([*TEXTS, *QUERIES])
    terms = [terms_of_tags(one.forms, one.tags) for one in analyses]
    texts, queries = terms[: len(TEXTS)], terms[len(TEXTS) :]
    mean = sum(map(len, texts)) / len(texts)
    for query, hits in zip(queries, index.search(QUERIES, way="words"), strict=True):
        scores = Counter[str]()
        for term in query:
            having = sum(term in own for own in texts)
            idf = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
            for number, own in enumerate(texts):
                if frequency := own.count(term):
                    scores[f"t{number}"] += idf * frequency / (frequency + 1.2 * (0.25 + 0.75 * len(own) / mean))
        expected = sorted(scores.items(), key=lambda one: (-one[1], one[0]))
        assert [hit.id for hit in hits] == [id for id, _ in expected]
        assert [hit.score for hit in hits] == pytest.approx([score for _, score in expected], rel=1e-4)
    assert index.search("대출", way="words")[0][0].rank_words == 1
    assert index.search("없는말이다", way="words") == [[]]


def test_both_ways_are_joined_by_reciprocal_ranks(index: Index) -> None:
    by_vectors, by_words = (index.search(QUERIES, 100, way) for way in ("vectors", "words"))  # type: ignore[arg-type]
    for joined, one, other in zip(index.search(QUERIES), by_vectors, by_words, strict=True):
        ranks = [{hit.id: rank for rank, hit in enumerate(found, 1)} for found in (one, other)]
        for hit in joined:
            assert (hit.rank_vectors, hit.rank_words) == tuple(own.get(hit.id) for own in ranks)
            assert hit.score == pytest.approx(sum(1 / (60 + own[hit.id]) for own in ranks if hit.id in own))
            for score, found in ((hit.score_vectors, one), (hit.score_words, other)):
                assert score == next((own.score for own in found if own.id == hit.id), None)
        assert [hit.score for hit in joined] == sorted((hit.score for hit in joined), reverse=True)
        assert {hit.id for hit in joined} == set().union(*ranks)


@given(
    steps=st.lists(
        st.tuples(st.booleans(), st.sets(st.integers(0, len(TEXTS) - 1), min_size=1, max_size=4)), max_size=6
    ),
    fan=st.integers(2, 4),
)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_was_added_and_removed_was_never_there(
    encoder: Model, tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[bool, set[int]]], fan: int
) -> None:
    """After any steps an index finds what one finds that was made of the texts that are left."""
    there: dict[str, str] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage, "_FAN", fan)
        patch.setattr(module, "TEXTS_AT_ONCE", 2)
        made = Index.create(tmp_path_factory.mktemp("steps") / "index", encoder)
        for adding, numbers in steps:
            pairs = [PAIRS[number] for number in sorted(numbers)]
            if adding:
                added = made.add(pairs)
                assert added.new == len(pairs) - sum(id in there for id, _ in pairs)
                assert (added.replaced, added.unchanged) == (0, len(pairs) - added.new)
                there |= dict(pairs)
            else:
                assert made.remove([id for id, _ in pairs]) == sum(id in there for id, _ in pairs)
                there = {id: text for id, text in there.items() if id not in dict(pairs)}
    assert list(made) == list(there.items())
    assert len(made) == len(there)
    once = Index.create(tmp_path_factory.mktemp("once") / "index", encoder)
    once.add(there.items())
    for way in ("vectors", "words", "both"):
        assert shown(made.search(QUERIES, 3, way)) == shown(once.search(QUERIES, 3, way))  # type: ignore[arg-type]
    again = Index.load(made.folder, encoder)
    assert shown(again.search(QUERIES)) == shown(once.search(QUERIES))
    named = {path.name.partition(".")[0] for path in made.folder.iterdir()}
    record = storage.read_record(made.folder)
    kept = {part.name for part in record.parts} | ({record.words.name} if record.words else set())
    assert named <= kept | {"index", "lock"}


def test_a_text_with_a_known_id_replaces(index: Index) -> None:
    added = index.add([("t0", "오늘은 눈이 온다"), ("t1", TEXTS[1]), ("new", "눈")])
    assert (added.new, added.replaced, added.unchanged) == (1, 1, 1)
    assert dict(index)["t0"] == "오늘은 눈이 온다"
    assert len(index) == len(TEXTS) + 1
    assert [hit.id for hit in index.search("눈", way="words")[0]] == ["new", "t0"]
    with pytest.raises(CorpusError, match="id 'x': is given twice: ids must be unique"):
        index.add([("x", "가"), ("x", "나")])
    with pytest.raises(CorpusError, match="id 'y': has a lone surrogate, which no file can hold"):
        index.add([("y", "가\ud800")])


def test_settings_of_the_vectors(encoder: Model, tmp_path: Path) -> None:
    """They travel with the index, and so do what corrects and what weighs."""
    counts = PieceCounts.of_texts(TEXTS, encoder.tokenizer)
    asked: dict[str, Any] = {"layer": [1, -1], "mix": "concat", "pooling": "idf", "size": 4}
    plain = {**asked, "size": None}
    correction = Correction.fit("whiten", encoder.embed(TEXTS, counts=counts, **plain))
    index = Index.create(tmp_path / "index", encoder, counts=counts, correction=correction, **asked)
    index.add(PAIRS)
    vectors = encoder.embed(TEXTS, counts=counts, correction=correction, normalize=True, **asked)
    for made in (index, Index.load(tmp_path / "index", encoder)):
        found = made.search(TEXTS[0], way="vectors")[0]
        expected = vectors @ vectors[0]
        assert [hit.score for hit in found] == pytest.approx(np.sort(expected)[::-1].tolist(), abs=1e-5)
    with pytest.raises(ArtifactError, match=r"index: size: 5 here, 4 in the index: leave the option out, or name"):
        Index.create(tmp_path / "index", encoder, counts=counts, **{**asked, "size": 5})
    with pytest.raises(CorpusError, match="id 3: id and text have to be strings"):
        index.add([(3, "글")])  # type: ignore[list-item]
    path = tmp_path / "index" / "correction.npz"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(ArtifactError, match=r"correction.npz: was changed since it was written"):
        Index.load(tmp_path / "index", encoder)


def test_other_models_are_refused(index: Index, config: EncoderConfig, encoder: Model, tmp_path: Path) -> None:
    other = Model(PretrainingModel(config), encoder.tokenizer)
    for refused in (lambda: Index.load(index.folder, other), lambda: Index.create(index.folder, other)):
        with pytest.raises(ArtifactError, match=r"index: is an index of another model: .* give the model that it was"):
            refused()
    save_model(tmp_path / "model", encoder.network, encoder.tokenizer)
    assert len(Index.load(index.folder, tmp_path / "model").search("대출")[0]) == len(TEXTS)
    assert len(encoder.similar(["대출", "비"], index, top=3)) == 2
    with pytest.raises(ArtifactError, match=r"nowhere: is not an index: make one with `korbert index`"):
        Index.load(tmp_path / "nowhere", encoder)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("x")
    with pytest.raises(ArtifactError, match="mine: exists and is not an index: name a new folder"):
        Index.create(tmp_path / "mine", encoder)
    with pytest.raises(SettingsError, match="way 'all', top 10: use one of both, vectors, words, and at least 1"):
        index.search("가", way="all")  # type: ignore[arg-type]


def test_a_model_without_trained_vectors_is_weighted_where_counts_are_at_hand(encoder: Model, tmp_path: Path) -> None:
    """Those of its folder; vectors of `embed` stay what they are."""
    save_model(tmp_path / "model", encoder.network, encoder.tokenizer)
    PieceCounts.of_texts(TEXTS, encoder.tokenizer).save(tmp_path / "model")
    model = Model.load(tmp_path / "model", "cpu")
    index = Index.create(tmp_path / "index", model)
    index.add(PAIRS)
    assert index.settings.pooling == "bm25"
    cosine = index.search(TEXTS[0], 1, "vectors")[0][0].score
    assert cosine == pytest.approx(1, abs=1e-5)
    assert model.vector_settings().pooling == "mean"
    assert Index.create(tmp_path / "mean", model, pooling="mean").settings.pooling == "mean"
    trained = Model(EmbeddingModel(encoder.network.config, "first"), encoder.tokenizer)
    assert Index.create(tmp_path / "trained", trained).settings.pooling == "first"


def test_an_index_knows_its_model(encoder: Model, tmp_path: Path) -> None:
    save_model(tmp_path / "model", encoder.network, encoder.tokenizer)
    Index.create(tmp_path / "index", Model.load(tmp_path / "model", "cpu")).add(PAIRS)
    assert Index.load(tmp_path / "index").search("카드를 잃어버렸어요", 1)[0][0].id == "t2"


@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
@pytest.mark.parametrize("ending", ["npy", "arrow", "json"])
def test_damaged_files_are_named(index: Index, encoder: Model, ending: str, damage: str) -> None:
    (path,) = index.folder.glob(f"*.{ending}")
    data = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(data[:-9] if damage == "cut" else data[:100] + bytes([data[100] ^ 1]) + data[101:])
    said = "is not an index" if (ending, damage) == ("json", "gone") else path.name
    with pytest.raises(ArtifactError, match=f"{said}.*: make "):
        Index.load(index.folder, encoder)


def test_damaged_words_are_made_anew(index: Index, encoder: Model) -> None:
    expected = shown(index.search(QUERIES))
    (path,) = index.folder.glob("words-*/data.csc.index.npy")
    path.write_bytes(path.read_bytes()[:-4])
    assert shown(Index.load(index.folder, encoder).search(QUERIES)) == expected


# --- crashes, readers, writers ---


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("crash", range(4))
def test_a_crash_loses_nothing(
    encoder: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crash: int, after: bool
) -> None:
    """At any writing of the record, before it or after: what was added is there, and adding again completes it."""
    monkeypatch.setattr(module, "TEXTS_AT_ONCE", 3)
    made = Index.create(tmp_path / "index", encoder)
    writing, left = storage.write_record, [crash]

    def write(folder: Path, record: Any) -> None:
        left[0] -= 1
        if after:
            writing(folder, record)
        if left[0] < 0:
            raise KeyboardInterrupt
        if not after:
            writing(folder, record)

    monkeypatch.setattr(storage, "write_record", write)
    with pytest.raises(KeyboardInterrupt):
        made.add(PAIRS)
    monkeypatch.setattr(storage, "write_record", writing)
    there = min(3 * (crash + after), len(PAIRS))
    again = Index.load(tmp_path / "index", encoder)
    assert list(again) == PAIRS[:there]
    again.search(QUERIES)
    added = again.add(PAIRS)
    assert (added.unchanged, added.new) == (there, len(PAIRS) - there)
    assert list(again) == PAIRS


_ADDING = """
import sys
import korbert
from korbert.vectors import Index, index
index.TEXTS_AT_ONCE = 2
made = Index.create(sys.argv[2], korbert.load(sys.argv[1], "cpu"))
def texts():
    for number in range(100_000):
        print(number, flush=True)
        yield str(number), f"{number}번째 글이다"
made.add(texts())
"""


def test_a_killed_writer(encoder: Model, tmp_path: Path) -> None:
    """While it writes others read, and no second one writes; when it is killed, what it had added is there."""
    save_model(tmp_path / "model", encoder.network, encoder.tokenizer)
    folder = tmp_path / "index"
    command = [sys.executable, "-c", _ADDING, str(tmp_path / "model"), str(folder)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    ) as writer:
        assert writer.stdout is not None
        for line in writer.stdout:
            if line == "40\n":
                break
        reader = Index.load(folder, encoder)
        before = len(reader)
        assert before >= 38
        with pytest.raises(ArtifactError, match=f"process {writer.pid} is writing this index: wait until it has ended"):
            reader.add([("x", "가")])
        for line in writer.stdout:
            assert len(reader.search("7번째 글", 5)[0]) == 5
            if line == "60\n":
                break
        writer.send_signal(signal.SIGKILL)
    assert len(reader) > before
    again = Index.load(folder, encoder)
    assert list(again) == [(str(number), f"{number}번째 글이다") for number in range(len(again))]
    assert again.add([("x", "가")]).new == 1
    assert again.search("7번째 글", way="words")[0][0].id == "7"


def test_a_reader_that_a_writer_overtakes(index: Index, encoder: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts of the record that it has read are deleted before it opens them: it reads the new one."""
    opening = snapshot._part

    def overtaken(*given: Any) -> Any:
        monkeypatch.setattr(snapshot, "_part", opening)
        assert Index.load(index.folder, encoder).remove([f"t{number}" for number in range(6)]) == 6
        return opening(*given)

    monkeypatch.setattr(snapshot, "_part", overtaken)
    assert [id for id, _ in Index.load(index.folder, encoder)] == ["t6", "t7"]


def test_parts_stay_few(encoder: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of any number of texts added at once, or one by one."""
    monkeypatch.setattr(module, "TEXTS_AT_ONCE", 1)
    monkeypatch.setattr(storage, "_FAN", 3)
    index = Index.create(tmp_path / "index", encoder)
    texts = [(str(number), f"{number}번 글") for number in range(60)]
    index.add(texts[:50], rank_words=False)
    for pair in texts[50:]:
        index.add([pair], rank_words=False)
    assert list(index) == texts
    assert len(list(index.folder.glob("*.npy"))) <= 2 * 4  # two of each size: 1, 3, 9, 27
    index.remove([str(number) for number in range(60) if number % 2], rank_words=False)
    assert list(index) == texts[::2]


def test_searching_while_adding(index: Index, encoder: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """In threads of one process, too: each search sees a whole state."""
    monkeypatch.setattr(module, "TEXTS_AT_ONCE", 2)
    monkeypatch.setattr(storage, "_FAN", 3)
    reader, failed = Index.load(index.folder, encoder), list[Exception]()
    ended = threading.Event()

    def search() -> None:
        while not ended.is_set():
            try:
                assert reader.search(QUERIES[0], 1, "vectors")[0][0].id.startswith(("t", "n"))
            except Exception as error:
                failed.append(error)
                return

    thread = threading.Thread(target=search)
    thread.start()
    for number in range(8):
        index.add([(f"n{number}{one}", f"{number} {one}번 글") for one in range(3)], rank_words=False)
        index.remove([f"n{number}0"], rank_words=False)
    ended.set()
    thread.join()
    assert failed == []
    assert len(reader) == len(TEXTS) + 16


# --- many vectors ---


@given(st.data())
@settings(max_examples=30)
def test_exact_search_in_blocks(data: Any) -> None:
    """Ties of any kind: as sorting all rows by score, then by row."""
    count = data.draw(st.integers(0, 30))
    values = st.integers(-1, 1)
    vectors = np.array(data.draw(st.lists(st.tuples(values, values), min_size=count, max_size=count)), np.float32)
    vectors = vectors.reshape(count, 2)
    removed = data.draw(st.sets(st.integers(0, max(count - 1, 0)), max_size=count))
    top = data.draw(st.integers(1, 12))
    query = np.array([[1, 0.5], [-1, 2]], np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "_ROWS_AT_ONCE", 7)
        found = exact.nearest(vectors, query, sorted(removed), top)
    for own, scores in zip(found, query @ vectors.T, strict=True):
        rows = [row for row in range(count) if row not in removed]
        best = sorted(rows, key=lambda row: (-scores[row], row))[:top]
        assert own == [(row, pytest.approx(float(scores[row]))) for row in best]


def test_a_graph_finds_nearly_the_same(encoder: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("usearch")
    texts = [(str(number), f"{number}번째 영화가 {number % 7}번 좋았다") for number in range(300)]
    plain = Index.create(tmp_path / "plain", encoder)
    plain.add(texts, rank_words=False)
    monkeypatch.setattr(graph, "MANY_ROWS", 100)
    made = Index.create(tmp_path / "graph", encoder)
    made.add(texts, rank_words=False)
    assert len(list(made.folder.glob("*.usearch"))) == 1
    gone = [str(number) for number in range(0, 60, 2)]
    for index in (plain, made):
        index.remove(gone, rank_words=False)
    queries = [text for _, text in texts[1:60:6]]
    exactly, nearly = (index.search(queries, 5, "vectors") for index in (plain, Index.load(made.folder, encoder)))
    same = [
        len({hit.id for hit in one} & {hit.id for hit in other}) for one, other in zip(exactly, nearly, strict=True)
    ]
    assert sum(same) >= 0.9 * 5 * len(queries)
    assert not {hit.id for hits in nearly for hit in hits} & set(gone)
    for hits, others in zip(exactly, nearly, strict=True):
        assert others[0].score == pytest.approx(hits[0].score, abs=1e-5)


def test_without_bm25s(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("korbert.vectors.words.has_bm25s", lambda: False)
    monkeypatch.setattr("korbert.vectors.snapshot.has_bm25s", lambda: False)
    monkeypatch.setattr(module, "has_bm25s", lambda: False)
    index.add([("new", "글")])
    assert index.search("글", way="vectors")[0]
    with pytest.raises(SettingsError, match=r"search by words needs bm25s: pip install 'korbert\[search\]', or search"):
        index.search("글")
