"""Speed of the full `clean` against alternatives; where its time goes; time and memory against corpus size.

    python -m benchmarks.speed.clean steps --data FOLDER
    python -m benchmarks.speed.clean rivals --data FOLDER --datatrove PYTHON
    python -m benchmarks.speed.clean scale --data FOLDER --megabytes 10 100 300 1000 --plot scale.svg

FOLDER is filled as docs/data.md says: `corpus/` is cleaned, and the NSMC test set and the KorQuAD dev set are the
evaluation sets. `steps` measures CPU time in one process. `rivals` take turns, with two processes each: korbert; a
`datasets` script with the same normalization, the most used filters and a set of hashes (rival_datasets.py); the
filters, masks and MinHash of datatrove (rival_datatrove.py), in the environment of PYTHON, which needs datatrove,
orjson and spacy. `scale` repeats the corpus under other ids. Memory is summed over all processes, sampled five times a
second.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import zstandard

from benchmarks import record
from benchmarks.speed.memory import RECIPE, family
from korbert.corpus.cleaning.contamination import make_index
from korbert.corpus.cleaning.deduplication import measures
from korbert.corpus.cleaning.duplicates import text_hash
from korbert.corpus.cleaning.features import Features, batches, measure_rows
from korbert.corpus.cleaning.filters import FILTERS, drop_reasons
from korbert.corpus.cleaning.normalize import normalize_many
from korbert.corpus.cleaning.personal import mask
from korbert.corpus.corpus_settings import CleanSettings
from korbert.corpus.execution.parts import write_parquet
from korbert.corpus.readers import chunks, rows

EVALUATION = [
    {"name": "nsmc_test", "path": "nsmc/ratings_test.txt", "kind": "tsv", "text": "document"},
    {"name": "korquad_dev", "path": "korquad1/KorQuAD_v1.0_dev.json", "kind": "korquad"},
]
HERE = Path(__file__).parent
PIECES = 8


def corpus_files(data: Path) -> list[Path]:
    return sorted((data / "corpus").glob("*.jsonl.zst"))


# --- where the time goes ---


def steps(data: Path) -> None:
    for path in corpus_files(data):
        steps_of(path, data)


def steps_of(path: Path, data: Path) -> None:
    settings = CleanSettings(sources=[{"name": "text", "path": path.name}], evaluation=EVALUATION)
    index = make_index(settings, {one["name"]: [data / one["path"]] for one in EVALUATION})
    chunk = next(chunks(settings.sources[0], [path], settings.part_bytes))
    megabytes = sum(len(segment.data) for segment in chunk.segments) / 1e6
    spent: dict[str, float] = {}
    with clocked(spent, "read and parse"):
        texts = [row.text for row in rows(chunk) if row.reason is None]
    with clocked(spent, "normalise"):
        texts = list(normalize_many(texts, settings.normalize))
    with clocked(spent, "personal data"):
        texts, _ = mask(texts, settings.personal)
    measured_batches, dropped = batches(texts, settings.filters.repetition_min_words), []
    while True:
        with clocked(spent, "characters"):
            batch, features = next(measured_batches, (None, None))
        if batch is None:
            break
        with clocked(spent, "filters"):
            dropped += drop_reasons(batch, features, settings.filters)
        with clocked(spent, "evaluation sets"):
            index.find(batch, features)
    texts = [text for text, reason in zip(texts, dropped, strict=True) if reason is None]
    with clocked(spent, "hash of the text"):
        hashes = [text_hash(text) for text in texts]
    numbers = {"part": np.zeros(len(texts), np.int32), "position": np.arange(len(hashes), dtype=np.int32)}
    table = pa.table({"id": [str(place) for place in range(len(texts))], "text": texts, **numbers})
    with clocked(spent, "signatures, runs, lines"):
        measure_rows(table, measures(settings.duplicates))
    with tempfile.TemporaryDirectory() as folder, clocked(spent, "write"):
        write_parquet(Path(folder) / "rows.parquet", table, Path(folder), scratch=True)
    total = sum(spent.values())
    print(f"{path.name}: {megabytes:.1f} MB, {megabytes / total:.1f} MB/s in one process", flush=True)
    for name, seconds in spent.items():
        print(f"  {name:24} {seconds:6.2f} s {seconds / total:6.1%} {megabytes / seconds:8.1f} MB/s", flush=True)
    print("  of the filters:")
    for name, seconds in filter_times(texts, settings).most_common():
        print(f"    {name:18} {seconds:6.2f} s {megabytes / seconds:8.1f} MB/s", flush=True)


@contextmanager
def clocked(spent: dict[str, float], name: str) -> Iterator[None]:
    began = time.process_time()
    yield
    spent[name] = spent.get(name, 0.0) + time.process_time() - began


def filter_times(texts: list[str], settings: CleanSettings) -> Counter[str]:
    """Seconds of each filter, without work shared with an earlier filter."""
    spent: Counter[str] = Counter()
    for first in range(0, len(texts), 500):
        began = time.process_time()
        features = Features(texts[first : first + 500], settings.filters.repetition_min_words)
        spent["characters, words"] += time.process_time() - began
        for rule in FILTERS:
            began = time.process_time()
            rule.drops(features, settings.filters)
            spent[rule.reason] += time.process_time() - began
    return spent


# --- beside others ---


def run(command: list[str], environment: dict[str, str] | None = None) -> tuple[float, float]:
    """(seconds, peak MB) of a command."""
    began = time.perf_counter()
    peak = 0
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **(environment or {})}
    ) as process:
        lines: list[str] = []
        reader = threading.Thread(target=lambda: lines.extend(process.stdout or ()))
        reader.start()
        while process.poll() is None:
            peak = max(peak, resident(process.pid))
            time.sleep(0.2)
        reader.join()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{''.join(lines[-30:])}")
    return time.perf_counter() - began, peak / 1e6


def resident(root: int) -> int:
    """Bytes of anonymous memory of a process and its descendants."""
    total = 0
    for pid in family(root):
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        total += sum(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("RssAnon"))
    return total


def korbert(data: Path, folder: Path, sources: str = "corpus/*.jsonl.zst") -> list[str]:
    """The command for the full `clean`. The recipe names the evaluation sets in the data folder."""
    text = RECIPE.replace('path = "text.jsonl"', f'path = "{sources}"')
    for one in EVALUATION:
        if (data / one["path"]).exists():
            text += "[[clean.evaluation]]\n" + "".join(f'{key} = "{value}"\n' for key, value in one.items())
    (folder / "bench.toml").write_text(text, "utf-8")
    command = [sys.executable, "-m", "korbert", "clean", str(folder / "bench.toml"), "--data", str(data)]
    return [*command, "--root", str(folder / "artifacts"), "--workers", "2"]


def rivals(data: Path, pieces: Path, rounds: int, datatrove: Path | None, keep: Path | None) -> None:
    cut_into_pieces(corpus_files(data), pieces)
    size = sum(unpacked(path) for path in corpus_files(data)) / 1e6
    print(f"{size:.0f} MB of JSON lines")
    runs_of: dict[str, list[tuple[float, float]]] = {}
    for _ in range(rounds):
        for name in ("korbert", "datasets", "datatrove"):
            with tempfile.TemporaryDirectory() as scratch:
                folder = Path(scratch)
                if name == "korbert":
                    command = korbert(data, folder)
                elif name == "datasets":
                    command = [sys.executable, str(HERE / "rival_datasets.py"), str(pieces), scratch]
                elif datatrove is not None:
                    command = [str(datatrove), str(HERE / "rival_datatrove.py"), str(pieces), scratch]
                else:
                    continue
                seconds, memory_of_run = run(command)
            runs_of.setdefault(name, []).append((seconds, memory_of_run))
            print(f"{name:10} {seconds:7.1f} s {size / seconds:6.2f} MB/s {memory_of_run:7.0f} MB", flush=True)
    rows = []
    for name, runs in runs_of.items():
        ratio = statistics.median(run / ours for (run, _), (ours, _) in zip(runs, runs_of["korbert"], strict=True))
        middle = statistics.median(seconds for seconds, _ in runs)
        print(f"{name}: median {middle:.1f} s, {ratio:.2f} times korbert's")
        memory = max(most for _, most in runs)
        rows.append([name, f"{middle:.1f}", f"{size / middle:.1f}", f"{memory:,.0f} MB", f"{ratio:.2f}"])
    columns = ["program", "seconds, median", "MB/s", "memory", "(its time) / (korbert's)"]
    record.write(keep, "clean-rivals", [record.table(f"{size:.0f} MB of JSON lines", columns, rows)])


def cut_into_pieces(paths: list[Path], folder: Path) -> None:
    """Splits the corpus into 8 files of equal size, as rivals distribute whole files; keeps only ids and texts."""
    files = [zstandard.open(folder / f"{number}.jsonl.zst", "wb") for number in range(PIECES)]
    for number, line in enumerate(line for path in paths for line in lines_of(path)):
        record = json.loads(line)
        kept = {"id": str(record["id"]), "text": record["text"]}
        files[number % PIECES].write(json.dumps(kept, ensure_ascii=False).encode() + b"\n")
    for file in files:
        file.close()


def unpacked(path: Path) -> int:
    with zstandard.open(path, "rb") as file:
        return sum(len(block) for block in iter(lambda: file.read(1 << 20), b""))


# --- against size ---


def scale(data: Path, megabytes: list[int], plot: Path | None, keep: Path | None) -> None:
    measurements: list[tuple[int, float, float]] = []
    for size in megabytes:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            (folder / "data").mkdir()
            for one in EVALUATION:
                (folder / "data" / Path(one["path"]).parent).mkdir(exist_ok=True)
                (folder / "data" / one["path"]).symlink_to((data / one["path"]).absolute())
            write_repeated(corpus_files(data), folder / "data" / "text.jsonl.zst", size * 1_000_000)
            seconds, memory = run(korbert(folder / "data", folder, "text.jsonl.zst"))
            print(f"{size:5} MB {seconds:8.1f} s {size / seconds:6.2f} MB/s {memory:7.0f} MB of memory", flush=True)
            measurements.append((size, seconds, memory))
    if plot is not None:
        draw(measurements, plot)
    rows = [
        [f"{size:,}", f"{took:.1f}", f"{size / took:.2f}", f"{memory:,.0f} MB"] for size, took, memory in measurements
    ]
    columns = ["MB", "seconds", "MB/s", "memory of all processes"]
    record.write(keep, "clean-scale", [record.table("The corpus repeated under different ids", columns, rows)])


def draw(measurements: list[tuple[int, float, float]], path: Path) -> None:
    """Plots seconds and memory against size as SVG. measurements: (MB, seconds, MB of memory)."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "korbert", "font.family": "sans-serif"}
    figure, axes = pyplot.subplots(1, 2, figsize=(8, 3), layout="constrained")
    sizes, seconds, memory = zip(*measurements, strict=True)
    for panel, values, name in ((axes[0], seconds, "seconds"), (axes[1], memory, "MB of memory, all processes")):
        panel.plot(sizes, values, marker="o")
        panel.set_xlabel("MB of JSON lines")
        panel.set_title(name, loc="left", fontsize=10)
        panel.set_ylim(bottom=0)
        panel.set_xlim(left=0)
        panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, format="svg", metadata={"Date": None})


