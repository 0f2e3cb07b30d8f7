"""Gives `korbert-mini-nsmc` words: its encoder, with logistic regression on text vectors and on hashed terms.

    python -m benchmarks.box.nsmc_words OLD --train ratings_train.txt --output FOLDER [--unpacked FOLDER]

OLD is a classifier, packed or not, whose encoder was trained on 95 % of the reviews. The other 5 %, held out by a hash
of their texts, choose C of both models, the weight of words, and the temperature. The model of vectors is fitted on
30,000 training reviews, that of words on all of them, and once more with those held out, as it is packed (with
`korbert-mini` as its base). The last accuracy that is printed is therefore too high; those before it are not.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

import korbert
from korbert.modeling import LinearModel, load_model, pack, read_config, save_model
from korbert.system import cores
from korbert.tasks.files import ROLES, TaskRow, read_rows, rename_labels
from korbert.tasks.kinds import kind_of_task
from korbert.tasks.kinds.classification import Classification
from korbert.tasks.kinds.texts import LinearExamples, text_vectors
from korbert.tasks.linear import (
    CS,
    Column,
    LinearInputs,
    best_share,
    fit,
    losses_of,
    merits_of,
    scale_on,
    sum_of_scores,
)
from korbert.tasks.passages import encode_passages
from korbert.tasks.splits import limit, split_by_texts
from korbert.tokenization import AnyTokenizer

HELD_OUT = 0.05  # of the reviews, as in recipe `long`
VECTOR_ROWS = 30_000

_Scores = NDArray[np.float64]


class Fitted(NamedTuple):
    """A calibrated model of one column, its C, what its scores were multiplied by, and those of the held-out rows."""

    model: LinearModel
    c: float
    scale: float
    scores: _Scores


def examples_of(kind: Classification, rows: Sequence[TaskRow], tokenizer: AnyTokenizer) -> LinearExamples:
    passages = encode_passages(tokenizer, [row["text"] for row in rows])
    examples = kind.prepare(rows, [[passage] for passage in passages], tokenizer).examples
    assert isinstance(examples, LinearExamples)
    return examples


def inputs_of(reader: LinearModel, examples: LinearExamples, *, with_vectors: bool) -> LinearInputs:
    """The terms of rows, and their vectors."""
    if not with_vectors:
        return LinearInputs(examples.terms, np.empty((len(examples), 0), np.float32))

    texts = torch.from_numpy(text_vectors(reader, examples, device=torch.device("cpu")))
    with torch.inference_mode():
        return LinearInputs(examples.terms, reader.row_vectors(texts).numpy())


def scores_of(model: LinearModel, inputs: LinearInputs) -> _Scores:
    terms = inputs.terms
    rows = np.repeat(np.arange(len(inputs)), np.diff(terms.offsets))
    vectors = torch.from_numpy(inputs.vectors) if model.reads_vectors else None
    with torch.inference_mode():
        scores = model.scores(len(inputs), vectors, *map(torch.from_numpy, (terms.ids, terms.counts, rows)))
    return scores.numpy().astype(np.float64)


def said(scores: _Scores, targets: NDArray[np.int64]) -> str:
    return f"{100 * merits_of(scores, targets).mean():.2f} %, loss {losses_of(scores, targets).mean():.4f}"


def fit_column(
    column: Column, inputs: LinearInputs, targets: NDArray[np.int64], held_inputs: LinearInputs,
    held_targets: NDArray[np.int64], reader: LinearModel,
) -> "Fitted":  # fmt: skip
    """The calibrated model of a column with the C of the least loss on held-out rows."""
    best: Fitted | None = None
    least = np.inf
    for c in CS:
        model = fit(inputs, targets, 2, column, c, reader)
        raw = scores_of(model, held_inputs)
        scale = scale_on(raw, held_targets)
        print(f"{column}, C {c:g}: held-out rows {said(scale * raw, held_targets)}", flush=True)
        loss = float(losses_of(scale * raw, held_targets).mean())
        if loss >= least:
            break
        least, best = loss, Fitted(model.scaled(scale), c, scale, scale * raw)
    assert best is not None
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--unpacked", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(cores())

    classifier, tokenizer = load_model(arguments.old, "classification")
    kind = kind_of_task(read_config(arguments.old)["task"], str(arguments.old))
    assert isinstance(kind, Classification)
    kind = kind.model_copy(update={"rungs": ("words", "vectors")})
    roles = [ROLES["text"], rename_labels(ROLES["label"], kind.label_names)]
    reviews = read_rows(arguments.train, roles, form="tsv-plain", columns={"text": ("document",), "label": ("label",)})
    rows, held_rows = split_by_texts(reviews, HELD_OUT, kind.group_texts)
    vector_rows = limit(rows, VECTOR_ROWS, kind.group_texts)
    print(f"{len(rows):,} reviews, {len(held_rows):,} held out", flush=True)

    reader = LinearModel.on(classifier, 2, 0, 1).eval()
    all_inputs = inputs_of(reader, examples_of(kind, reviews.rows, tokenizer), with_vectors=False)
    numbers = {id(row): number for number, row in enumerate(reviews)}
    train_inputs = all_inputs.rows(np.array([numbers[id(row)] for row in rows], np.int64))
    vector_inputs, held_inputs = (
        inputs_of(reader, examples_of(kind, part.rows, tokenizer), with_vectors=True)
        for part in (vector_rows, held_rows)
    )
    all_targets, train_targets, vector_targets, held_targets = (
        kind.numbers([kind.target(row) for row in part]) for part in (reviews, rows, vector_rows, held_rows)
    )

    vectors = fit_column("vectors", vector_inputs, vector_targets, held_inputs, held_targets, reader)
    words = fit_column("words", train_inputs, train_targets, held_inputs, held_targets, reader)
    scores: dict[Column, _Scores] = {"vectors": vectors.scores, "words": words.scores}
    share = best_share(scores, held_targets)
    combined = sum_of_scores(scores, share)
    scale = scale_on(combined, held_targets)
    print(
        f"{share:g} words of {words.model.num_terms:,} terms: held-out rows {said(scale * combined, held_targets)}",
        flush=True,
    )

    words_of_all = fit(all_inputs, all_targets, 2, "words", words.c, reader).scaled(words.scale)
    model = vectors.model.with_words(words_of_all, share).scaled(scale)
    with tempfile.TemporaryDirectory() as folder:
        unpacked = arguments.unpacked or Path(folder) / "model"
        save_model(unpacked, model, tokenizer, kind.task())
        size = pack(unpacked, arguments.output, "korbert-mini")
    predictions = korbert.load(arguments.output).predict([row["text"] for row in held_rows])
    accuracy = np.mean(
        [prediction.label == kind.target(row) for prediction, row in zip(predictions, held_rows, strict=True)]
    )
    share = f"{100 * accuracy:.2f} %"
    print(f"packed: {model.num_terms:,} terms, {size / 1e6:.1f} MB, held-out rows, learned by words, {share}")


if __name__ == "__main__":
    main()
