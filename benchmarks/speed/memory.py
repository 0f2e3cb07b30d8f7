"""Memory of the corpus stages, which must not grow with the size of the input.

    python -m benchmarks.speed.memory data/corpus/wiki-0.jsonl.zst data/corpus/reviews.jsonl.zst --megabytes 10 40

For each size, that much text is taken from the files in turn (repeated with a number before each text if there is not
enough), and `korbert clean`, `analyze`, `vocab` and `shard` run on it, each in its own processes. The measure is the
anonymous memory of all processes together, sampled five times a second. The bar is 1 GB plus 1 GB per worker.

    python -m benchmarks.speed.memory --recipe everything.toml --data data --root artifacts --stages clean analyze

measures the stages of a given recipe instead, and keeps its artifacts.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from benchmarks import record
from benchmarks.texts import read_texts

STAGES = ("clean", "analyze", "vocab", "shard")
RECIPE = """
[[clean.sources]]
name = "text"
path = "text.jsonl"
[vocab]
size = 8_000
[pretrain]
phases = [{ steps = 1 }]
[pretrain.encoder]
hidden_size = 32
num_hidden_layers = 1
num_attention_heads = 1
intermediate_size = 32
[pretrain.optimizer]
"""


def endless_texts(paths: list[Path]) -> Iterator[str]:
    """Texts of all files, repeated; from the second round on, each with a number in front."""
    yield from read_texts(paths)
    for turn in count(1):
        yield from (f"{turn} {text}" for text in read_texts(paths))


def write_input(paths: list[Path], folder: Path, megabytes: int) -> None:
    written = 0
    with (folder / "text.jsonl").open("w", encoding="utf-8") as file:
        for number, text in enumerate(endless_texts(paths)):
            written += len(text.encode())
            file.write(json.dumps({"id": str(number), "text": text}, ensure_ascii=False) + "\n")
            if written >= megabytes * 1_000_000:
                return


def family(root: int) -> set[int]:
    """The process and its descendants."""
    parents = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    processes = {root}
    while children := {child for child, parent in parents.items() if parent in processes} - processes:
        processes |= children
    return processes


def anonymous_bytes(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:")), 0)


def measure(command: list[str]) -> tuple[float, int, int]:
    """Seconds, the peak of all processes together, and of the largest one, in bytes."""
    total = largest = 0
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as running:
        while running.poll() is None:
            sizes = [anonymous_bytes(process) for process in family(running.pid)]
            total, largest = max(total, sum(sizes)), max(largest, *sizes)
            time.sleep(0.2)
        if running.returncode:
            raise SystemExit(running.stderr.read() if running.stderr else running.returncode)
    return time.perf_counter() - started, total, largest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="JSONL with the field text")
    parser.add_argument("--megabytes", type=int, nargs="+", default=[10, 40], help="of text, in UTF-8")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--recipe", type=Path, help="what to run instead of sizes of the files")
    parser.add_argument("--data", type=Path, default=".", help="of that recipe")
    parser.add_argument("--root", type=Path, default="artifacts", help="of that recipe")
    parser.add_argument("--stages", nargs="+", default=STAGES)
    record.add_option(parser)
    arguments = parser.parse_args()
    limit = 1_000 * (1 + arguments.workers)
    rows: list[list[str]] = []
    print(f"load {os.getloadavg()[0]:.1f}; the bar is {limit:,} MB for all processes together")

    def run(name: str, recipe: Path, *options: str) -> None:
        for stage in arguments.stages:
            place = [str(recipe), *options, "--workers", str(arguments.workers)]
            seconds, total, largest = measure([sys.executable, "-m", "korbert", stage, *place])
            print(f"{name}  {stage:<8} {seconds:8.1f} s  together {total / 1e6:6,.0f} MB", end="")
            print(f"  largest process {largest / 1e6:6,.0f} MB", flush=True)
            rows.append([name.strip(), stage, f"{seconds:.1f}", f"{total / 1e6:,.0f}", f"{largest / 1e6:,.0f}"])

    columns = ["text", "stage", "seconds", "all processes, MB", "the largest, MB"]
    if arguments.recipe is not None:
        run(arguments.recipe.stem, arguments.recipe, "--root", str(arguments.root), "--data", str(arguments.data))
        record.write(arguments.record, "memory-full", [record.table("Stages", columns, rows)])
        return
    for megabytes in arguments.megabytes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_input(arguments.files, folder, megabytes)
            (folder / "memory.toml").write_text(RECIPE, encoding="utf-8")
            run(f"{megabytes:>6} MB", folder / "memory.toml", "--root", str(folder))
    record.write(arguments.record, "memory", [record.table("Stages by size", columns, rows)])


if __name__ == "__main__":
    main()
