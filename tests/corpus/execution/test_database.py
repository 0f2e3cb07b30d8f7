"""DuckDB reads the given files and no others, names damaged ones, and stops at Ctrl-C."""

import random
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from programs import started

from korbert.corpus.cleaning.contamination import load_index
from korbert.corpus.cleaning.duplicates import EQUAL_TEXTS, KEPT_SCHEMA
from korbert.corpus.execution.database import connect, write_query
from korbert.corpus.execution.parts import read_table
from korbert.corpus.morphemes import read_morphemes
from korbert.corpus.overlap import found_in
from korbert.errors import ArtifactError

NAMES = ["g[1]", "g1", "a*b", "a?b", "a b", 'it\'s "q"', "100%", "한글", "a\\b", "{x,y}", "[!a]", "a[", "b]", "**"]
NAMES += ["a#b?c=1", "~", "id=5", "kind=1", "[]", "가\n나"]


@pytest.mark.parametrize("name", NAMES)
def test_paths_are_taken_literally(tmp_path, monkeypatch, name):
    for other in (name, "g1", "aab", "a", "x"):
        (tmp_path / other).mkdir(exist_ok=True)
        pq.write_table(pa.table({"id": ["k"], "number": [int(other == name)]}), tmp_path / other / "part-0.parquet")
    monkeypatch.chdir(tmp_path)
    for path in (tmp_path / name / "part-0.parquet", Path(name) / "part-0.parquet"):
        with connect(tmp_path / "out", 1, parts=[path, path]) as database:
            assert database.sql("SELECT * FROM parts").fetchall() == [("k", 1), ("k", 1)]
            assert database.sql("SELECT * FROM parts").columns == ["id", "number"]


def damaged(path, table, how):
    pq.write_table(table, path, compression="lz4")
    content = path.read_bytes()
    zeros = len(content) * 3 // 4
    changed = content[:100] + bytes(zeros) + content[100 + zeros :]
    path.write_bytes({"cut": content[: len(content) // 2], "changed": changed, "empty": b""}[how])
    return path


def query(path):
    with connect(path.parent / "out", 1, read=[path]) as database:
        write_query(database, EQUAL_TEXTS, KEPT_SCHEMA, path.parent / "found.parquet", path.parent / "out")


READ = {
    "rows": read_table,
    "rows of a part": lambda path: read_table(path, filters=[("part", "=", 0)]),
    "morphemes": lambda path: read_morphemes(path, seed=0, heldout_share=0.0),
    "index": load_index,
    "query": query,
    "texts": lambda path: found_in(["가"], [], path.parent, path.parent / "out", 1),
}


@pytest.mark.parametrize("how", ["cut", "changed", "empty"])
@pytest.mark.parametrize("reader", READ)
def test_a_damaged_file_is_named(tmp_path, reader, how):
    generator = random.Random(0)
    columns = {name: np.arange(500, dtype=np.uint64) for name in ("part", "position", "hash_high", "hash_low")}
    columns |= {name: [f"{name}{generator.random()}" for _ in range(500)] for name in ("id", "reason", "text")}
    columns["reason"] = pa.nulls(500, pa.string())
    path = damaged(tmp_path / "part-00000.parquet", pa.table(columns), how)
    with pytest.raises(ArtifactError, match=r"part-00000\.parquet: is damaged \(.+\): `korbert status RECIPE"):
        READ[reader](path)


def test_a_file_that_is_gone_is_named(tmp_path):
    with pytest.raises(ArtifactError, match=r"part-00000\.parquet: is gone"):
        read_table(tmp_path / "part-00000.parquet")


LONG = "SELECT count(*) AS n FROM range(100000000) a, range(1000) b WHERE hash(a.range + b.range) % 7 = 3"


@pytest.mark.parametrize(
    "query", [f"database.execute('''{LONG}''')", f"database.sql('''{LONG}''').to_arrow_reader().read_all()"]
)
def test_ctrl_c_ends_a_query(tmp_path, query):
    program = (
        "import signal, sys; from pathlib import Path; from korbert.corpus.execution.database import connect\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"with connect(Path({str(tmp_path)!r}), 1) as database:\n"
        "    print('ready', flush=True)\n"
        "    try:\n"
        f"        {query}\n"
        "    finally:\n"
        "        print('over', flush=True)\n"
    )
    with started(tmp_path, program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert errors.strip().splitlines()[-1].startswith("KeyboardInterrupt")


def test_other_errors_of_a_query_are_raised_unchanged(tmp_path):
    with pytest.raises(Exception, match="no_such_column"), connect(tmp_path, 1) as database:
        database.execute("SELECT no_such_column FROM range(3)")
    assert signal.set_wakeup_fd(-1) == -1
