"""Speed of `analyze` against Kiwi alone: the same lines, the same number of cores, loading excluded.

    python -m benchmarks.speed.analyze data/corpus/wiki-0.jsonl.zst data/corpus/reviews.jsonl.zst

Kiwi alone is the faster of two: its own threads (`tokenize` of an iterable), or bare processes that call `tokenize`
line by line and keep only a count. All three take turns, in rounds of at least --seconds each. For each of the two the
score is the median over rounds of (its time) / (time of `analyze`), and the lower median counts. Choosing the faster
one in each round would pick the luckier one, as equal work varies by a tenth here. All three run in new processes each
time: Kiwi is a tenth slower until its model is warm, and `analyze` starts its own processes. The bar is 0.95.

With --scaling, each round also runs `analyze` and the bare processes with one worker, for the speedup by a second one.
The two cores of a small machine are often two threads of one core, where nothing becomes twice as fast.
"""

import argparse
import importlib
import multiprocessing
import os
import statistics
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks import record
from benchmarks.texts import read_texts
from korbert.corpus import analyze as stage
from korbert.corpus.cleaning.normalize import normalize
from korbert.corpus.corpus_settings import AnalyzeSettings, NormalizeSettings
from korbert.corpus.execution.parts import write_parquet
from korbert.tokenization.tokenizer_settings import AnalyzerOptions

PART_BYTES = 256 * 1024  # small, so that the last part does not decide; the bare processes get as much at a time
ROW_GROUP_ROWS = 64  # of the documents: as much smaller than those of `clean` as the parts are than the usual ones
OPTIONS = AnalyzerOptions()

_kiwi: Any = None
_load_analyzer = stage._load_analyzer


def bare_kiwi(num_workers: int) -> Any:
    """Kiwi with our options, loaded."""
    from kiwipiepy import Kiwi

    kiwi = Kiwi(num_workers=num_workers, model_type=OPTIONS.model_type, load_multi_dict=OPTIONS.load_multi_dict)
    kiwi.tokenize("한국어")
    return kiwi


def load_bare(num_workers: int) -> None:
    global _kiwi
    _kiwi = bare_kiwi(num_workers)


def count_lines(lines: list[str]) -> int:
    return sum(len(_kiwi.tokenize(line)) for line in lines)


NAMES = {"threads": "Kiwi's own threads", "processes": "bare processes that only count", "analyze": "`analyze`"}


def load_analyzer(options: AnalyzerOptions) -> None:
    """Loads the analyzer as the workers of `analyze` do, and records when it is loaded."""
    _load_analyzer(options)
    (Path(os.environ["LOADED"]) / str(os.getpid())).write_text(repr(time.time()))


def enough_texts(paths: list[Path], seconds: float, workers: int) -> list[str]:
    """Enough texts to keep Kiwi's threads busy for `seconds`, plus a tenth."""
    kiwi = bare_kiwi(workers)
    texts = (normalize(text, NormalizeSettings()) for text in read_texts(paths))  # as `clean` does
    collected: list[str] = []
    start = time.perf_counter()
    while time.perf_counter() - start < seconds * 1.1:
        chunk = list(islice(texts, 200))
        collected += chunk
        for _ in kiwi.tokenize(line for text in chunk for line in text.split("\n")):
            pass
    return collected


def tokenize_all(lines: list[str]) -> float:
    """Seconds of Kiwi's own threads."""
    start = time.perf_counter()
    sum(len(tokens) for tokens in _kiwi.tokenize(iter(lines)))
    return time.perf_counter() - start


def time_threads(lines: list[str], workers: int) -> float:
    with multiprocessing.get_context("spawn").Pool(1, load_bare, (workers,)) as pool:
        return pool.apply(tokenize_all, (lines,))


def time_processes(lines: list[str], workers: int) -> float:
    bundles, size = [[]], 0
    for line in lines:
        bundles[-1].append(line)
        size += len(line.encode())
        if size >= PART_BYTES:
            bundles.append([])
            size = 0
    with multiprocessing.get_context("spawn").Pool(workers, load_bare, (1,)) as pool:
        pool.map(wait_a_second, range(workers), chunksize=1)  # all have loaded
        start = time.perf_counter()
        sum(pool.imap_unordered(count_lines, bundles))
        return time.perf_counter() - start


