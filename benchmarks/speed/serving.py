"""The service against the model's own methods, in turn: throughput, latency of a single text, overload.

    python -m benchmarks.speed.serving MODEL                                  64 clients, 60 seconds
    python -m benchmarks.speed.serving MODEL --seconds 600 --rounds 1         memory over ten minutes

1. Closed-loop clients that request vectors (base64), against `embed` on all texts. The clients are a process on the
   same cores. The bar is 65 %.
2. Single texts, one request at a time, against `embed` of one text. The bar is 1.4 times the model's own median.
3. Four times as many clients as queue places: how many are refused, how fast, and whether any waits forever.

Prints Markdown rows, each with the load of the machine at its end.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import record

ROOT = Path(__file__).resolve().parents[2]
REVIEWS = ROOT / "corpus" / "sample" / "reviews.jsonl"
BARS = {"texts a second": 0.65, "one text alone": 1.4}


class Reply(NamedTuple):
    code: int
    seconds: float
    texts: int


class Clients:
    """Clients of a service, each with a persistent connection."""

    def __init__(self, port: int, texts: list[str], texts_a_request: int) -> None:
        self.port, self.texts_a_request = port, texts_a_request
        self.bodies = cycle(
            json.dumps({"input": texts[at : at + texts_a_request], "encoding_format": "base64"}).encode()
            for at in range(0, len(texts), texts_a_request)
        )
        self.replies: list[Reply] = []

    async def run(self, clients: int, seconds: float) -> None:
        """Runs all clients for that long, and waits for pending answers."""
        end = time.perf_counter() + seconds
        await asyncio.gather(*(self._client(end) for _ in range(clients)))

    async def _client(self, end: float) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        while (began := time.perf_counter()) < end:
            code = await _ask(reader, writer, next(self.bodies))
            self.replies.append(Reply(code, time.perf_counter() - began, self.texts_a_request))
            if code == 429:
                await asyncio.sleep(0.1)  # less than it is told, to keep up the load
        writer.close()

    def seconds(self, code: int) -> list[float]:
        return sorted(reply.seconds for reply in self.replies if reply.code == code)


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes) -> int:
    writer.write(b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
    await reader.readexactly(length)
    return int(head[9:12])


@contextmanager
def served(model: Path, *options: str) -> Iterator[tuple[int, subprocess.Popen[str], float]]:
    """Port and process of a service of the model, and the seconds until it was ready."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "korbert", "serve", str(model), "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        yield int(line.rpartition(":")[2]), process, time.perf_counter() - began
    finally:
        process.terminate()
        process.wait()


