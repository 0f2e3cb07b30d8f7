"""An index that is damaged, replaced, or somebody else's: it says so, and never answers otherwise in silence."""

import hashlib
import json
import random
import sqlite3
from contextlib import closing, suppress
from dataclasses import asdict

import pytest

from korbert import hub
from korbert.errors import ArtifactError
from korbert.search import Index, check, database

TEXTS = [
    "대출을 신청하고 싶어요",
    "카드를 잃어버렸어요",
    "영화가 정말 재미있다",
    "배우의 연기가 좋았다",
    "내일 비가 온다",
]


@pytest.fixture
def filled(encoder, tmp_path):
    made = Index.create(tmp_path / "index", encoder)
    made.add((f"t{number}", text, {"number": number}) for number, text in enumerate(TEXTS))
    return made


def changed(folder, *statements):
    with closing(sqlite3.connect(folder / database.FILE)) as file:
        for statement in statements:
            file.execute(statement)
        file.commit()


def answers(folder, model):
    made = Index.load(folder, model)
    found = [made.search(TEXTS, 5, way, where) for way in ("both", "words") for where in (None, "number < 3")]
    return json.dumps([list(made), [[list(map(asdict, hits)) for hits in one] for one in found]])


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("UPDATE texts SET text = '다른 글' WHERE number = 1", "text 1 is not as it was written"),
        ("UPDATE texts SET fields = '{}' WHERE number = 4", "text 4 is not as it was written"),
        ("UPDATE texts SET id = CAST(id AS BLOB) WHERE number = 2", "text 2 is not as it was written"),
        ("UPDATE vectors SET vector = zeroblob(64) WHERE number = 2", "vector 2 is not as it was written"),
        ("UPDATE postings SET entries = zeroblob(8) WHERE term = '대출/N'", "term '대출/N' is not as it was written"),
        ("UPDATE postings SET term = '대줄/N' WHERE term = '대출/N'", "the index of terms is not as it was written"),
        ("DELETE FROM postings WHERE term = '대출/N'", "the index of terms is not as it was written"),
        ("DELETE FROM texts WHERE number = 5", "4 rows of texts, 5 were written"),
        ("DELETE FROM vectors WHERE number = 5", "4 rows of vectors, 5 were written"),
        ("DELETE FROM passages WHERE number = 5", "4 rows of passages, 5 were written"),
        ("UPDATE passages SET text = 2 WHERE number = 1", "passage 1 is not as it was written"),
        ("UPDATE meta SET value = 9 WHERE key = 'length'", "length is not as it was written"),
        ("DELETE FROM meta WHERE key = 'identity'", "identity is missing"),
        ("ALTER TABLE texts RENAME COLUMN fields TO more", "its tables are not as they were made"),
    ],
)
def test_damage_is_found_when_it_is_read_and_by_a_check(filled, encoder, statement, what):
    changed(filled.folder, statement)
    with pytest.raises(ArtifactError, match=rf"index\.sqlite: is damaged \({what}\): make the index again"):
        answers(filled.folder, encoder)
    with pytest.raises(ArtifactError, match=r"index\.sqlite: is damaged"):
        check(filled.folder)


def test_an_index_as_it_was_written_passes(filled):
    filled.remove(["t1"])
    filled.add([("t0", "대출 상담"), ("new", "눈이 온다")])
    assert check(filled.folder) == len(TEXTS)


@pytest.mark.parametrize("statement", ["DELETE FROM vectors WHERE number = 5", "DELETE FROM postings WHERE bucket = 0"])
def test_of_a_large_file_the_same_is_found_without_reading_all_at_opening(filled, encoder, monkeypatch, statement):
    monkeypatch.setattr(database, "_QUICK_BYTES", 0)
    changed(filled.folder, statement)
    with pytest.raises(ArtifactError, match="is damaged"):
        answers(filled.folder, encoder)


@pytest.mark.parametrize("copies", [25, pytest.param(400, marks=pytest.mark.slow)])
def test_a_copy_with_damage_answers_as_before_or_says_so(filled, encoder, copies):
    """As benchmarks/damage/damaged_index.py, which does so with a real model."""
    expected, rng, path = answers(filled.folder, encoder), random.Random(copies), filled.folder / database.FILE
    data = path.read_bytes()
    for _ in range(copies):
        own, at = bytearray(data), rng.randrange(len(data))
        own[at : at + 512] = [bytes([own[at] ^ 1 << rng.randrange(8)]) + own[at + 1 : at + 512], b""][
            rng.random() < 0.4
        ]
        path.write_bytes(own)
        with suppress(ArtifactError):
            assert answers(filled.folder, encoder) == expected


def test_an_index_that_is_replaced_answers_from_its_own_vectors(filled, encoder, tmp_path):
    reader = Index.load(filled.folder, encoder)
    reader.search("카드", 2, "vectors")  # keeps what it has read
    other = Index.create(tmp_path / "other", encoder)
    other.add((f"t{number}", text, {}) for number, text in enumerate(reversed(TEXTS)))
    expected = other.search(TEXTS, 2, "vectors")
    filled.folder.rename(tmp_path / "before")
    other.folder.rename(filled.folder)
    assert reader.search(TEXTS, 2, "vectors") == expected


def test_an_index_that_is_replaced_by_one_of_another_kind_is_opened_anew(filled, encoder, tmp_path):
    reader = Index.load(filled.folder, encoder)
    other = Index.create(tmp_path / "other", encoder, words_only=True)
    other.add([("x", "카드")])
    filled.folder.rename(tmp_path / "before")
    other.folder.rename(filled.folder)
    assert [hit.id for hit in reader.search("카드")[0]] == ["x"]
    assert reader.why == "the index has no vectors"


FORMAT_2 = [f"CREATE TABLE {name} (a)" for name in ("meta", "texts", "fields", "vectors", "postings")]


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (["CREATE TABLE photos (a)"], "is a database of another program: name a new folder"),
        (["PRAGMA user_version = 3", "CREATE TABLE texts (a)"], "is a database of another program: name a new folder"),
        (FORMAT_2, "is an index of format 2, this version reads 4: make it anew in a new folder, with `korbert index"),
        (["PRAGMA application_id = 1802465890", "PRAGMA user_version = 3", *FORMAT_2], "is an index of format 3"),
    ],
)
def test_a_database_of_somebody_else_is_refused_and_not_touched(encoder, tmp_path, statements, said):
    changed(tmp_path, "PRAGMA journal_mode = WAL", *statements)
    (tmp_path / "photo.jpg").write_bytes(b"x")
    before = {path.name: hashlib.sha256(path.read_bytes()).digest() for path in tmp_path.iterdir()}
    for opening in (Index.create, Index.load):
        with pytest.raises(ArtifactError, match=rf"index\.sqlite: {said}"):
            opening(tmp_path, encoder)
    assert {path.name: hashlib.sha256(path.read_bytes()).digest() for path in tmp_path.iterdir()} == before


def test_the_hub_is_not_asked_for_the_model_of_an_index(filled, encoder, monkeypatch):
    monkeypatch.setattr(hub, "download", lambda repo: pytest.fail("the Hub was asked"))
    with database.writing(filled.folder) as file:
        database.write_meta(file, model={"digest": encoder.digest, "folder": "hf:someone/model"})
    with pytest.raises(ArtifactError, match=r"which is asked only if you say so: model hf:someone/model"):
        Index.load(filled.folder)
    assert len(Index.load(filled.folder, encoder)) == len(TEXTS)
