import random

import pyarrow as pa
import pytest

from corpus.duplicates import duplicates_of_part, find_duplicates, refuse_repeated_ids, text_hash
from corpus.parts import write_parquet
from korbert.errors import CorpusError


def write_parts(folder, documents, per_part):
    """Parts as the first step of `clean` leaves them. documents: (id, text, reason)."""
    paths = []
    for part, first in enumerate(range(0, len(documents), per_part)):
        rows = documents[first : first + per_part]
        hashes = [text_hash(text) for _, text, _ in rows]
        columns = {
            "id": pa.array([id for id, _, _ in rows], pa.string()),
            "reason": pa.array([reason for _, _, reason in rows], pa.string()),
            "place": [f"a.jsonl line {first + number}" for number in range(1, len(rows) + 1)],
            "part": pa.array([part] * len(rows), pa.int32()),
            "position": pa.array(range(len(rows)), pa.int32()),
            "hash_high": pa.array([high for high, _ in hashes], pa.uint64()),
            "hash_low": pa.array([low for _, low in hashes], pa.uint64()),
        }
        paths.append(write_parquet(folder / f"part-{part:05d}.parquet", pa.table(columns), folder))
    return paths


def found(folder, documents, per_part, threads):
    paths = write_parts(folder, documents, per_part)
    number = find_duplicates(paths, folder, threads, folder / "duplicates.parquet")
    by_part = [duplicates_of_part(folder / "duplicates.parquet", part) for part in range(len(paths))]
    for part, kept in enumerate(by_part):
        assert set(kept) <= {id for id, _, _ in documents[part * per_part : (part + 1) * per_part]}
    assert number == sum(map(len, by_part))
    return {id: kept for pairs in by_part for id, kept in pairs.items()}


def test_the_smallest_id_is_kept_whatever_the_order_the_parts_and_the_threads(tmp_path):
    documents = [(f"s:{number:03}", f"글 {number % 50}", None) for number in range(200)]
    expected = {f"s:{number:03}": f"s:{number % 50:03}" for number in range(50, 200)}
    for turn, (per_part, threads) in enumerate([(7, 1), (64, 2), (200, 1)]):
        random.Random(turn).shuffle(documents)
        assert found(tmp_path / str(turn), documents, per_part, threads) == expected


def test_ids_are_compared_by_code_point(tmp_path):
    documents = [("s:9", "글", None), ("s:10", "글", None), ("s:Z", "글", None), ("s:가", "글", None)]
    assert found(tmp_path, documents, 2, 1) == {"s:9": "s:10", "s:Z": "s:10", "s:가": "s:10"}


def test_what_is_dropped_already_has_no_duplicates_and_is_none(tmp_path):
    documents = [("s:1", "글", "too_short"), ("s:2", "글", None), (None, "글", "bad_json"), ("s:3", "글", None)]
    assert found(tmp_path, documents, 2, 1) == {"s:3": "s:2"}


def test_no_duplicates(tmp_path):
    assert found(tmp_path, [("s:1", "가", None), ("s:2", "나", None)], 1, 1) == {}


def test_repeated_ids_are_refused_with_their_first_two_places(tmp_path):
    documents = [("s:b", "1", None), (None, "2", "bad_json"), (None, "3", "bad_json"), ("s:a", "4", "too_short")]
    paths = write_parts(tmp_path / "good", documents, 2)
    refuse_repeated_ids(paths, tmp_path, threads=1)
    paths = write_parts(tmp_path / "bad", [*documents, ("s:c", "5", None), ("s:a", "6", None), ("s:a", "7", None)], 2)
    expected = r"^a.jsonl line 4 and a.jsonl line 6: both have the id 's:a': make ids unique"
    with pytest.raises(CorpusError, match=expected):
        refuse_repeated_ids(paths, tmp_path, threads=1)


def test_hashes_tell_texts_apart():
    assert len({text_hash(f"글 {number}") for number in range(1000)}) == 1000
    assert all(0 <= half < 1 << 64 for half in text_hash("글"))
