"""The models in the box next to the unpacked ones that they were packed from.

    python benchmarks/box.py --root ROOT --data DATA [--rows 50000] [--questions 1817]

ROOT holds long/, the artifacts of `korbert run long`. For each pair this prints the size on
disk, the time that `korbert.load` takes in a new process (median of 5), and a score: how many of 1,000 gaps in test
reviews both models fill with the same word, accuracy on NSMC's test set, or exact match and F1 on the KorQuAD articles
held out by `split_by_article`.
"""

import argparse
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from nsmc_files import read_reviews

import korbert
from korbert.folders import model_folder
from korbert.tasks import korquad
from korbert.tasks.metrics.question_answering import KORQUAD, answer_scores
from korbert.tasks.splits import split_by_article

PAIRS = {"korbert-mini": "pretrain", "korbert-mini-nsmc": "tasks.reviews", "korbert-mini-korquad": "tasks.reader"}
LOAD = (
    "import time; start = time.perf_counter(); import korbert; korbert.load({!r}); print(time.perf_counter() - start)"
)


def seconds_to_load(model: str) -> float:
    command = [sys.executable, "-c", LOAD.format(model)]
    return statistics.median(float(subprocess.run(command, capture_output=True, text=True).stdout) for _ in range(5))


def megabytes(model: str) -> float:
    return sum(file.stat().st_size for file in model_folder(model).rglob("*") if file.is_file()) / 1e6


def reviews(data: Path, rows: int) -> list[tuple[str, int]]:
    """(text, label) of evenly spaced rows of the test set."""
    table = read_reviews(data / "nsmc" / "ratings_test.txt")
    some = table[:: len(table) // rows][:rows]
    return list(zip(some["text"], some["label"], strict=True))


def filled(model: str, texts: Sequence[str]) -> list[str]:
    """The first guess for the second word of each text."""
    masked = [" ".join([text.split()[0], "[MASK]", *text.split()[2:]]) for text in texts]
    return [gaps[0][0].piece for gaps in korbert.load(model).fill(masked, top=1)]


def accuracy(model: str, rows: Sequence[tuple[str, int]]) -> float:
    found = korbert.load(model).predict([text for text, _ in rows])
    return 100 * statistics.fmean((one.label == "긍정") == label for one, (_, label) in zip(found, rows, strict=True))


def answers(model: str, data: Path, count: int) -> tuple[float, float]:
    """Exact match and F1, in percent."""
    _, valid = split_by_article(korquad.read(data / "korquad1" / "KorQuAD_v1.0_dev.json"))
    asked = valid.rows[:: len(valid) // count][:count]
    found = korbert.load(model).answer([row["question"] for row in asked], [row["context"] for row in asked])
    golds = [[gold.text for gold in row["answers"]] for row in asked]
    exact, f1 = answer_scores([one.answer for one in found], golds, KORQUAD)
    return 100 * exact.mean(), 100 * f1.mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--questions", type=int, default=1_817)
    given = parser.parse_args()
    some = [text for text, _ in reviews(given.data, 2_000) if len(text.split()) > 2][:1_000]
    for name, stage in PAIRS.items():
        models = (name, str(given.root / "long" / stage / "model"))
        print(f"{name}: packed, unpacked")
        print(f"  MB                {' '.join(f'{megabytes(model):.1f}' for model in models)}")
        print(f"  seconds to load   {' '.join(f'{seconds_to_load(model):.2f}' for model in models)}", flush=True)
        if stage == "pretrain":
            first, second = (filled(model, some) for model in models)
            print(f"  same first guess  {sum(map(str.__eq__, first, second))} of {len(first)}", flush=True)
        elif stage == "tasks.reader":
            for model in models:
                print(
                    f"  EM, F1            {' '.join(f'{x:.2f}' for x in answers(model, given.data, given.questions))}"
                )
        else:
            rows = reviews(given.data, given.rows)
            print(f"  accuracy          {' '.join(f'{accuracy(model, rows):.2f}' for model in models)}", flush=True)


if __name__ == "__main__":
    main()
