"""Time and peak memory of learning a vocabulary from the counts of a corpus.

    python -m benchmarks.speed.learning artifacts/small/vocab/counts.parquet

The bars are 60 s and 1 GB for 102,400 entries.
"""

import argparse
import resource
import time
from pathlib import Path

from benchmarks import record
from korbert.corpus.counts import form_counts
from korbert.tokenization import VocabularySettings, learn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("counts", type=Path, help="counts.parquet of the stage vocab")
    parser.add_argument("--size", type=int, default=102_400, help="entries")
    record.add_option(parser)
    arguments = parser.parse_args()
    settings = VocabularySettings(size=arguments.size)
    begin = time.perf_counter()
    model = learn(form_counts(arguments.counts, settings), settings)
    seconds = time.perf_counter() - begin
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{arguments.size:,} entries, {len(model):,} bytes: {seconds:.1f} s, {memory:,.0f} MB")
    rows = [["seconds", f"{seconds:.1f}"], ["memory", f"{memory:,.0f} MB"]]
    record.write(arguments.record, "learning", [record.table(f"{arguments.size:,} entries", ["what", "figure"], rows)])


if __name__ == "__main__":
    main()