def wait_a_second(_: int) -> None:
    time.sleep(1)


def time_analyze(documents: Path, workers: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        loaded = Path(folder) / "loaded"
        loaded.mkdir()
        os.environ["LOADED"] = str(loaded)
        stage.analyze(AnalyzeSettings(part_bytes=PART_BYTES), documents, Path(folder) / "out", workers=workers)
        end = time.time()
        return end - max(float(path.read_text()) for path in loaded.iterdir())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, help="JSONL with the field text")
    parser.add_argument("--seconds", type=float, default=60, help="at least, for each contender in each round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--scaling", action="store_true", help="what so many workers make of the time of one, as well")
    record.add_option(parser)
    arguments = parser.parse_args()
    # By the module's name: worker processes of the stage do not see what is defined in `__main__`.
    stage._load_analyzer = importlib.import_module("benchmarks.speed.analyze").load_analyzer
    texts = enough_texts(arguments.files, arguments.seconds, arguments.workers)
    lines = [line for text in texts for line in text.split("\n") if line]
    print(f"{len(texts):,} documents, {len(lines):,} lines, {sum(len(line.encode()) for line in lines) / 1e6:.1f} MB")
    ratios: dict[str, list[float]] = {"threads": [], "processes": []}
    seconds_of_way: dict[str, list[float]] = {"threads": [], "processes": [], "analyze": []}
    gains: dict[str, list[float]] = {"analyze": [], "processes": []}
    with tempfile.TemporaryDirectory() as folder:
        ids = [f"s:{number}" for number in range(len(texts))]
        table = pa.table({"id": ids, "source": ["s"] * len(ids), "text": pa.array(texts, pa.large_string())})
        write_parquet(Path(folder) / "documents" / "part-00000.parquet", table, Path(folder), ROW_GROUP_ROWS)
        documents = Path(folder) / "documents"
        for number in range(1, arguments.rounds + 1):
            kiwi_seconds = {
                "threads": time_threads(lines, arguments.workers),
                "processes": time_processes(lines, arguments.workers),
            }
            analyze_seconds = time_analyze(documents, arguments.workers)
            for name, seconds in kiwi_seconds.items():
                ratios[name].append(seconds / analyze_seconds)
                seconds_of_way[name].append(seconds)
                print(f"round {number}: {name} {seconds:.1f} s, ratio {seconds / analyze_seconds:.3f}")
            if arguments.scaling:
                gains["analyze"].append(time_analyze(documents, 1) / analyze_seconds)
                gains["processes"].append(time_processes(lines, 1) / kiwi_seconds["processes"])
                print(f"round {number}: " + ", ".join(f"{name} x {found[-1]:.2f}" for name, found in gains.items()))
            seconds_of_way["analyze"].append(analyze_seconds)
            print(f"round {number}: analyze {analyze_seconds:.1f} s, load {os.getloadavg()[0]:.1f}", flush=True)
    medians = {name: statistics.median(values) for name, values in ratios.items()}
    print(", ".join(f"median ratio to {name} {median:.3f}" for name, median in medians.items()))
    print(f"to the faster: {min(medians.values()):.3f} (bar: 0.95)")
    rows = []
    for name, seconds in seconds_of_way.items():
        each_round = ", ".join(f"{ratio:.3f}" for ratio in ratios.get(name, []))
        median = f"{medians[name]:.3f}" if name in medians else ""
        rows.append([NAMES[name], f"{min(seconds):.1f} to {max(seconds):.1f}", each_round, median])
    columns = ["what", "seconds, lowest to highest", "(its time) / (time of `analyze`), each round", "median"]
    size = sum(len(line.encode()) for line in lines) / 1e6
    title = f"{len(lines):,} lines, {size:.1f} MB, {arguments.workers} workers, {arguments.rounds} rounds"
    record.write(arguments.record, "analyze", [record.table(title, columns, rows)])
    if arguments.scaling:
        medians = {name: statistics.median(values) for name, values in gains.items()}
        print(
            f"{arguments.workers} workers beside one: "
            + ", ".join(f"{name} x {one:.2f}" for name, one in medians.items())
        )


if __name__ == "__main__":
    main()
