"""`korbert embed` and `predict` on folders: against one process, on Ray, and killed in between.

    python -m benchmarks.speed.corpora --data data turns --count 200000     ways in turn: texts a second
    python -m benchmarks.speed.corpora --data data killed --bytes 1e9       killed twice and resumed: memory, rows

turns: the reviews of NSMC in four files, by one process, as a file of the same texts; by two processes; and by two
workers on a Ray cluster. Each is a command of its own, and its model is loaded within. Rows of the ways are compared.
killed: texts of ten court decisions each, of which a vector reads the beginning, again and again with other ids until
they have that many bytes, as JSON lines and Parquet. The memory is that of all processes of the command, shared pages
counted once, every five seconds.
"""

import argparse
import io
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from benchmarks import record

WAYS = {"one process": [], "two processes": ["--workers", "2"], "Ray": ["--workers", "2", "--runner", "ray"]}
MODELS = {"embed": "korbert-mini-embed", "predict": "korbert-mini-nsmc"}
LONGEST = 500_000  # bytes of a text: a line of JSON may have 1 MiB
SAMPLED = 5.0  # seconds between looks at the memory


def reviews(data: Path, number: int) -> list[str]:
    """The first texts of NSMC."""
    lines = [
        line.split("\t")[1]
        for name in ("ratings_train.txt", "ratings_test.txt")
        for line in (data / "nsmc" / name).read_text("utf-8").split("\n")[1:-1]
    ]
    return lines[:number]


def decisions(data: Path) -> Iterator[dict[str, str]]:
    """Ten court decisions as one text, again and again, each time with other ids."""
    with (data / "law" / "decisions.jsonl.zst").open("rb") as packed:
        file = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(packed), "utf-8")
        rows = [json.loads(line) for line in file]
    for turn in count():
        for first in range(0, len(rows), 10):
            group = rows[first : first + 10]
            if sum(len(row["text"].encode()) for row in group) > LONGEST:
                continue
            yield {"id": f"{turn}-{group[0]['id']}", "text": "\n".join(row["text"] for row in group)}


def korbert(*words: object) -> float:
    """Seconds of a command."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "korbert", *map(str, words)], check=True, capture_output=True)
    return time.perf_counter() - began


def rows_of(place: Path) -> pa.Table:
    paths = sorted(place.glob("*.parquet")) if place.is_dir() else [place]
    return pa.concat_tables(map(pq.read_table, paths))


def turns(options: argparse.Namespace) -> None:
    texts = reviews(options.data, options.count)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder, "corpus")
        corpus.mkdir()
        lines = [json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts]
        for number in range(4):
            part = lines[number * len(lines) // 4 : (number + 1) * len(lines) // 4]
            (corpus / f"{number}.jsonl").write_text("".join(part), "utf-8")
        single_file = Path(folder, "whole.parquet")
        pq.write_table(pa.table({"text": texts}), single_file)
        for command in options.commands:
            seconds: dict[str, list[float]] = {way: [] for way in options.ways}
            outputs = {}
            for turn in range(options.rounds):
                for way in options.ways:
                    outputs[way] = Path(folder, f"{command} {way} {turn}")
                    source: Path = corpus
                    if way == "one process":
                        source, outputs[way] = single_file, outputs[way].with_suffix(".parquet")
                    arguments = [command, MODELS[command], source, "--output", outputs[way], *WAYS[way]]
                    seconds[way].append(korbert(*arguments, "--precision", "fp32"))
            for way, way_seconds in seconds.items():
                ratio = statistics.median(a / b for a, b in zip(seconds[options.ways[0]], way_seconds, strict=True))
                speed = len(texts) / statistics.median(way_seconds)
                rows.append([command, way, f"{speed:,.0f}", f"{ratio:.2f}"])
                print(*rows[-1], flush=True)
            tables = [rows_of(outputs[way]).select(["text"]) for way in options.ways if way != "one process"]
            assert all(len(other) == len(texts) for other in tables)
            if {"two processes", "Ray"} <= outputs.keys():
                assert rows_of(outputs["two processes"]).equals(rows_of(outputs["Ray"]))
    columns = ["command", "way", "texts a second", "times the first"]
    record.write(options.record, "corpora", [record.table("A folder in parts", columns, rows)])


def memory_of(process: int) -> int:
    """Bytes of a process and those that it has started, shared pages counted once."""
    total = 0
    for path in Path("/proc").glob("[0-9]*"):
        try:
            group = int((path / "stat").read_text().rpartition(")")[2].split()[2])
            if group == process:
                lines = (path / "smaps_rollup").read_text().splitlines()
                total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
        except OSError:  # it has just ended
            continue
    return total


def killed(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        corpus = Path(folder, "corpus")
        corpus.mkdir()
        rows = decisions(options.data)
        size = number = files = 0
        while size < options.bytes:
            batch = list(islice(rows, 400))
            size += sum(len(row["text"].encode()) for row in batch)
            number += len(batch)
            if files % 2:
                pq.write_table(pa.Table.from_pylist(batch), corpus / f"{files:03}.parquet")
            else:
                lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in batch)
                (corpus / f"{files:03}.jsonl").write_text("".join(lines), "utf-8")
            files += 1
        print(f"{number:,} texts, {size:,} bytes, {files} files", flush=True)
        output = Path(folder, "vectors")
        command = [sys.executable, "-m", "korbert", "embed", MODELS["embed"], str(corpus), "--output", str(output)]
        seconds = []
        peaks: list[float] = []
        for ends in (*options.ends, None):
            began = time.perf_counter()
            running = subprocess.Popen([*command, "--workers", "2"], start_new_session=True)
            samples = []
            while running.poll() is None and (ends is None or time.perf_counter() - began < ends):
                time.sleep(SAMPLED)
                samples.append(memory_of(running.pid))
            if ends is not None:
                os.killpg(running.pid, signal.SIGKILL)
            running.wait()
            seconds.append(time.perf_counter() - began)
            peaks.append(max(samples) / 1e9)
            place = output.with_name("vectors.partial") if ends is not None else output
            rows_kept = sum(pq.read_metadata(path).num_rows for path in place.glob("part-*"))
            print(f"{seconds[-1]:.0f} s, {rows_kept:,} rows kept, at most {peaks[-1]:.2f} GB", flush=True)
        table = rows_of(output).select(["id", "vector"])
        assert len(table) == number
        assert len(set(table["id"].to_pylist())) == number
        assert table["vector"].null_count == 0
        speed = size / sum(seconds)
        peaks_text = ", ".join(f"{peak:.2f}" for peak in peaks)
        cells = [f"{size / 1e9:.2f}", f"{number:,}", f"{sum(seconds) / 60:.0f}", f"{speed / 1e3:.0f}", peaks_text]
        print(*cells)
    columns = ["GB of text", "rows", "minutes", "kB a second", "GB of memory at most, run by run"]
    record.write(options.record, "corpora-killed", [record.table("Killed twice and resumed", columns, [cells])])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    record.add_option(parser)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("turns")
    one.add_argument("--count", type=int, default=200_000)
    one.add_argument("--rounds", type=int, default=1)
    one.add_argument("--commands", nargs="+", choices=MODELS, default=["embed"])
    one.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    one.set_defaults(run=turns)
    two = commands.add_parser("killed")
    two.add_argument("--bytes", type=float, default=1e9)
    two.add_argument("--ends", nargs="*", type=float, default=[300, 420], help="seconds until each kill")
    two.add_argument("--folder", type=Path, help="where the corpus and its vectors are put")
    two.set_defaults(run=killed)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
