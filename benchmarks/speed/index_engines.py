"""Engines for a search index, on made texts: time, memory and disk of adding, searching and removing.

    python -m benchmarks.speed.index_engines ENGINE FOLDER [--texts 10000] [--size 256] [--terms 40]

ENGINE: korbert (the SQLite file of korbert.search), fts5 (SQLite's full-text search and bm25()), sqlite-vec, or lancedb
(full-text search over white space, exact search of vectors). The last two are not dependencies: pip install them.
Terms are drawn from Zipf's law over 100,000, queries are terms of a text and its vector. Times are processor time of
all threads: the clock's depends on what else runs. In a folder with texts of an earlier run, korbert only searches.
"""

import argparse
import json
import resource
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import record
from korbert.search import database as store
from korbert.search.nearest import VectorCache, select_best
from korbert.search.owners import read_owners
from korbert.search.texts import delete, insert
from korbert.search.words import word_scores

BATCH, QUERIES = 4_096, 10


class Korbert:
    def __init__(self, folder: Path, size: int) -> None:
        self.folder, self.cache = folder, VectorCache(size)
        store.create(folder, {})

    def add(self, start: int, terms: list[list[str]], vectors: Any) -> None:
        with store.writing(self.folder) as database:
            rows = []
            for number, (text_terms, vector) in enumerate(zip(terms, vectors, strict=True), start):
                text = " ".join(text_terms)
                rows.append((str(number), "{}", text, text_terms, [(0, len(text), 0, len(text_terms))], [vector]))
            insert(database, rows)

    def words(self, terms: list[str]) -> Sequence[int]:
        with store.reading(self.folder) as database:
            scores = word_scores(database, terms, read_owners(database))
            numbers = np.flatnonzero(scores)
            return [number - 1 for number, _ in select_best(numbers, scores[numbers], 10)]

    def nearest(self, vector: Any) -> Sequence[int]:
        with store.reading(self.folder) as database:
            codes = self.cache.read(database)
            best = codes.query(vector).best(database, read_owners(database), codes.numbers, 10)
            return [number - 1 for number, _ in best]

    def remove(self, rows: list[int]) -> None:
        with store.writing(self.folder) as database:
            delete(database, [row + 1 for row in rows])

    def index(self) -> None:
        pass


class Fts5(Korbert):
    """Searches words only. Terms have no characters at which the tokenizer would cut."""

    def __init__(self, folder: Path, size: int) -> None:
        self.database = sqlite3.connect(folder / "fts5.sqlite")
        self.database.executescript(
            "PRAGMA journal_mode = WAL; CREATE VIRTUAL TABLE texts USING fts5(terms, tokenize = 'ascii')"
        )

    def add(self, start: int, terms: list[list[str]], vectors: Any) -> None:
        with self.database as database:
            rows = ((start + row, " ".join(own)) for row, own in enumerate(terms))
            database.executemany("INSERT INTO texts (rowid, terms) VALUES (?, ?)", rows)

    def words(self, terms: list[str]) -> Sequence[int]:
        select = "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY bm25(texts) LIMIT 10"
        return [row for (row,) in self.database.execute(select, (" OR ".join(terms),))]

    def nearest(self, vector: Any) -> Sequence[int]:
        return []

    def remove(self, rows: list[int]) -> None:
        with self.database as database:
            database.executemany("DELETE FROM texts WHERE rowid = ?", ((row,) for row in rows))


class SqliteVec(Fts5):
    """Searches vectors only."""

    def __init__(self, folder: Path, size: int) -> None:
        import sqlite_vec

        self.database = sqlite3.connect(folder / "vec.sqlite")
        self.database.enable_load_extension(True)
        sqlite_vec.load(self.database)
        self.database.executescript(
            f"PRAGMA journal_mode = WAL; CREATE VIRTUAL TABLE texts USING vec0(vector float[{size}])"
        )

    def add(self, start: int, terms: list[list[str]], vectors: Any) -> None:
        with self.database as database:
            rows = ((start + row, vector.tobytes()) for row, vector in enumerate(vectors))
            database.executemany("INSERT INTO texts (rowid, vector) VALUES (?, ?)", rows)

    def words(self, terms: list[str]) -> Sequence[int]:
        return []

    def nearest(self, vector: Any) -> Sequence[int]:
        select = "SELECT rowid FROM texts WHERE vector MATCH ? AND k = 10 ORDER BY distance"
        return [row for (row,) in self.database.execute(select, (vector.tobytes(),))]


