"""Seconds to the first paint of the page of `korbert look`, opened from the disk in headless Chromium.

    python -m benchmarks.speed.page MODEL [--pieces 128 512] [--rounds 5]

The text is a document of the sample, cut to that many pieces. Prints the size of the page, the first contentful paint
that the browser reports, and the time until a head is drawn; medians and ranges, each round with a new context.
"""

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import sync_playwright

import korbert
from benchmarks import record
from korbert.pipelines.cli import run_command

ROOT = Path(__file__).resolve().parents[2]
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
QUIET = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking")


def text_of(model: Path, pieces: int) -> str:
    """The beginning of a long document that has this many pieces, special tokens included."""
    tokenizer = korbert.load(model).tokenizer
    with (ROOT / "corpus" / "sample" / "wiki.jsonl").open(encoding="utf-8") as lines:
        text = max((json.loads(line)["text"] for line in lines), key=len).replace("\n", " ")
    encoding = tokenizer.encode(text, max_length=pieces)
    return str(text[: encoding.spans[-2][1]])


def shown(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds):.2f} ({min(seconds):.2f} to {max(seconds):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--pieces", type=int, nargs="+", default=[128, 512])
    parser.add_argument("--rounds", type=int, default=5)
    record.add_option(parser)
    arguments = parser.parse_args()
    columns = ["pieces", "page, MB", "first paint, s", "head drawn, s"]
    print(f"| {' | '.join(columns)} |\n|---|---|---|---|")
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=list(QUIET))
        for pieces in arguments.pieces:
            page = Path(folder) / f"{pieces}.html"
            code = run_command(["look", str(arguments.model), text_of(arguments.model, pieces), "--html", str(page)])
            assert code == 0
            paints, drawings = [], []
            for _ in range(arguments.rounds):
                with browser.new_context() as context:
                    tab = context.new_page()
                    began = time.perf_counter()
                    tab.goto(page.as_uri())
                    tab.wait_for_selector("#room > *")
                    drawings.append(time.perf_counter() - began)
                    paints.append(tab.evaluate(PAINT) / 1000)
            rows.append([str(pieces), f"{page.stat().st_size / 1e6:.1f}", shown(paints), shown(drawings)])
            print(f"| {' | '.join(rows[-1])} |", flush=True)
        record.write(arguments.record, "page", [record.table(f"Chromium {browser.version}", columns, rows)])
        browser.close()


if __name__ == "__main__":
    main()
