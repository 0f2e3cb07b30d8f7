"""Speed of `Tokenizer.encode_batch` and `encode` against Kiwi alone: same texts, same threads, loading excluded.

    python -m benchmarks.speed.tokenizer artifacts/small/vocab/tokenizer reviews.jsonl.zst wiki-0.jsonl.zst

For each file:
- encode_batch in batches of --batch lines against one `kiwi.tokenize` of the same lines, in turn, in rounds of at least
  --seconds each; the median of (Kiwi's time) / (ours). The bar is 0.95. With as many workers as cores, our own code
  competes with Kiwi for them.
- in a separate process, peak memory of encode_batch of --batch lines, with all encodings kept. Bar: 1.2 GB.
- single short texts, `encode` against `kiwi.tokenize`, in turn; the median of (our time) / (Kiwi's). Bar: 1.2.
In separate processes: loading time compared with Kiwi, and time and peak memory of `encode` for 1 MB without spaces of
one repeated syllable, `a`, `.` or digits. The bars are 1 s more, 20 s, and 1.2 GB.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks import record
from benchmarks.texts import read_texts
from korbert.tokenization import Tokenizer

_SHORT = 40  # characters of a short text, at most
_LOADING = {
    "Kiwi": "from kiwipiepy import Kiwi; Kiwi(load_multi_dict=False, num_workers=1).tokenize('한국어')",
    "korbert": "import sys; from korbert.tokenization import Tokenizer; Tokenizer.load(sys.argv[1]).encode('한국어')",
}
_RUNS = {"one syllable": "가" * 333_333, "a": "a" * 1_000_000, ".": "." * 1_000_000, "digits": "0123456789" * 100_000}
_ENCODE = """
import resource, sys, time
from korbert.tokenization import Tokenizer
tokenizer, text = Tokenizer.load(sys.argv[1]), sys.stdin.read()
tokenizer.encode("한국어")
start = time.perf_counter()
found = tokenizer.encode(text)
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(f"{time.perf_counter() - start:.1f} s, {len(found.input_ids):,} pieces, {memory:,.0f} MB", flush=True)
"""

_BATCH = """
import resource, sys
from korbert.tokenization import Tokenizer
tokenizer, lines = Tokenizer.load(sys.argv[1]), sys.stdin.buffer.read().decode().split(chr(10))
found = tokenizer.encode_batch(lines, workers=int(sys.argv[2]))
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(f"{len(found):,} lines, {sum(map(len, found)):,} pieces: {memory:,.0f} MB (bar: 1,200)", flush=True)
"""


def seconds_of(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def lines_of(path: Path) -> Iterator[str]:
    return (line for text in read_texts([path]) for line in text.split("\n") if line.strip())


def enough_lines(path: Path, kiwi: Any, seconds: float) -> list[str]:
    """Enough lines to keep Kiwi busy for `seconds`, plus a tenth."""
    lines, collected, busy_seconds = lines_of(path), [], 0.0
    while busy_seconds < seconds * 1.1 and (chunk := list(islice(lines, 5_000))):
        collected += chunk
        busy_seconds += seconds_of(lambda chunk=chunk: consume(kiwi.tokenize(iter(chunk))))
    return collected


def consume(iterator: Any) -> None:
    for _ in iterator:
        pass


def encode_in_batches(tokenizer: Tokenizer, lines: list[str], batch: int, workers: int) -> None:
    for begin in range(0, len(lines), batch):
        tokenizer.encode_batch(lines[begin : begin + batch], workers=workers)


def one_by_one(call: Callable[[str], object], texts: list[str]) -> Callable[[], None]:
    """Processes texts one by one and drops each result before the next: thousands of live results would trigger garbage
    collection, whoever made them."""

    def work() -> None:
        for text in texts:
            call(text)

    return work


def compare_short(tokenizer: Tokenizer, kiwi: Any, lines: list[str], rounds: int) -> float:
    short_texts = [line for line in lines if len(line) <= _SHORT][:2_000]
    ratios = []
    for _ in range(rounds):
        kiwi_seconds = seconds_of(one_by_one(kiwi.tokenize, short_texts))
        ratios.append(seconds_of(one_by_one(tokenizer.encode, short_texts)) / kiwi_seconds)
    return statistics.median(ratios)


def loading(folder: Path, rounds: int) -> dict[str, float]:
    seconds_of_way: dict[str, list[float]] = {name: [] for name in _LOADING}
    for _ in range(rounds):
        for name, code in _LOADING.items():
            command = [sys.executable, "-c", code, str(folder)]
            seconds_of_way[name].append(seconds_of(lambda command=command: subprocess.run(command, check=True)))
    return {name: statistics.median(found) for name, found in seconds_of_way.items()}


def runs(folder: Path) -> None:
    for name, text in _RUNS.items():
        print(f"1 MB of {name}: ", end="", flush=True)
        subprocess.run([sys.executable, "-c", _ENCODE, str(folder)], input=text.encode(), check=True)


def memory_of_a_batch(folder: Path, lines: list[str], workers: int) -> None:
    command = [sys.executable, "-c", _BATCH, str(folder), str(workers)]
    subprocess.run(command, input="\n".join(lines).encode(), check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizer", type=Path, help="a tokenizer's folder")
    parser.add_argument("files", nargs="+", type=Path, help="JSONL with the field text")
    parser.add_argument("--seconds", type=float, default=60, help="at least, for each contender in each round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=1, help="threads of Kiwi's, for both")
    parser.add_argument("--batch", type=int, default=20_000, help="lines that encode_batch gets at once")
    record.add_option(parser)
    arguments = parser.parse_args()

    from kiwipiepy import Kiwi

    rows: list[list[str]] = []
    loading_seconds = loading(arguments.tokenizer, arguments.rounds)
    print(", ".join(f"{name} loads in {seconds:.2f} s" for name, seconds in loading_seconds.items()))
    runs(arguments.tokenizer)
    tokenizer = Tokenizer.load(arguments.tokenizer)
    options = {"model_type": tokenizer.analyzer_options.model_type, "load_multi_dict": False}
    kiwi = Kiwi(num_workers=arguments.workers, **options)
    kiwi.tokenize("한국어")
    tokenizer.encode("한국어")
    tokenizer.encode_batch(["한국어"], workers=arguments.workers)
    for path in arguments.files:
        lines = enough_lines(path, kiwi, arguments.seconds)
        size = sum(len(line.encode()) for line in lines)
        print(f"{path.name}: {len(lines):,} lines, {size / 1e6:.1f} MB", flush=True)
        memory_of_a_batch(arguments.tokenizer, lines[: arguments.batch], arguments.workers)
        ratios = []
        for number in range(1, arguments.rounds + 1):
            kiwi_seconds = seconds_of(lambda lines=lines: consume(kiwi.tokenize(iter(lines))))
            our_seconds = seconds_of(
                lambda lines=lines: encode_in_batches(tokenizer, lines, arguments.batch, arguments.workers)
            )
            ratios.append(kiwi_seconds / our_seconds)
            load = os.getloadavg()[0]
            print(f"round {number}: Kiwi {kiwi_seconds:.1f} s, encode_batch {our_seconds:.1f} s, ", end="")
            print(f"{ratios[-1]:.3f}, load {load:.1f}")
        print(f"{path.name}: median {statistics.median(ratios):.3f} (bar: 0.95)")
        short_ratio = compare_short(tokenizer, kiwi, lines, arguments.rounds)
        print(f"{path.name}: a short text takes {short_ratio:.2f} of Kiwi's call (bar: 1.2)", flush=True)
        each_round = ", ".join(f"{ratio:.3f}" for ratio in ratios)
        rows.append(
            [path.name, str(arguments.workers), each_round, f"{statistics.median(ratios):.3f}", f"{short_ratio:.2f}"]
        )
    columns = ["text", "workers", "(Kiwi's time) / (ours), each round", "median", "a short text: ours / Kiwi's"]
    load_rows = [[name, f"{seconds:.2f}"] for name, seconds in loading_seconds.items()]
    batches = record.table("(Kiwi's time) / (ours) of `encode_batch`", columns, rows)
    record.write(arguments.record, "tokenizer", [batches, record.table("Loading", ["what", "seconds"], load_rows)])


if __name__ == "__main__":
    main()
