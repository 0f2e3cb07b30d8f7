"""A model from one's own file: `korbert finetune` next to the plain way, at sizes from 8 rows a class.

    python -m benchmarks.quality.own_files --data $KORBERT_DATA [--sets NSMC ..] [--sizes 8 ..] [--ways quick default]

The plain way is logistic regression of scikit-learn on TF-IDF of characters and of Kiwi's morphemes (*words*), on
the vectors of `korbert-mini-embed` (*vectors*), and on all of them in one matrix (*both*), C by cross-validation. All
ways learn the same rows and answer the same test rows. Scores are the accuracy, or the micro F1 where a row has several
labels. "minus" is a way of korbert minus the best of the plain ways, with the standard error of the paired difference,
from 1,000 resamples of the test rows. "ECE" is its expected calibration error, "95 %" the share of labels that it gives
when asked for that precision, and how many of these are right, "macro" its macro F1 and the best one of the plain ways.
"""

import argparse
import contextlib
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import zstandard
from kiwipiepy import Kiwi
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import MultiLabelBinarizer

import korbert
from benchmarks import record
from korbert.tasks.metrics.calibration import expected_calibration_error
from korbert.tasks.sets.loading import load

SIZES = (8, 100, 300, 1_000, 3_000, 10_000)
PER_CLASS = 8  # the size that is a number of rows of each label
TRIED_C = (1.0, 3.0, 10.0, 30.0, 100.0)
MOST_COLUMNS = 200_000  # of characters, and of morphemes; long texts have millions
TOLERANCE = 1e-3  # of the gradient: with 1e-4, decisions take hours
WINDOW = 400  # characters of a long text that one vector stands for
RESAMPLES = 1_000
TEST_ROWS = 2_000
PRECISION = 95
_LONG = zstandard.ZstdDecompressor(max_window_size=1 << 27)

Label = str | list[str]


class Example(NamedTuple):
    """A row: its text, the second text of a pair or "", and its label or labels."""

    text: str
    pair: str
    label: Label


class Split(NamedTuple):
    """Training rows in an order of their own, and test rows."""

    train: list[Example]
    test: list[Example]


# --- the sets ---


def by_hash(examples: Sequence[Example]) -> list[Example]:
    """Sorts examples into an order that depends on the texts alone."""
    return sorted(examples, key=lambda one: blake2b(f"{one.text}\n{one.pair}".encode()).digest())


def known(name: str) -> Callable[[Path], Split]:
    """A known data set of one label a row."""

    def read(data: Path) -> Split:
        parts = load(name, data)
        train, scored = (
            [Example(row["text"], row.get("pair") or "", str(row["label"])) for row in rows]
            for rows in (parts.train, parts.test)
        )
        return Split(by_hash(train), by_hash(scored)[:TEST_ROWS])

    return read


def emotions(data: Path) -> Split:
    """KOTE: the first 4,000 rows of its validation file to learn, the last 1,000 to score."""
    folder = data / "tasks" / "kote"
    names = (folder / "labels.txt").read_text("utf-8").split("\n")
    rows = []
    for line in (folder / "val.tsv").read_text("utf-8").splitlines():
        _, text, numbers = line.split("\t")
        rows.append(Example(text, "", [names[int(number)] for number in numbers.split(",")]))
    return Split(by_hash(rows[:4_000]), rows[-1_000:])


def matters(data: Path) -> Split:
    """Whole court decisions by their matter (민사, 형사, ..); a fifth of them, by the hash of the text, to score."""
    with zstandard.open(data / "law" / "decisions.jsonl.zst", "rt", dctx=_LONG, encoding="utf-8") as lines:
        rows = by_hash([Example(row["text"], "", row["kind"]) for row in map(json.loads, lines)])
    return Split(rows[1_000:], rows[:1_000])


SETS: dict[str, Callable[[Path], Split]] = {
    "NSMC": known("nsmc"),
    "hate speech": known("hate-speech"),
    "SentiNeg": known("kobest-sentineg"),
    "question pairs": known("question-pair"),
    "KOTE": emotions,
    "court decisions": matters,
}


def of_size(train: Sequence[Example], size: int) -> list[Example]:
    """The first rows; of PER_CLASS, as many of each label, where a row counts for its first label."""
    if size != PER_CLASS:
        return list(train[:size])
    rows: dict[str, list[Example]] = {}
    for example in train:
        label = example.label if isinstance(example.label, str) else example.label[0]
        rows.setdefault(label, []).append(example)
    return by_hash([example for own in rows.values() for example in own[:size]])