class LanceDb:
    def __init__(self, folder: Path, size: int) -> None:
        import lancedb
        import pyarrow as pa

        self.schema = pa.schema([("row", pa.int64()), ("terms", pa.string()), ("vector", pa.list_(pa.float32(), size))])
        self.table = lancedb.connect(folder).create_table("texts", schema=self.schema)

    def add(self, start: int, terms: list[list[str]], vectors: Any) -> None:
        import pyarrow as pa

        column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
        columns = [pa.array(range(start, start + len(terms))), pa.array([" ".join(own) for own in terms]), column]
        self.table.add(pa.table(columns, schema=self.schema))

    def index(self) -> None:
        self.table.create_fts_index("terms", base_tokenizer="whitespace", lower_case=False, stem=False,
                                    remove_stop_words=False, ascii_folding=False, with_position=False)  # fmt: skip
        self.table.optimize()

    def words(self, terms: list[str]) -> Sequence[int]:
        hits = self.table.search(" ".join(terms), query_type="fts").select(["row"]).limit(10).to_list()
        return [hit["row"] for hit in hits]

    def nearest(self, vector: Any) -> Sequence[int]:
        search = self.table.search(vector).distance_type("dot").select(["row"]).limit(10)
        return [hit["row"] for hit in search.to_list()]

    def remove(self, rows: list[int]) -> None:
        self.table.delete(f"row IN ({', '.join(map(str, rows))})")


ENGINES: dict[str, Callable[[Path, int], Any]] = {
    "korbert": Korbert, "fts5": Fts5, "sqlite-vec": SqliteVec, "lancedb": LanceDb,
}  # fmt: skip


def made(count: int, size: int, length: int) -> Iterator[tuple[int, list[list[str]], Any]]:
    """Batches of texts: the first row, terms and unit vectors."""
    rng = np.random.default_rng(0)
    weights = 1 / np.arange(10, 100_010)
    for start in range(0, count, BATCH):
        rows = min(BATCH, count - start)
        numbers = rng.choice(len(weights), (rows, length), p=weights / weights.sum())
        vectors = rng.standard_normal((rows, size), np.float32)
        yield (
            start,
            [[f"t{term}" for term in row_numbers] for row_numbers in numbers],
            vectors / np.linalg.norm(vectors, axis=1)[:, None],
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=list(ENGINES))
    parser.add_argument("folder", type=Path, help="a new folder")
    parser.add_argument("--texts", type=int, default=10_000)
    parser.add_argument("--size", type=int, default=256, help="numbers per vector")
    parser.add_argument("--terms", type=int, default=40, help="per text; a query has a quarter as many")
    record.add_option(parser)
    arguments = parser.parse_args()
    is_new = not arguments.folder.exists()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    engine, add_seconds, queries = ENGINES[arguments.engine](arguments.folder, arguments.size), 0.0, []
    for start, terms, vectors in made(arguments.texts, arguments.size, arguments.terms):
        if not is_new and len(queries) == QUERIES:
            break
        began = time.process_time()
        if is_new:
            engine.add(start, terms, vectors)
        add_seconds += time.process_time() - began
        if len(queries) < QUERIES:
            queries += [
                (text_terms[: arguments.terms // 4], vector) for text_terms, vector in zip(terms, vectors, strict=True)
            ][:QUERIES]
    began = time.process_time()
    engine.index()
    add_seconds += time.process_time() - began
    figures: dict[str, Any] = {"engine": arguments.engine, "texts": arguments.texts, "add_s": round(add_seconds, 1)}
    figures["disk_mb"] = round(sum(path.stat().st_size for path in arguments.folder.rglob("*") if path.is_file()) / 1e6)
    for name, search in (
        ("words", lambda query: engine.words(query[0])), ("vectors", lambda query: engine.nearest(query[1])),
    ):  # fmt: skip
        milliseconds = []
        for query in queries[:1] + queries:
            began = time.process_time()
            search(query)
            milliseconds.append(1e3 * (time.process_time() - began))
        figures |= {
            f"{name}_first_ms": round(milliseconds[0], 1),
            f"{name}_ms": round(float(np.median(milliseconds[1:])), 1),
        }
    began = time.process_time()
    engine.remove(list(range(1_000)))
    figures["remove_1000_s"] = round(time.process_time() - began, 2)
    figures["memory_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)
    print(json.dumps(figures), flush=True)
    table = record.table(f"{arguments.texts:,} texts", ["what", "figure"], list(figures.items()))
    record.write(arguments.record, f"index-engines-{arguments.engine}", [table])


if __name__ == "__main__":
    main()
