"""Time of commands that should be instant: `korbert --help`, `status`, and a run where everything is fresh.

    python -m benchmarks.speed.startup [RECIPE] [--root artifacts]

Prints the median and the maximum of several runs, in seconds of wall time. Run the recipe once before.
"""

import argparse
import statistics
import subprocess
import sys
import time

from benchmarks import record

RUNS = 7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe", nargs="?", default="demo")
    parser.add_argument("--root", default="artifacts")
    record.add_option(parser)
    options = parser.parse_args()
    rows = []
    place = [options.recipe, "--root", options.root]
    for arguments, limit in ((["--help"], 0.4), (["status", *place], 2.0), (["run", *place], 2.0)):
        seconds = [_measure(arguments) for _ in range(RUNS)]
        summary = f"median {statistics.median(seconds):.2f} s, slowest {max(seconds):.2f} s, limit {limit} s"
        print(f"korbert {' '.join(arguments):<40} {summary}")
        rows.append([f"`korbert {arguments[0]}`", f"{statistics.median(seconds):.2f}", limit])
    record.write(options.record, "startup", [record.table(f"Median of {RUNS}", ["command", "seconds", "limit"], rows)])


def _measure(arguments: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "korbert", *arguments], check=True, capture_output=True)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