# --- the plain way ---


class Features:
    """The columns of the plain way. Vectors and morphemes of a text are computed once."""

    def __init__(self) -> None:
        self.kiwi = Kiwi()
        self.embedder: Any = korbert.load("korbert-mini-embed")
        self.vectors: dict[str, NDArray[np.float32]] = {}
        self.morphemes: dict[str, str] = {}

    def fit(self, train: Sequence[Example], test: Sequence[Example]) -> dict[str, tuple[Any, Any]]:
        """Name of the way -> columns of the training rows and of the test rows."""
        self._compute([*train, *test])
        words = []
        for side in (0, 1) if train[0].pair else (0,):
            words += [self._tfidf(train, test, side, characters) for characters in (True, False)]
        joined = tuple(scipy.sparse.hstack(columns, format="csr") for columns in zip(*words, strict=True))
        vectors = tuple(np.stack([self._vector(one) for one in rows]) for rows in (train, test))
        both = tuple(
            scipy.sparse.hstack([sparse, scipy.sparse.csr_matrix(dense)], format="csr")
            for sparse, dense in zip(joined, vectors, strict=True)
        )
        return {"words": joined, "vectors": vectors, "both": both}  # type: ignore[dict-item]

    def _compute(self, examples: Sequence[Example]) -> None:
        texts = {text for one in examples for text in (one.text, one.pair)} - self.vectors.keys()
        windows = [
            (text, text[start : start + WINDOW]) for text in texts for start in range(0, max(len(text), 1), WINDOW)
        ]
        window_vectors: dict[str, list[Any]] = {text: [] for text in texts}
        for (text, _), vector in zip(windows, self.embedder.embed([part for _, part in windows]), strict=True):
            window_vectors[text].append(vector)
        for text, vectors_of_text in window_vectors.items():
            mean = np.mean(vectors_of_text, axis=0)
            self.vectors[text] = mean / max(float(np.linalg.norm(mean)), 1e-9)
            self.morphemes[text] = " ".join(f"{token.form}/{token.tag}" for token in self.kiwi.tokenize(text))

    def _vector(self, example: Example) -> NDArray[np.float32]:
        first = self.vectors[example.text]
        if not example.pair:
            return first
        second = self.vectors[example.pair]
        return np.concatenate([first, second, np.abs(first - second), first * second])

    def _tfidf(self, train: Sequence[Example], test: Sequence[Example], side: int, characters: bool) -> tuple[Any, Any]:
        if characters:
            counter = TfidfVectorizer(
                analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True, max_features=MOST_COLUMNS
            )
            texts = [[one[side] for one in rows] for rows in (train, test)]
        else:
            counter = TfidfVectorizer(
                token_pattern=r"\S+",
                lowercase=False,
                ngram_range=(1, 2),
                sublinear_tf=True,
                max_features=MOST_COLUMNS,
            )
            texts = [[self.morphemes[str(one[side])] for one in rows] for rows in (train, test)]
        return counter.fit_transform(texts[0]), counter.transform(texts[1])


def fit_plain(columns: tuple[Any, Any], train: Sequence[Example]) -> list[Label]:
    """Logistic regression, C by cross-validation."""
    labels = [one.label for one in train]
    if isinstance(labels[0], list):
        binarizer = MultiLabelBinarizer().fit(labels)
        targets = binarizer.transform(labels)
        model = _model_of_several(_c_of_several(columns[0], targets)).fit(columns[0], targets)
        return [list(names) for names in binarizer.inverse_transform(model.predict(columns[1]))]
    least = min(labels.count(label) for label in set(labels))
    if least < 2:  # no folds
        plain = LogisticRegression(C=10.0, max_iter=1_000).fit(columns[0], labels)
    else:
        plain = LogisticRegressionCV(
            Cs=TRIED_C,
            cv=min(5, least),
            scoring="accuracy",
            max_iter=1_000,
            tol=TOLERANCE,
            l1_ratios=(0,),
            use_legacy_attributes=False,
        ).fit(columns[0], labels)
    return [str(label) for label in plain.predict(columns[1])]


def _model_of_several(c: float) -> OneVsRestClassifier:
    """One logistic regression per label, solved in the dual: 44 labels of long rows take minutes instead of hours."""
    return OneVsRestClassifier(LogisticRegression(C=c, solver="liblinear", dual=True, max_iter=1_000, random_state=0))


