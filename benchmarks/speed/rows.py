"""Throughput of pretraining row makers in pieces per second: a thread, one worker process, two.

    python -m benchmarks.speed.rows                                           random shards of 25 million pieces
    python -m benchmarks.speed.rows --shards artifacts/small/shard/train      real ones

The consumer discards the rows. All kinds take turns, in rounds of at least --seconds each, startup excluded; the score
is the median over rounds of two workers / one, with two cores idle besides the light work of the consumer. The bar is
1.8.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch

from benchmarks import record
from korbert.pretraining import MaskingSettings, PairSettings, Phase, PretrainingRows, Shards, SpecialIds, in_phases
from korbert.training.feeding import prefetch_batches

IDS = SpecialIds(cls=2, sep=3, mask=4, first_piece=384, vocab_size=102_400)
STEPS_TO_START = 16  # until all makers are at work
BAR = 1.8


def write_shard(path: Path, pieces: int, seed: int) -> None:
    """Writes random pieces in sentences of 20 on average, half in articles of 15 sentences, half in reviews of 1-3."""
    rng = np.random.default_rng(seed)
    ends = np.cumsum(rng.geometric(1 / 20, size=pieces // 20))
    starts = np.concatenate([[0], ends[:-1]])
    boundaries = rng.choice(np.array([0, 1, 2], dtype=np.uint8), size=ends[-1], p=[0.1, 0.5, 0.4])
    boundaries[starts] = 3
    half = len(starts) // 2
    reviews = half + np.cumsum([0, *rng.choice([1, 2, 3], size=half, p=[0.6, 0.25, 0.15])])
    reviews = reviews[reviews < len(starts)]
    edges = pa.array(np.concatenate([starts[:half:15], starts[reviews], ends[-1:]]).astype(np.int32))
    ids = rng.integers(IDS.first_piece, IDS.vocab_size, size=ends[-1], dtype=np.int32)
    table = pa.table(
        {
            "source": ["wiki"] * len(starts[:half:15]) + ["reviews"] * len(reviews),
            "input_ids": pa.ListArray.from_arrays(edges, pa.array(ids)),
            "boundaries": pa.ListArray.from_arrays(edges, pa.array(boundaries)),
        }
    )
    with pa.ipc.new_stream(str(path), table.schema) as stream:
        stream.write_table(table, max_chunksize=10_000)


def speed(phases: list[Phase], workers: int, seconds: float) -> tuple[float, float]:
    """(pieces per second, seconds until the first step)."""
    pieces, began, started, first_seconds = 0, 0.0, time.perf_counter(), 0.0
    with prefetch_batches(in_phases(phases), range(phases[0].steps), workers=workers) as steps:
        for step, micro_batches, _ in steps:
            if step == 0:
                first_seconds = time.perf_counter() - started
            if step <= STEPS_TO_START:
                pieces, began = 0, time.perf_counter()
                continue
            pieces += sum(batch["pieces"] for batch in micro_batches)
            if time.perf_counter() - began >= seconds:
                break
        return pieces / (time.perf_counter() - began), first_seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=Path, help="folder of *.arrow; without it they are made up")
    parser.add_argument("--million-pieces", type=int, default=25, help="of made-up shards")
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--rows", type=int, default=64, help="of a step")
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2], help="0: the thread")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    record.add_option(parser)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = arguments.shards or Path(name)
        if arguments.shards is None:
            for number in range(8):
                write_shard(folder / f"part-{number:05d}.arrow", arguments.million_pieces * 125_000, number)
        started = time.perf_counter()
        shards = Shards(sorted(folder.glob("*.arrow")))
        rows = PretrainingRows(shards, IDS, arguments.length, MaskingSettings(), PairSettings(), seed=0)
        opened = time.perf_counter() - started
        print(f"{shards.edges[-1]:,} pieces, {len(shards):,} documents, {len(rows):,} rows, opened in {opened:.2f} s")
        phases = [Phase(rows, steps=10**9, batch_size=arguments.rows)]
        rates_of: dict[int, list[float]] = {workers: [] for workers in arguments.workers}
        for number in range(1, arguments.rounds + 1):
            for workers in arguments.workers:
                rate, first_seconds = speed(phases, workers, arguments.seconds)
                rates_of[workers].append(rate)
                label = f"{workers} workers" if workers else "thread"
                print(f"round {number}, {label}: {rate:,.0f} pieces/s, first step after {first_seconds:.1f} s", end="")
                print(f", load {os.getloadavg()[0]:.1f}", flush=True)
        rows_of_table = []
        for workers, rates in rates_of.items():
            label = f"{workers} workers" if workers else "thread"
            print(f"{label}: median {statistics.median(rates):,.0f} pieces/s")
            rows_of_table.append([label, f"{statistics.median(rates):,.0f}"])
        title = f"Pieces a second, medians of {arguments.rounds} rounds"
        record.write(arguments.record, "rows", [record.table(title, ["made by", "pieces a second"], rows_of_table)])
        if {1, 2} <= rates_of.keys():
            ratios = [two / one for one, two in zip(rates_of[1], rates_of[2], strict=True)]
            print(f"two workers / one: median {statistics.median(ratios):.2f} (bar: {BAR})")


if __name__ == "__main__":
    main()