def write_repeated(paths: list[Path], target: Path, size: int) -> None:
    """Writes JSON lines of all files, repeated under other ids, until `size` bytes are written."""
    written = 0
    with zstandard.open(target, "wb") as file:
        for turn in count():
            streams = [lines_of(path) for path in paths]
            while streams:
                for stream in list(streams):
                    batch = list(islice(stream, 50))
                    if not batch:
                        streams.remove(stream)
                    for line in batch:
                        record = json.loads(line)
                        record["id"] = f"{turn}-{record['id']}"
                        data = json.dumps(record, ensure_ascii=False).encode() + b"\n"
                        file.write(data)
                        written += len(data)
                        if written >= size:
                            return


def lines_of(path: Path) -> Iterator[str]:
    with zstandard.open(path, "rt", encoding="utf-8", newline="\n") as file:
        yield from file


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("steps", "rivals", "scale"))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--datatrove", type=Path, help="a Python that has datatrove")
    parser.add_argument("--megabytes", type=int, nargs="+", default=[10, 100, 300, 1000])
    parser.add_argument("--plot", type=Path, help="an .svg file to draw the scale into")
    record.add_option(parser)
    given = parser.parse_args()
    if given.part == "steps":
        steps(given.data)
    elif given.part == "rivals":
        with tempfile.TemporaryDirectory() as scratch:
            rivals(given.data, Path(scratch), given.rounds, given.datatrove, given.record)
    else:
        scale(given.data, given.megabytes, given.plot, given.record)
