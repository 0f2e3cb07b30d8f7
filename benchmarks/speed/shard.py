"""Speed of `shard` in morphemes per second, from morphemes to ids on disk, loading excluded.

    python -m benchmarks.speed.shard artifacts/demo/analyze/morphemes artifacts/demo/vocab/tokenizer

The parts are repeated to fill rounds of at least --seconds. It takes turns with a plain Python loop that looks up each
morpheme, on the same parts in one process, multiplied by the number of workers. The bar is a million morphemes per
second on two cores.
"""

import argparse
import importlib
import os
import statistics
import tempfile
import time
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import record
from korbert.corpus import shards as stage
from korbert.corpus.corpus_settings import ShardSettings
from korbert.corpus.execution.parts import part_files
from korbert.tokenization.tokenizer import Tokenizer

SETTINGS = ShardSettings(part_bytes=4 << 20)  # smaller than by default, so that the last shard does not decide


def load_tokenizer(folder: Path) -> None:
    """Loads the tokenizer as the workers of `shard` do, and records when it is loaded."""
    stage._tokenizer = Tokenizer.load(folder)
    (Path(os.environ["LOADED"]) / str(os.getpid())).write_text(repr(time.time()))


def time_shard(morphemes: Path, tokenizer: Path, workers: int) -> tuple[float, int]:
    """(seconds, morphemes) of one run."""
    with tempfile.TemporaryDirectory() as folder:
        loaded, output = Path(folder) / "loaded", Path(folder) / "out"
        loaded.mkdir()
        os.environ["LOADED"] = str(loaded)
        counts = stage.shard(morphemes, tokenizer, output, SETTINGS, workers=workers)
        end = time.time()
        return end - max(float(path.read_text()) for path in loaded.iterdir()), counts["morphemes"]


def loop_rate(path: Path, tokenizer: Tokenizer) -> float:
    """Morphemes per second of the plain loop over one part."""
    start = time.perf_counter()
    table = pq.read_table(path, columns=["form", "eojeol"])
    number, rows = 0, []
    for forms, eojeols in zip(table["form"].to_pylist(), table["eojeol"].to_pylist(), strict=True):
        initial = [place == 0 or eojeol != eojeols[place - 1] for place, eojeol in enumerate(eojeols)]
        rows.append(list(chain.from_iterable(tokenizer.encode_forms(forms, initial))))
        number += len(forms)
    pa.array(rows, pa.list_(pa.int32()))
    return number / (time.perf_counter() - start)


def copies(parts: list[Path], folder: Path, times: int) -> Path:
    """A folder with several copies of each part."""
    folder.mkdir()
    for number, path in enumerate(parts * times):
        (folder / f"part-{number:05d}.parquet").symlink_to(path.resolve())
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("morphemes", type=Path, help="folder of parts that `korbert analyze` wrote")
    parser.add_argument("tokenizer", type=Path, help="folder of a tokenizer")
    parser.add_argument("--seconds", type=float, default=30, help="at least, in each round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    record.add_option(parser)
    arguments = parser.parse_args()
    # By the module's name: worker processes of the stage do not see what is defined in `__main__`.
    stage.load_tokenizer = importlib.import_module("benchmarks.speed.shard").load_tokenizer
    parts = part_files(arguments.morphemes)
    tokenizer = Tokenizer.load(arguments.tokenizer)
    rates = []
    with tempfile.TemporaryDirectory() as folder:
        small_folder = copies(parts, Path(folder) / "few", 4)
        seconds, _ = time_shard(small_folder, arguments.tokenizer, arguments.workers)
        large_folder = copies(parts, Path(folder) / "many", max(4, round(4 * 1.2 * arguments.seconds / seconds)))
        for number in range(1, arguments.rounds + 1):
            loop = statistics.median(loop_rate(path, tokenizer) for path in parts[:5]) * arguments.workers
            seconds, morphemes = time_shard(large_folder, arguments.tokenizer, arguments.workers)
            rates.append(morphemes / seconds)
            print(
                f"round {number}: {morphemes:,} morphemes in {seconds:.1f} s: {rates[-1] / 1e6:.2f} million/s", end=""
            )
            print(f", plain loop {loop / 1e6:.2f} million/s, load {os.getloadavg()[0]:.1f}", flush=True)
    print(f"median {statistics.median(rates) / 1e6:.2f} million morphemes/s on {arguments.workers} workers (bar: 1.00)")
    of_all = f"{statistics.median(rates) / 1e6:.2f} million ({min(rates) / 1e6:.2f} to {max(rates) / 1e6:.2f})"
    rows = [["morphemes a second, median", of_all], ["a plain loop, last round", f"{loop / 1e6:.2f} million"]]
    title = f"{arguments.workers} workers, {arguments.rounds} rounds"
    record.write(arguments.record, "shard", [record.table(title, ["what", "figure"], rows)])


if __name__ == "__main__":
    main()
