import contextlib
import random
import threading
from functools import partial

import numpy as np
import planted
import pyarrow as pa
import pytest

from korbert.corpus.cleaning.duplicates import (
    EQUAL_TEXTS,
    KEPT_SCHEMA,
    find_near_duplicates,
    refuse_repeated_ids,
    signature_table,
    text_hash,
)
from korbert.corpus.execution.database import connect, write_query
from korbert.corpus.execution.parts import read_table, write_parquet
from korbert.errors import CorpusError


def write_parts(folder, documents, per_part):
    """Parts as the first step of `clean` writes them. documents: (id, text, reason)."""
    high, low = zip(*(text_hash(text) for _, text, _ in documents), strict=True)
    columns = {
        "id": pa.array([id for id, _, _ in documents], pa.string()),
        "reason": pa.array([reason for _, _, reason in documents], pa.string()),
        "place": [f"a.jsonl line {number}" for number in range(1, len(documents) + 1)],
        "hash_high": pa.array(high, pa.uint64()),
        "hash_low": pa.array(low, pa.uint64()),
    }
    return planted.parts(folder, columns, per_part)


def equal(folder, paths, threads=1):
    with connect(folder, threads, read=paths) as database:
        return write_query(database, EQUAL_TEXTS, KEPT_SCHEMA, folder / "equal.parquet", folder)


def found(folder, documents, per_part, threads):
    number = equal(folder, write_parts(folder, documents, per_part), threads)
    return kept_by_id(folder / "equal.parquet", documents, per_part, number)


def kept_by_id(path, documents, per_part, number):
    """Id of a dropped document -> id of the one that is kept."""
    kept = {}
    for part, first in enumerate(range(0, len(documents), per_part)):
        for row in read_table(path, filters=[("part", "=", part)]).to_pylist():
            assert row["part"] == part
            kept[documents[first + row["position"]][0]] = row["kept"]
    assert len(kept) == number
    return kept


def test_the_smallest_id_is_kept_for_any_order_parts_and_threads(tmp_path):
    documents = [(f"s:{number:03}", f"글 {number % 50}", None) for number in range(200)]
    expected = {f"s:{number:03}": f"s:{number % 50:03}" for number in range(50, 200)}
    for turn, (per_part, threads) in enumerate([(7, 1), (64, 2), (200, 1)]):
        random.Random(turn).shuffle(documents)
        assert found(tmp_path / str(turn), documents, per_part, threads) == expected


def test_ids_are_compared_by_code_point_and_dropped_rows_not_at_all(tmp_path):
    documents = [("s:9", "글", None), ("s:10", "글", None), ("s:Z", "글", None), ("s:가", "글", None)]
    assert found(tmp_path / "ids", documents, 2, 1) == {"s:9": "s:10", "s:Z": "s:10", "s:가": "s:10"}
    documents = [("s:1", "글", "too_short"), ("s:2", "글", None), (None, "글", "bad_json"), ("s:3", "글", None)]
    assert found(tmp_path / "dropped", [*documents, ("s:4", "다른 글", None)], 2, 1) == {"s:3": "s:2"}


def test_repeated_ids_are_refused_with_their_first_two_places(tmp_path):
    documents = [("s:b", "1", None), (None, "2", "bad_json"), (None, "3", "bad_json"), ("s:a", "4", "too_short")]
    with connect(tmp_path, 1, read=write_parts(tmp_path / "good", documents, 2)) as database:
        refuse_repeated_ids(database)
    documents += [("s:c", "5", None), ("s:a", "6", None), ("s:a", "7", None)]
    expected = r"^a.jsonl line 4 and a.jsonl line 6: both have the id 's:a': make ids unique"
    paths = write_parts(tmp_path / "bad", documents, 2)
    with pytest.raises(CorpusError, match=expected), connect(tmp_path, 1, read=paths) as database:
        refuse_repeated_ids(database)


