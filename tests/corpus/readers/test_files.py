import os
import sys
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset, DatasetDict
from reading import put, read

from korbert.corpus.readers.files import find_files, remote_version
from korbert.errors import CorpusError


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("a.txt", ["a.txt"]),
        ("b", ["b/2.txt", "b/c/1.txt"]),
        ("b/", ["b/2.txt", "b/c/1.txt"]),
        ("b/*", ["b/2.txt", "b/c/1.txt"]),
        ("**/[12].txt", ["b/2.txt", "b/c/1.txt"]),
        ("**/*.txt", [".hidden.txt", "[자료] 1.txt", "a.txt", "b/.git/x.txt", "b/2.txt", "b/c/1.txt"]),
        (".", ["N.TXT", "[자료] 1.txt", "a.txt", "b/2.txt", "b/c/1.txt"]),
        ("[자료] 1.txt", ["[자료] 1.txt"]),
        ("none", []),
    ],
)
def test_names_globs_and_folders_are_resolved(tmp_path, pattern, names):
    for name in ("b/2.txt", "b/c/1.txt", "a.txt", "N.TXT", ".hidden.txt", "b/.git/x.txt", "[자료] 1.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        put(tmp_path, name, "가나다\n")
    assert [path.relative_to(tmp_path).as_posix() for path in find_files(pattern, tmp_path)] == names
    assert find_files(str(tmp_path / "a.txt"), tmp_path / "b") == (tmp_path / "a.txt",)
    assert [row.text for row in read(tmp_path / "N.TXT")] == ["가나다"]
    if sys.version_info < (3, 13):  # which reads it as a*b
        with pytest.raises(CorpusError, match=r"a\*\*b: is no name of a file and no glob"):
            find_files("a**b", tmp_path)


@pytest.mark.parametrize("pattern", ["b", "b/*", "b/*.txt", "."])
def test_what_file_managers_leave_is_no_source(tmp_path, pattern):
    (tmp_path / "b").mkdir()
    for name in (".DS_Store", "Thumbs.db", "desktop.ini", "._a.txt", "a.txt"):
        put(tmp_path, f"b/{name}", "가나다\n")
    assert [path.name for path in find_files(pattern, tmp_path)] == ["a.txt"]


def test_a_datasets_folder_is_read_by_its_arrow_files(tmp_path):
    parts = {name: Dataset.from_dict({"id": [f"{name}1", f"{name}2"], "text": ["가", "나"]}) for name in ("one", "two")}
    DatasetDict(parts).save_to_disk(tmp_path / "set")
    files = find_files("set", tmp_path)
    assert [path.suffix for path in files] == [".arrow"] * 2
    assert [f"{row.id}{row.text}" for row in read(files)] == ["one1가", "one2나", "two1가", "two2나"]
    Dataset.load_from_disk(tmp_path / "set" / "one").filter(lambda row: row["text"] == "가")
    assert list((tmp_path / "set" / "one").glob("cache-*.arrow"))
    assert find_files("set", tmp_path) == files
    assert find_files("set/one", tmp_path) == files[:1]
    files[0].write_bytes(files[0].read_bytes()[:100])
    with pytest.raises(CorpusError, match=r"not a whole Parquet or Arrow file .*get it again"):
        read(files)


def test_remote_files_are_listed_read_and_versioned(tmp_path):
    memory = fsspec.filesystem("memory")
    for name in ("a.jsonl", "deep/b.jsonl", ".c.jsonl"):
        with memory.open(f"/korbert-test/{name}", "wb") as file:
            file.write(f'{{"id": "{name}", "text": "가"}}\n'.encode())
    try:
        files = find_files("memory://korbert-test", tmp_path)
        assert [str(path) for path in files] == ["memory://korbert-test/a.jsonl", "memory://korbert-test/deep/b.jsonl"]
        assert [row.place for row in read(files)] == ["a.jsonl line 1", "deep/b.jsonl line 1"]
        assert [path.name for path in find_files("memory://korbert-test/*.jsonl", tmp_path)] == [".c.jsonl", "a.jsonl"]
        assert find_files("memory://korbert-test/none.jsonl", tmp_path) == ()
        pq.write_table(pa.table({"id": [1], "text": ["나"]}), path := tmp_path / "a.parquet")
        memory.put(str(path), "/korbert-test/deep/a.parquet")
        assert [row.text for row in read(find_files("memory://korbert-test/deep/*.parquet", tmp_path))] == ["나"]
        size, version = remote_version(files[0])
        assert size == len('{"id": "a.jsonl", "text": "가"}\n'.encode())
        with memory.open("/korbert-test/a.jsonl", "wb") as file:
            file.write(b"other")
        assert remote_version(files[0]) != (size, version)
        memory.rm("/korbert-test/a.jsonl")
        with pytest.raises(CorpusError, match=r"memory://korbert-test/a.jsonl: cannot be reached"):
            remote_version(files[0])
    finally:
        memory.rm("/korbert-test", recursive=True)


@pytest.mark.parametrize("address", ["nosuchthing://bucket/file", "s3://bucket/file.jsonl"])
def test_an_address_without_a_file_system_is_an_error(tmp_path, address):
    with pytest.raises(CorpusError, match=rf"{address}: cannot be reached \(.*\): install that package"):
        find_files(address, tmp_path)


def test_a_name_that_is_no_utf_8_is_refused_and_shown(tmp_path):
    """As `unzip` names files of an archive made under a Korean Windows."""
    folder = tmp_path / "글"
    folder.mkdir()
    path = Path(os.fsdecode(os.fsencode(folder) + b"/" + "가나.txt".encode("cp949")))
    path.write_text("글", "utf-8")
    expected = r"\xb0\xa1\xb3\xaa.txt: its name is not UTF-8, as in archives made under Windows (CP949): rename it"
    for find in (
        lambda: find_files("글", tmp_path),
        lambda: find_files("글/*.txt", tmp_path),
    ):
        with pytest.raises(CorpusError) as refusal:
            find()
        assert str(refusal.value).startswith(f"{folder}/{expected}")
        str(refusal.value).encode()
