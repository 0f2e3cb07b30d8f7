"""Entities from one's own file: `korbert finetune` next to a CRF on morphemes, from 100 sentences of KLUE on.

    python -m benchmarks.quality.own_entities --data $KORBERT_DATA [--sizes 100 ..] [--ways quick default encoder]

The plain way is python-crfsuite (`pip install python-crfsuite`) on features of characters: the character, three to each
side, the two pairs it is in, whether it is a digit; form and tag of its morpheme by Kiwi, whether it begins it; form
and tag of two morphemes to each side. All ways learn the first sentences of the training file, and are scored on the
first 1,000 of the evaluation file: F1 of whole entities, macro (mean over the labels) and micro. "minus" is the macro
F1 of a way of korbert minus that of the plain way, with the standard error of the paired difference from 1,000
resamples of the sentences. By default korbert also tries `korbert-mini-ner`, which has learned these very sentences:
that is the way "box"; the others do without.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from kiwipiepy import Kiwi
from numpy.typing import NDArray

import korbert
from benchmarks import record
from korbert.system import package
from korbert.tasks.metrics.token_classification import entity_f1, span_counts, tag_f1
from korbert.tasks.sets.loading import load
from korbert.tasks.token_classification import read_bio, write_bio

SIZES = (100, 500, 5_000)
TEST_ROWS = 1_000
RESAMPLES = 1_000
WAYS: dict[str, dict[str, Any]] = {
    "quick": {"quick": True, "embedder": ""},
    "default": {"embedder": ""},
    "encoder": {"only": "encoder"},
    "box": {},
}
SETTINGS = {"c1": 0.1, "c2": 0.01, "max_iterations": 100}

Sentence = tuple[str, list[str]]  # its text, and a tag for each character


def features(text: str, kiwi: Kiwi) -> list[list[str]]:
    """The features of each character."""
    morphemes = kiwi.tokenize(text)
    owner = np.full(len(text), -1)
    for number, token in enumerate(morphemes):
        span = owner[token.start : token.end]
        span[span < 0] = number
    padded = f"###{text}###"
    rows = []
    last = -1
    for place, character in enumerate(text):
        neighbours = padded[place : place + 7]
        row = [f"{offset}:{neighbour}" for offset, neighbour in zip(range(-3, 4), neighbours, strict=True)]
        row += [f"before:{neighbours[2:4]}", f"after:{neighbours[3:5]}", f"digit:{character.isdigit()}"]
        number = int(owner[place])
        if number >= 0:
            last = number
            token = morphemes[number]
            begins = token.start == place
            row += [f"form:{token.form}", f"tag:{token.tag}", f"begins:{begins} {token.tag}"]
        for offset in (-2, -1, 1, 2):
            # A space is after the morpheme before it.
            morpheme_number = last + offset + (number < 0 and offset < 0)
            if 0 <= morpheme_number < len(morphemes):
                row += [
                    f"form {offset}:{morphemes[morpheme_number].form}",
                    f"tag {offset}:{morphemes[morpheme_number].tag}",
                ]
        rows.append(row)
    return rows


def fit_plain(train: Sequence[Sentence], test: Sequence[Sentence], kiwi: Kiwi) -> list[list[str]]:
    pycrfsuite: Any = package("pycrfsuite", "the plain way")
    trainer = pycrfsuite.Trainer(verbose=False)
    for text, tags in train:
        trainer.append(features(text, kiwi), tags)
    trainer.set_params(SETTINGS)
    with tempfile.TemporaryDirectory() as folder:
        model = f"{folder}/model"
        trainer.train(model)
        tagger = pycrfsuite.Tagger()
        tagger.open(model)
        return [tagger.tag(features(text, kiwi)) for text, _ in test]


def fit_ours(way: str, train: Sequence[Sentence], test: Sequence[Sentence]) -> list[list[str]]:
    """What `korbert.finetune` makes of the sentences in one of WAYS."""
    rows = [{"text": text, "spans": [list(span) for span in read_bio(tags)]} for text, tags in train]
    with tempfile.TemporaryDirectory() as folder:
        result = korbert.finetune("korbert-mini", rows, output=Path(folder) / "model", baselines=False, **WAYS[way])
        predictions = result.model.tag([text for text, _ in test])
        return [
            write_bio([(span.start, span.end, span.label) for span in spans], len(text))
            for spans, (text, _) in zip(predictions, test, strict=True)
        ]


def counts_of(predicted: Sequence[Sequence[str]], test: Sequence[Sentence]) -> NDArray[np.int64]:
    """(N, labels, 3) right, predicted and true entities of each sentence."""
    labels = sorted({tag[2:] for _, tags in test for tag in tags if tag != "O"})
    gold = [read_bio(tags) for _, tags in test]
    return np.asarray(span_counts(gold, [read_bio(tags) for tags in predicted], labels))


def macro(counts: NDArray[np.int64]) -> float:
    return float(tag_f1(counts.sum(axis=0)) or 0.0)


def micro(counts: NDArray[np.int64]) -> float:
    return float(entity_f1(counts.sum(axis=0)) or 0.0)


def paired_error(one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    """The standard error of the difference of two macro F1 over the sentences."""
    rng = np.random.default_rng(0)
    draws = rng.integers(len(one), size=(RESAMPLES, len(one)))
    return float(np.std([macro(one[rows]) - macro(other[rows]) for rows in draws]))


def compared(
    train: list[Sentence], test: list[Sentence], sizes: Sequence[int], ways: Sequence[str]
) -> Iterator[list[str]]:
    """Prints and yields a row of the table for each size and way."""
    kiwi = Kiwi()
    for size in sizes:
        began = time.perf_counter()
        plain = counts_of(fit_plain(train[:size], test, kiwi), test)
        row = [f"{size:,}", "CRF on morphemes", f"{100 * macro(plain):.1f}", f"{100 * micro(plain):.1f}"]
        row += ["", f"{time.perf_counter() - began:.0f}"]
        for way in [None, *ways]:
            if way is not None:
                began = time.perf_counter()
                counts = counts_of(fit_ours(way, train[:size], test), test)
                seconds = time.perf_counter() - began
                difference, error = macro(counts) - macro(plain), paired_error(counts, plain)
                row = [f"{size:,}", way, f"{100 * macro(counts):.1f}", f"{100 * micro(counts):.1f}"]
                row += [f"{100 * difference:+.1f} ± {100 * error:.1f}", f"{seconds:.0f}"]
            print(f"| {' | '.join(row)} |", flush=True)
            yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sizes", nargs="*", type=int, default=SIZES)
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=["quick", "default"])
    record.add_option(parser)
    arguments = parser.parse_args()
    parts = load("klue-ner", arguments.data)
    train, test = ([(row["text"], list(row["tags"])) for row in rows] for rows in (parts.train, parts.test))
    columns = ["sentences", "way", "macro F1", "F1", "minus", "seconds"]
    print(f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")
    rows = list(compared(train[: max(arguments.sizes)], test[:TEST_ROWS], arguments.sizes, arguments.ways))
    record.write(arguments.record, "own-entities", [record.table("Entities", columns, rows)])


if __name__ == "__main__":
    main()