def _c_of_several(columns: Any, targets: Any) -> float:
    """The C whose micro F1 is best on the last fifth of the rows."""
    num_heldout = max(1, columns.shape[0] // 5)

    def quality(c: float) -> float:
        model = _model_of_several(c).fit(columns[:-num_heldout], targets[:-num_heldout])
        predicted = model.predict(columns[-num_heldout:])
        return float(
            2 * (predicted & targets[-num_heldout:]).sum() / max(1, predicted.sum() + targets[-num_heldout:].sum())
        )

    return max(TRIED_C, key=quality)


# --- the default ---


WAYS: dict[str, dict[str, Any]] = {"quick": {"quick": True}, "default": {}}


class Answers(NamedTuple):
    """Labels of the test rows. error: expected calibration error. sure: labels given at PRECISION, None for others."""

    labels: list[Label]
    error: float
    sure: list[Label | None]


def fit_ours(way: str, train: Sequence[Example], test: Sequence[Example]) -> Answers:
    """What `korbert.finetune` makes of the rows in one of WAYS."""
    rows = []
    for one in train:
        row: dict[str, Any] = {"text": one.text, "label": one.label}
        if one.pair:
            row["pair"] = one.pair
        rows.append(row)
    with tempfile.TemporaryDirectory() as folder:
        several = {"several": True} if isinstance(train[0].label, list) else {}
        result = korbert.finetune(
            "korbert-mini", rows, output=Path(folder) / "model", baselines=False, **several, **WAYS[way]
        )
        texts: list[Any] = [(one.text, one.pair) if one.pair else one.text for one in test]
        model: Any = result.model
        predictions = model.predict(texts)
        sure: list[Any] = []
        with contextlib.suppress(korbert.errors.SettingsError):  # never so sure
            sure = model.predict(texts, abstain=PRECISION)
        return Answers(
            [labels_of(one) for one in predictions],
            calibration_error(predictions, test),
            [labels_of(one) for one in sure],
        )


def labels_of(result: Any) -> Any:
    return result.labels if hasattr(result, "labels") else result.label


def calibration_error(found: Sequence[Any], test: Sequence[Example]) -> float:
    """The expected calibration error of the predicted labels; with several labels, of the probability of each."""
    pairs = []
    for one, example in zip(found, test, strict=True):
        if isinstance(example.label, list):
            pairs += [(share, label in example.label) for label, share in one.probabilities.items()]
        else:
            pairs.append((one.probabilities[one.label], one.label == example.label))
    probabilities, outcomes = map(np.array, zip(*pairs, strict=True))
    return expected_calibration_error(probabilities, outcomes)


# --- figures ---


def hits(predictions: Sequence[Label], test: Sequence[Example]) -> NDArray[np.float64]:
    """(N, 3) correct, predicted and true labels of each row: the sums give the micro F1, of one label the accuracy."""
    counts = []
    for predicted, example in zip(predictions, test, strict=True):
        predicted_labels, true_labels = (
            {label} if isinstance(label, str) else set(label) for label in (predicted, example.label)
        )
        counts.append((len(predicted_labels & true_labels), len(predicted_labels), len(true_labels)))
    return np.array(counts, np.float64)


def micro_f1(counts: NDArray[np.float64]) -> float:
    correct, predicted, true = counts.sum(axis=0)
    return float(2 * correct / max(1.0, predicted + true))


def macro_f1(predictions: Sequence[Label], test: Sequence[Example]) -> float:
    """The mean F1 of the labels of the test rows."""
    predicted, true = (
        [[one] if isinstance(one, str) else one for one in side] for side in (predictions, [one.label for one in test])
    )
    binarizer = MultiLabelBinarizer().fit(true)
    known_labels = set(binarizer.classes_)
    predicted = [[label for label in row if label in known_labels] for row in predicted]
    return float(
        f1_score(binarizer.transform(true), binarizer.transform(predicted), average="macro", zero_division=0.0)
    )


def paired_error(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The standard error of the difference of two scores over the test rows."""
    rng = np.random.default_rng(0)
    draws = rng.integers(len(one), size=(RESAMPLES, len(one)))
    return float(np.std([micro_f1(one[rows]) - micro_f1(other[rows]) for rows in draws]))


def precision_of(answers: Answers, test: Sequence[Example]) -> str:
    """The share of labels that are given where PRECISION is asked for, and of these, of those that are right."""
    pairs = zip(answers.sure, test, strict=False)
    counts = hits(*zip(*[(label, one) for label, one in pairs if label], strict=True)) if any(answers.sure) else None
    if counts is None:
        return "0"
    correct, given, _ = counts.sum(axis=0)
    return f"{100 * given / hits(answers.labels, test)[:, 1].sum():.0f}: {100 * correct / given:.1f}"


def compared(
    name: str, split: Split, sizes: Sequence[int], features: Features, ours: Sequence[str]
) -> Iterator[list[str]]:
    """Prints and yields a row of the table for each size that the set has."""
    for size in sizes:
        if size > len(split.train) and size != PER_CLASS:
            continue
        train = of_size(split.train, size)
        began = time.perf_counter()
        ways = features.fit(train, split.test)
        plain = {way: fit_plain(columns, train) for way, columns in ways.items()}
        seconds = time.perf_counter() - began
        counts = {way: hits(predictions, split.test) for way, predictions in plain.items()}
        best = max(counts, key=lambda way: micro_f1(counts[way]))
        macro = max(macro_f1(predictions, split.test) for predictions in plain.values())
        cells = [name, f"{size} a class" if size == PER_CLASS else f"{size:,}"]
        cells += [f"{100 * micro_f1(counts[way]):.1f}" for way in ways]
        cells.append(f"{seconds:.0f}")
        for way in ours:
            began = time.perf_counter()
            answers = fit_ours(way, train, split.test)
            counts_of_way = hits(answers.labels, split.test)
            seconds = time.perf_counter() - began
            difference = micro_f1(counts_of_way) - micro_f1(counts[best])
            error = paired_error(counts_of_way, counts[best])
            cells += [
                f"{100 * micro_f1(counts_of_way):.1f}",
                f"{seconds:.0f}",
                f"{100 * difference:+.1f} ± {100 * error:.1f}",
                f"{100 * answers.error:.1f}",
                precision_of(answers, split.test),
                f"{100 * macro_f1(answers.labels, split.test):.1f}: {100 * macro:.1f}",
            ]
        print(f"| {' | '.join(cells)} |", flush=True)
        yield cells


def draw(columns: Sequence[str], rows: Sequence[Sequence[str]], path: Path) -> None:
    """Plots the scores of each set against its sizes as SVG: ours, and the best of the plain ways."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "korbert", "font.family": "sans-serif"}
    names = list(dict.fromkeys(row[0] for row in rows))
    figure, axes = pyplot.subplots(1, len(names), figsize=(2.6 * len(names), 2.8), layout="constrained")
    plain = [columns.index(way) for way in ("words", "vectors", "both")]
    for panel, name in zip(np.atleast_1d(axes), names, strict=True):
        set_rows = [row for row in rows if row[0] == name]
        places = range(len(set_rows))
        best = [max(float(row[column]) for column in plain) for row in set_rows]
        panel.plot(places, best, marker="o", color="0.6", label="best plain way")
        for way, color in (("quick", "C0"), ("default", "C3")):
            if way in columns:
                scores = [float(row[columns.index(way)]) for row in set_rows]
                panel.plot(places, scores, marker="o", color=color, label=way)
        panel.set_xticks(places, [row[1].replace(" a class", "/class") for row in set_rows], fontsize=7)
        panel.set_title(name, loc="left", fontsize=10)
        panel.spines[["top", "right"]].set_visible(False)
    np.atleast_1d(axes)[0].legend(fontsize=8, frameon=False)
    figure.savefig(path, format="svg", metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="*", choices=SETS, default=list(SETS))
    parser.add_argument("--sizes", nargs="*", type=int, default=SIZES)
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=["quick"])
    parser.add_argument("--plot", type=Path, help="an .svg file to draw the scores into")
    record.add_option(parser)
    arguments = parser.parse_args()
    columns = ["set", "rows", "words", "vectors", "both", "seconds"]
    for way in arguments.ways:
        columns += [way, "seconds", "minus", "ECE", f"{PRECISION} %", "macro"]
    print(f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")
    features = Features()
    rows: list[list[str]] = []
    for name in arguments.sets:
        rows += compared(name, SETS[name](arguments.data), arguments.sizes, features, arguments.ways)
    if arguments.plot:
        draw(columns, rows, arguments.plot)
    record.write(arguments.record, "own-files", [record.table("Own files", columns, rows)])


if __name__ == "__main__":
    main()