class Model:
    """The model's own methods, in a separate process that sleeps between requests."""

    def __init__(self, model: Path, texts: list[str], precision: str) -> None:
        command = [sys.executable, "-m", "benchmarks.speed.serving", str(model), "--own", "--precision", precision]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        self.loading = self.ask(texts=texts)

    def ask(self, **question: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def own(folder: Path, precision: Any) -> None:
    """Measures the model's own methods: seconds to load Kiwi, texts per second, seconds of each single text."""
    import korbert

    model: Any = korbert.load(folder, "cpu", precision)
    texts: list[str] = []
    for line in sys.stdin:
        question = json.loads(line)
        if "texts" in question:
            texts = question["texts"]
            began = time.perf_counter()
            model.tokenizer.encode_pieces("가")
            answer: Any = time.perf_counter() - began
            model.embed(texts[:600])
        elif "seconds" in question:
            began, count = time.perf_counter(), 0
            while time.perf_counter() - began < question["seconds"]:
                count += len(model.embed(texts))
            answer = count / (time.perf_counter() - began)
        else:
            answer = []
            for text in texts[: question["alone"]]:
                began = time.perf_counter()
                model.embed(text)
                answer.append(time.perf_counter() - began)
        print(json.dumps(answer), flush=True)


def memory(process: subprocess.Popen[str]) -> float:
    """Resident memory in MB."""
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class Printed:
    """A table whose rows are printed as they are measured, each with the load of the machine at its end."""

    def __init__(self, title: str, *columns: str) -> None:
        self.title = title
        self.columns = [*columns, "load"]
        self.rows: list[list[str]] = []
        print(f"\n| {' | '.join(self.columns)} |\n{'|---' * len(self.columns)}|")

    def row(self, *cells: Any) -> None:
        self.rows.append([*map(str, cells), f"{os.getloadavg()[0]:.1f}"])
        print(f"| {' | '.join(self.rows[-1])} |", flush=True)

    def kept(self) -> dict[str, Any]:
        return record.table(self.title, self.columns, self.rows)


async def _watched(clients: Clients, number: int, seconds: float, process: subprocess.Popen[str]) -> list[float]:
    """Runs the clients, and samples the memory of the service eleven times."""
    running = asyncio.ensure_future(clients.run(number, seconds))
    sizes = []
    for _ in range(11):
        sizes.append(memory(process))
        await asyncio.sleep(seconds / 10.5)
    await running
    return sizes


def load(
    arguments: argparse.Namespace, texts: list[str], model: Model, port: int, process: subprocess.Popen[str]
) -> dict[str, Any]:
    """1: throughput."""
    columns = ("texts a request", "service, texts/s", "embed, texts/s", "ratio", "median s", "99 % s", "memory, MB")
    printed = Printed(f"{arguments.clients} clients", *columns)
    for texts_a_request in arguments.texts_a_request:
        ratios = []
        for _ in range(arguments.rounds):
            clients = Clients(port, texts, texts_a_request)
            began = time.perf_counter()
            sizes = asyncio.run(_watched(clients, arguments.clients, arguments.seconds, process))
            rate = sum(reply.texts for reply in clients.replies if reply.code == 200) / (time.perf_counter() - began)
            own_rate = model.ask(seconds=arguments.seconds)
            ratios.append(rate / own_rate)
            latencies = clients.seconds(200)
            memory_text = f"{sizes[0]:.0f}, {max(sizes):.0f}, {sizes[-1]:.0f}"
            middle, slow = statistics.median(latencies), latencies[int(0.99 * len(latencies))]
            printed.row(
                texts_a_request,
                f"{rate:,.0f}",
                f"{own_rate:,.0f}",
                f"{ratios[-1]:.2f}",
                f"{middle:.3f}",
                f"{slow:.3f}",
                memory_text,
            )
        print(f"median ratio {statistics.median(ratios):.2f} (bar: {BARS['texts a second']})")
    return printed.kept()


def alone(arguments: argparse.Namespace, texts: list[str], model: Model, port: int) -> dict[str, Any]:
    """2: single texts."""
    printed = Printed("One text alone", "one text alone", "median ms", "99 % ms")
    ratios = []
    for _ in range(arguments.rounds):
        clients = Clients(port, texts, 1)
        asyncio.run(_some(clients, arguments.alone))
        medians = []
        for name, seconds in (("service", clients.seconds(200)), ("embed", sorted(model.ask(alone=arguments.alone)))):
            medians.append(statistics.median(seconds))
            printed.row(name, f"{1000 * medians[-1]:.2f}", f"{1000 * seconds[int(0.99 * len(seconds))]:.2f}")
        ratios.append(medians[0] / medians[1])
    print(f"median ratio {statistics.median(ratios):.2f} (bar: {BARS['one text alone']})")
    return printed.kept()


async def _some(clients: Clients, number: int) -> None:
    """Runs one client with that many requests."""
    reader, writer = await asyncio.open_connection("127.0.0.1", clients.port)
    for body in islice(clients.bodies, number):
        began = time.perf_counter()
        code = await _ask(reader, writer, body)
        clients.replies.append(Reply(code, time.perf_counter() - began, 1))
    writer.close()


def overload(arguments: argparse.Namespace, texts: list[str]) -> dict[str, Any]:
    """3: overload."""
    columns = ("queue, texts", "clients", "answered", "refused", "refused: median ms", "99 % ms", "answered: 99 % ms")
    printed = Printed("Overload", *columns)
    with served(arguments.model, "--precision", arguments.precision, "--queue", str(arguments.queue)) as (port, _, _):
        clients = Clients(port, texts, 1)
        asyncio.run(asyncio.wait_for(clients.run(4 * arguments.queue, arguments.seconds), arguments.seconds + 60))
        answered, refused = clients.seconds(200), clients.seconds(429)
        assert len(answered) + len(refused) == len(clients.replies), "another code than 200 and 429"
        figures = [(refused, 0.5), (refused, 0.99), (answered, 0.99)]
        latencies = [
            f"{1000 * seconds[int(share * len(seconds))]:.1f}" if seconds else "-" for seconds, share in figures
        ]
        printed.row(arguments.queue, 4 * arguments.queue, f"{len(answered):,}", f"{len(refused):,}", *latencies)
    return printed.kept()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--seconds", type=float, default=60, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--texts-a-request", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--texts", type=int, default=5_000, help="reviews of the sample")
    parser.add_argument("--alone", type=int, default=500, help="texts that are asked for one by one")
    parser.add_argument("--queue", type=int, default=64, help="of the service that gets too much")
    parser.add_argument("--precision", default="auto", help="of both")
    parser.add_argument("--own", action="store_true", help=argparse.SUPPRESS)
    record.add_option(parser)
    arguments = parser.parse_args()
    arguments.model = arguments.model.absolute() if arguments.model.exists() else arguments.model  # else one in the box
    if arguments.own:
        own(arguments.model, arguments.precision)
        return
    with REVIEWS.open(encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in islice(lines, arguments.texts)]
    model = Model(arguments.model, texts, arguments.precision)
    with served(arguments.model, "--precision", arguments.precision) as (port, process, ready):
        print(f"ready after {ready:.1f} s, of which Kiwi takes {model.loading:.1f} s")
        tables = [load(arguments, texts, model, port, process), alone(arguments, texts, model, port)]
    assert model.process.stdin is not None
    model.process.stdin.close()
    tables.append(overload(arguments, texts))
    record.write(arguments.record, "serving", tables)


if __name__ == "__main__":
    main()
