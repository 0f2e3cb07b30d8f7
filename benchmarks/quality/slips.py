"""Labels that do not fit: how many of those turned round on purpose `korbert check` finds, next to the plain way.

    python -m benchmarks.quality.slips --data $KORBERT_DATA [--rows 3000 10000] [--seeds 0 1]

Rows are drawn from the training file of NSMC, each text once; 5 % of the labels are turned round. Both ways rank rows
by the probability that a model of the other rows gives to the label: ours is that of `korbert check`, the plain way
logistic regression of scikit-learn on TF-IDF of characters (1 to 4) and cross_val_predict. Given is the share of the
turned labels among the first 5 % of the rows, and among the first 10 %. NSMC has wrong labels of its own, which are
found, too, and count as misses here: "known" is what `korbert-mini-nsmc`, which learned 150,000 labels, finds among
2,000 test rows that it has not seen.
"""

import argparse
import csv
import random
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline

import korbert
from benchmarks import record
from korbert.pipelines.cli import run_command

TURNED = 0.05
SHARES = (0.05, 0.10)
TEST_ROWS = 2_000
NAMES = ("부정", "긍정")


def drawn(file: Path, count: int, seed: int) -> tuple[list[str], NDArray[np.int64], NDArray[np.bool_]]:
    """Texts, given labels, and which of them are turned round."""
    rows = pd.read_csv(file, sep="\t", quoting=csv.QUOTE_NONE, keep_default_na=False)
    rows = rows[rows.document.str.strip() != ""].drop_duplicates("document").sample(count, random_state=seed)
    turned = np.zeros(count, dtype=bool)
    turned[random.Random(seed).sample(range(count), round(TURNED * count))] = True
    labels = rows.label.to_numpy(np.int64)
    return list(rows.document), np.where(turned, 1 - labels, labels), turned


def found(order: NDArray[np.int64], turned: NDArray[np.bool_]) -> list[str]:
    """The share of turned labels among the first rows of an order, in percent."""
    return [f"{100 * turned[order[: round(share * len(turned))]].sum() / turned.sum():.1f}" for share in SHARES]


def checked(texts: list[str], labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """The order of the rows by `korbert check`; rows that it does not list come last."""
    with tempfile.TemporaryDirectory() as folder:
        file, output = Path(folder, "rows.csv"), Path(folder, "found.csv")
        with file.open("w", encoding="utf-8", newline="") as opened:
            table = csv.writer(opened)
            table.writerow(("text", "label"))
            table.writerows((text, NAMES[label]) for text, label in zip(texts, labels, strict=True))
        assert run_command(["check", str(file), "--output", str(output)]) == 0
        listed = pd.read_csv(output)
    doubtful = listed[listed.probability.notna()]
    numbers = doubtful.line.to_numpy() - 2  # texts of NSMC have one line, and the first is that of names
    return np.concatenate([numbers, np.setdiff1d(np.arange(len(texts)), numbers)])


def plain(texts: list[str], labels: NDArray[np.int64]) -> NDArray[np.int64]:
    words = TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 4), sublinear_tf=True, min_df=2)
    model = make_pipeline(words, LogisticRegression(C=3))
    shares = cross_val_predict(model, texts, labels, cv=5, method="predict_proba")
    return np.argsort(shares[np.arange(len(labels)), labels], kind="stable")


def known(texts: list[str], labels: NDArray[np.int64]) -> NDArray[np.int64]:
    model = korbert.load("korbert-mini-nsmc")
    shares = [one.probabilities[NAMES[label]] for one, label in zip(model.predict(texts), labels, strict=True)]
    return np.argsort(shares, kind="stable")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, nargs="*", default=[3_000, 10_000])
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1])
    record.add_option(parser)
    arguments = parser.parse_args()
    columns = ["rows", "draw", "korbert check, first 5 %", "first 10 %", "plain, first 5 %", "first 10 %"]
    print(f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")
    rows = []
    for count in arguments.rows:
        for seed in arguments.seeds:
            texts, labels, turned = drawn(arguments.data / "nsmc" / "ratings_train.txt", count, seed)
            shares = [*found(checked(texts, labels), turned), *found(plain(texts, labels), turned)]
            rows.append([f"{count:,}", str(seed), *shares])
            print(f"| {' | '.join(rows[-1])} |", flush=True)
    texts, labels, turned = drawn(arguments.data / "nsmc" / "ratings_test.txt", TEST_ROWS, 0)
    known_shares = found(known(texts, labels), turned)
    rows.append([f"{TEST_ROWS:,} of the test file, by korbert-mini-nsmc", "0", *known_shares, "", ""])
    print(f"| {' | '.join(rows[-1])} |")
    record.write(arguments.record, "slips", [record.table("Labels turned round that are found, %", columns, rows)])


if __name__ == "__main__":
    main()
