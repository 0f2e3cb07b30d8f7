"""A query by vectors: over 8-bit codes and a few whole vectors, and over all whole vectors in memory.

    python -m benchmarks.speed.nearest FOLDER [--texts 1000000] [--size 256] [--cosine 0] [--rounds 15] [--threads 2]

Makes the index in a new FOLDER, with vectors whose cosine to each other is about that given, and searches with vectors
near to some of them. Both ways in turn; milliseconds by the clock, and of processor time. Memory is what the process
has more than before.
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from psutil import Process

from benchmarks import record
from korbert.search import database as store
from korbert.search.nearest import VectorCache, select_best
from korbert.search.owners import read_owners
from korbert.search.texts import insert
from korbert.vectors.encoder import to_unit_length

BATCH, TOP = 50_000, 10


def made(count: int, size: int, cosine: float) -> Iterator[Any]:
    rng = np.random.default_rng(0)
    common = to_unit_length(rng.standard_normal(size, np.float32)) * np.float32(cosine**0.5)
    for start in range(0, count, BATCH):
        random_part = to_unit_length(rng.standard_normal((min(BATCH, count - start), size), np.float32))
        yield to_unit_length(common + random_part * np.float32((1 - cosine) ** 0.5))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--texts", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=256, help="numbers per vector")
    parser.add_argument("--cosine", type=float, default=0.0)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    record.add_option(parser)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if not arguments.folder.exists():
        store.create(arguments.folder, {})
        for number, part in enumerate(made(arguments.texts, arguments.size, arguments.cosine)):
            with store.writing(arguments.folder) as database:
                insert(
                    database,
                    [(f"{number}-{row}", "{}", "", [], [(0, 0, 0, 0)], [vector]) for row, vector in enumerate(part)],
                )

    def memory() -> int:
        return round(Process().memory_info().rss / 1e6)

    cache, rng, before, start = VectorCache(arguments.size), np.random.default_rng(1), memory(), time.perf_counter()
    with store.reading(arguments.folder) as database:
        codes = cache.read(database)
    first_seconds, cache_memory = time.perf_counter() - start, memory() - before
    before = memory()
    vectors = np.empty((len(codes.numbers), arguments.size), np.float32)
    with store.reading(arguments.folder) as database:
        for row, (vector,) in enumerate(database.execute("SELECT vector FROM vectors ORDER BY number")):
            vectors[row] = np.frombuffer(vector, np.float32)
    figures = {
        "texts": len(vectors),
        "first_s": round(first_seconds, 1),
        "memory_mb": [cache_memory, memory() - before],
    }
    seconds, differ = np.zeros((arguments.rounds, 4)), 0
    for turn in range(arguments.rounds):
        neighbour = vectors[rng.integers(len(vectors))]
        query = to_unit_length(
            neighbour + np.float32(0.7 * arguments.size**-0.5) * rng.standard_normal(arguments.size, np.float32)
        )
        start = np.array([time.perf_counter(), time.process_time()])
        with store.reading(arguments.folder) as database:
            best = codes.query(query).best(database, read_owners(database), codes.numbers, TOP)
        middle = np.array([time.perf_counter(), time.process_time()])
        expected = select_best(codes.numbers, vectors @ query, TOP)
        seconds[turn] = *(middle - start), *(np.array([time.perf_counter(), time.process_time()]) - middle)
        differ += [number for number, _ in best] != [number for number, _ in expected]
    codes_ms, codes_cpu_ms, whole_ms, whole_cpu_ms = np.median(1e3 * seconds, axis=0).round(1).tolist()
    figures |= {"codes_ms": codes_ms, "whole_ms": whole_ms, "codes_cpu_ms": codes_cpu_ms, "whole_cpu_ms": whole_cpu_ms}
    ratios = np.median(seconds[:, 2:] / seconds[:, :2], axis=0).round(2).tolist()
    figures |= {"ratio": ratios[0], "ratio_cpu": ratios[1], "differ": differ}
    print(json.dumps(figures))
    title = f"{arguments.texts:,} vectors of {arguments.size}"
    record.write(arguments.record, "nearest", [record.table(title, ["what", "figure"], list(figures.items()))])


if __name__ == "__main__":
    main()