@pytest.mark.slow
def test_little_memory_spills_to_disk_with_the_same_result(tmp_path, monkeypatch):
    number = 1_000_000
    generator = np.random.default_rng(0)
    hashes = np.tile(generator.integers(0, 1 << 63, (number // 2, 2), np.uint64), (2, 1))
    order = generator.permutation(number)
    columns = {"id": [f"s:{i}" for i in order], "reason": pa.nulls(number, pa.string())}
    columns |= {"part": np.zeros(number, np.int32), "position": np.arange(number, dtype=np.int32)}
    columns |= {"hash_high": hashes[order, 0], "hash_low": hashes[order, 1]}
    part = write_parquet(tmp_path / "part-00000.parquet", pa.table(columns), tmp_path, 1 << 13)
    assert equal(tmp_path, [part]) == number // 2
    much = (tmp_path / "equal.parquet").read_bytes()
    monkeypatch.setattr("korbert.corpus.execution.database._MEMORY_LIMIT", "64MB")
    sizes = [0]
    over = threading.Event()

    def watch():
        while not over.wait(0.01):
            with contextlib.suppress(FileNotFoundError):
                sizes.append(sum(path.stat().st_size for path in tmp_path.glob("work/spill-*/**/*")))

    watching = threading.Thread(target=watch)
    watching.start()
    assert equal(tmp_path, [part]) == number // 2
    over.set()
    watching.join()
    assert max(sizes) > 1 << 20
    assert (tmp_path / "equal.parquet").read_bytes() == much


# --- nearly equal ---


def near(folder, documents, *, per_part=50, threads=1, least=0.8, without=()):
    columns = {"id": [id for id, _ in documents], "text": [text for _, text in documents]}
    signed = planted.parts(folder / "signatures", columns, per_part, partial(signature_table, min_terms=3))
    with connect(folder, threads, without=without, signatures=signed) as database:
        number = find_near_duplicates(database, least, folder / "near.parquet", folder)
    return kept_by_id(folder / "near.parquet", documents, per_part, number)


def test_near_duplicates_agree_with_the_exact_similarity(tmp_path):
    pairs = list(planted.pairs(0, 800))
    exact = np.array([planted.jaccard(*pair) for pair in pairs])
    documents = [(f"s:{number:04}{side}", pair[side]) for number, pair in enumerate(pairs) for side in (0, 1)]
    random.Random(1).shuffle(documents)
    gone = near(tmp_path, documents)
    assert all(id[:-1] == kept[:-1] for id, kept in gone.items())  # nothing but the planted pairs
    hit = np.array([not {f"s:{number:04}0", f"s:{number:04}1"}.isdisjoint(gone) for number in range(len(pairs))])
    alike = exact >= 0.8
    assert 200 < alike.sum() < 600
    assert (hit & alike).sum() > 0.9 * max(hit.sum(), alike.sum())  # what lies at the limit itself may go either way
    assert hit[exact >= 0.92].all()
    assert not hit[exact <= 0.68].any()


def test_the_longest_near_duplicate_is_kept_and_ties_by_id(tmp_path):
    words = [f"낱말{number}" for number in range(100)]
    chain = {"s:c": words[0:60], "s:b": words[4:64], "s:a": words[8:70], "t:2": words[80:100], "t:1": words[80:100]}
    documents = [(id, " ".join(text)) for id, text in chain.items()]
    documents += [("u:1", "홀로 서 있는 글 하나"), ("u:2", "다섯 여섯 일곱 여덟"), ("u:3", "짧다")]
    assert planted.jaccard(documents[0][1], documents[2][1]) < 0.8
    assert near(tmp_path, documents) == {"s:c": "s:a", "s:b": "s:a", "t:2": "t:1"}
    assert near(tmp_path, documents, without=planted.gone(tmp_path, [(0, 2)])) == {"s:c": "s:b", "t:2": "t:1"}


def test_near_duplicates_are_the_same_for_any_order_parts_and_threads(tmp_path):
    texts = [text for pair in planted.pairs(2, 150) for text in pair]
    documents = [(f"s:{i:04}", text) for i, text in enumerate(texts)]
    expected = near(tmp_path / "first", documents)
    assert len(expected) > 20
    for turn, (per_part, threads) in enumerate([(7, 1), (1000, 2), (64, 2)]):
        random.Random(turn).shuffle(documents)
        assert near(tmp_path / str(turn), documents, per_part=per_part, threads=threads) == expected
