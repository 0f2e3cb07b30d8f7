"""Labels where there are none: `korbert.zero_shot` by the names of labels, and `korbert.suggest` next to random rows.

    python -m benchmarks.quality.labelling names --data $KORBERT_DATA [--sets NSMC ..]
    python -m benchmarks.quality.labelling rows --data $KORBERT_DATA [--sets NSMC ..] [--seeds 3]

The sets are those of one label per text of `own_files.py`. `names`: a model learns from 5,000 texts (of decisions
300) without their labels, and from the names below, written down before any score was seen; "described": with a
sentence on each label, too. `rows`: 200 rows are labelled, 50 at a time, as `suggest` proposes them: first without a
classifier, then with the one fitted on the rows so far. `korbert.finetune` with `quick` learns them, and as many rows
drawn at random from the same pool of 3,000.
"""

import argparse
import random
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, f1_score

import korbert
from benchmarks import record
from benchmarks.quality.own_files import SETS, Example, Split, calibration_error

NAMED = {  # set -> label in the data -> (name, description)
    "NSMC": {"부정": ("부정", "영화가 재미없고 별로라고 말한다"), "긍정": ("긍정", "영화가 재미있고 좋다고 말한다")},
    "hate speech": {
        "none": ("정상", "예의를 지킨 평범한 댓글이다"),
        "offensive": ("공격적", "무례하고 비꼬는 댓글이다"),
        "hate": ("혐오", "욕설과 비하로 남을 혐오하는 댓글이다"),
    },
    "SentiNeg": {"0": ("부정", "물건이 마음에 들지 않아 불만이다"), "1": ("긍정", "물건이 마음에 들어 만족한다")},
    "court decisions": {
        "민사": ("민사", "개인 사이의 돈과 재산에 관한 다툼이다"),
        "형사": ("형사", "죄를 저지른 사람을 처벌하는 사건이다"),
        "일반행정": ("일반행정", "행정기관의 처분에 관한 다툼이다"),
        "세무": ("세무", "세금 부과에 관한 다툼이다"),
        "특허": ("특허", "특허와 상표의 권리에 관한 다툼이다"),
        "가사": ("가사", "이혼과 상속 등 가족에 관한 다툼이다"),
    },
}
MOST_TEXTS = 5_000  # that a model learns from without their labels
MOST_LONG_TEXTS = 300  # the same of decisions, and those that are scored
POOL = 3_000
STEP, ROUNDS = 50, 4


def split_of(name: str, data: Path) -> Split:
    """Rows with one of the labels, under their names."""
    split = SETS[name](data)
    names = {label: named for label, (named, _) in NAMED[name].items()}
    train, test = (
        [one._replace(label=names[label]) for one in part if isinstance(label := one.label, str) and label in names]
        for part in split
    )
    return Split(train[:MOST_LONG_TEXTS], test[:MOST_LONG_TEXTS]) if name == "court decisions" else Split(train, test)


def scored(model: Any, test: Sequence[Example]) -> tuple[float, float, float]:
    """Accuracy, macro F1 and expected calibration error, in percent."""
    predictions = model.predict([one.text for one in test])
    true_labels, predicted_labels = [one.label for one in test], [one.label for one in predictions]
    macro = f1_score(true_labels, predicted_labels, average="macro", labels=sorted(set(true_labels)), zero_division=0)
    return 100 * accuracy_score(true_labels, predicted_labels), 100 * macro, 100 * calibration_error(predictions, test)


def by_names(name: str, split: Split) -> list[str]:
    texts = [one.text for one in split.train[:MOST_TEXTS]]
    labels = [named for named, _ in NAMED[name].values()]
    described = dict(NAMED[name].values())
    majority = max(Counter(one.label for one in split.test).values())
    row = [name, f"{len(split.test):,}", f"{100 * majority / len(split.test):.1f}"]
    for descriptions in ({}, described):
        began = time.perf_counter()
        model = korbert.zero_shot(labels, texts, descriptions)
        seconds = time.perf_counter() - began
        accuracy, macro, error = scored(model, split.test)
        row += [f"{accuracy:.1f}", f"{macro:.1f}", f"{error:.1f}", f"{seconds:.0f}"]
    return row


def fitted(rows: Sequence[Example]) -> Any:
    labelled = [(one.text, one.label) for one in rows]
    return korbert.finetune("korbert-mini", labelled, quick=True, baselines=False).model


def suggested(pool: Sequence[Example], test: Sequence[Example]) -> NDArray[np.float64]:
    """(ROUNDS, 3) scores of the classifier after each round."""
    unlabelled = list(pool)
    rows: list[Example] = []
    model: Any = "korbert-mini-embed"
    curve = []
    for _ in range(ROUNDS):
        places = {one.place for one in korbert.suggest(model, [one.text for one in unlabelled], STEP)}
        rows += [unlabelled[place] for place in places]
        unlabelled = [one for place, one in enumerate(unlabelled) if place not in places]
        if len({one.label for one in rows}) > 1:
            model = fitted(rows)
            curve.append(scored(model, test))
        else:  # nothing can be learned yet
            curve.append((np.nan,) * 3)
    return np.array(curve)


def drawn(pool: Sequence[Example], test: Sequence[Example]) -> NDArray[np.float64]:
    """(ROUNDS, 3) scores of classifiers of as many rows of the pool as `suggested` has after each round."""
    return np.array([scored(fitted(pool[: STEP * rounds]), test) for rounds in range(1, ROUNDS + 1)])


def by_rows(name: str, split: Split, seeds: int) -> list[list[str]]:
    """The learning curves: a row for each number of labels."""
    curves = []
    for seed in range(seeds):
        pool = random.Random(seed).sample(list(split.train), min(POOL, len(split.train)))
        curves.append((drawn(pool, split.test), suggested(pool, split.test)))
    random_rows, chosen = (np.stack(side) for side in zip(*curves, strict=True))
    table = []
    for place in range(ROUNDS):
        row = [name, str(STEP * (place + 1)), str(seeds)]
        for metric in range(2):
            gains = (chosen - random_rows)[:, place, metric]
            spread = float(gains.std(ddof=1)) / seeds**0.5 if seeds > 1 else 0.0
            row += [f"{random_rows[:, place, metric].mean():.1f}", f"{gains.mean():+.1f} ± {spread:.1f}"]
        table.append(row)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("names", "rows"))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="*", choices=NAMED, default=list(NAMED))
    parser.add_argument("--seeds", type=int, default=3)
    record.add_option(parser)
    arguments = parser.parse_args()
    if arguments.what == "names":
        measures = ("accuracy", "macro F1", "ECE", "seconds")
        columns = ["set", "test rows", "majority", *measures, *(f"described: {measure}" for measure in measures)]
    else:
        columns = ["set", "labels", "seeds", "accuracy, random", "suggested", "macro F1, random", "suggested"]
    print(f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")
    rows = []
    for name in arguments.sets:
        split = split_of(name, arguments.data)
        new_rows = [by_names(name, split)] if arguments.what == "names" else by_rows(name, split, arguments.seeds)
        for row in new_rows:
            print(f"| {' | '.join(row)} |", flush=True)
        rows += new_rows
    record.write(
        arguments.record, f"labelling-{arguments.what}", [record.table("Labels where there are none", columns, rows)]
    )


if __name__ == "__main__":
    main()
