"""The best layer and pooling for vectors without training, and the gain of vectors over words in search.

    python -m benchmarks.quality.vectors MODEL --data $KORBERT_DATA [--rows 2000] [--trained FOLDER ..]

Prints two tables in Markdown. The first: Spearman of cosines on KorSTS dev and test and KLUE-STS dev, and the accuracy
on NSMC test of a logistic regression on frozen vectors (as many training rows, C chosen on a tenth of them), for each
layer and pooling. The best on KorSTS dev is marked: choices are made only there. The second: retrieval of the
counterpart of each question or sentence among all others, by BM25, by the vectors of an index, and by both. --trained
adds rows of models that were trained for vectors.
"""

import argparse
import json
import random
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, product
from pathlib import Path
from typing import Any

import numpy as np
import torch
import zstandard
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

import korbert
from benchmarks import record
from benchmarks.nsmc_files import read_reviews
from benchmarks.quality.ranking import ndcg_at, recall_at, reciprocal_rank
from korbert.model import Model
from korbert.search import Index
from korbert.tasks import korquad
from korbert.tasks.metrics.regression import spearman
from korbert.tasks.sets.loading import load
from korbert.training.examples import Examples, by_length
from korbert.training.scoring import model_inputs
from korbert.vectors import POOLINGS
from korbert.vectors.encoder import to_unit_length, weights_of

Vectors = NDArray[np.float32]
Pairs = tuple[list[str], list[str], NDArray[Any]]
_LONG = zstandard.ZstdDecompressor(max_window_size=1 << 27)
TRIED_C = (0.01, 0.1, 1.0, 10.0)


def sts(rows: Iterable[Any], count: int) -> Pairs:
    """First texts, second texts and scores of the first rows."""
    first_rows = list(islice(rows, count))
    return (
        [row["text"] for row in first_rows],
        [row["pair"] for row in first_rows],
        np.array([row["score"] for row in first_rows]),
    )


def ways(model: Model) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and settings of each layer and pooling; combinations of layers only with the mean."""
    layers = range(model.network.config.num_hidden_layers + 1)
    for pooling, layer in product(POOLINGS, reversed(layers)):
        yield f"{pooling}, layer {layer}", {"layer": layer, "pooling": pooling}
    last = tuple(layers)[-4:]
    for mix in ("mean", "concat"):
        yield f"mean, {mix} of layers {last[0]} to {last[-1]}", {"layer": last, "mix": mix}
    top = layers[-1]
    yield f"mean without special tokens, layer {top}", {"layer": top, "special_tokens": False}


def all_ways(model: Model, texts: Sequence[str], tried: Sequence[dict[str, Any]]) -> list[Vectors]:
    """The vectors of the texts in each way, (N, D). All layers are computed once."""
    encodings = model.tokenizer.encode_batch(texts, max_length=model.max_length, workers=0)
    rows = ((encoding.input_ids, encoding.boundaries) for encoding in encodings)
    examples = Examples.of_rows(rows, [0] * len(texts), model.tokenizer.pad_id)
    vectors_of_way: list[list[Any]] = [[None] * len(texts) for _ in tried]
    for numbers in by_length(examples.lengths, 32):
        batch = examples.batch(numbers)
        with torch.inference_mode():
            layers = model.network.encoder.all_layers(**model_inputs(batch)).float()
        for way, settings_of_way in enumerate(tried):
            settings = model.vector_settings(**settings_of_way)
            way_layers = layers[list(settings.layer_indices(len(layers) - 1))]
            hidden = torch.cat(list(way_layers), dim=-1) if settings.mix == "concat" else way_layers.mean(dim=0)
            weights = weights_of(batch["attention_mask"], settings.special_tokens)
            for number, vector in zip(numbers, POOLINGS[settings.pooling].pool(hidden, weights).numpy(), strict=True):
                vectors_of_way[way][number] = vector
    return [np.stack(own) for own in vectors_of_way]


def correlation(sides: Sequence[Vectors], scores: NDArray[Any]) -> float:
    first, second = map(to_unit_length, sides)
    return 100 * (spearman(scores, (first * second).sum(axis=1)) or 0.0)


def regression(train: tuple[Vectors, Any], test: tuple[Vectors, Any]) -> float:
    """Test accuracy of logistic regression on standardized vectors, with C chosen on the last tenth of train."""
    (x, y), num_heldout = train, len(train[1]) // 10
    mean, deviation = x.mean(axis=0), np.maximum(x.std(axis=0), 1e-6)
    x = (x - mean) / deviation

    def fitted(c: float, vectors: Vectors, labels: Any) -> LogisticRegression:
        return LogisticRegression(C=c, max_iter=300).fit(vectors, labels)

    best = max(
        TRIED_C, key=lambda c: fitted(c, x[:-num_heldout], y[:-num_heldout]).score(x[-num_heldout:], y[-num_heldout:])
    )
    return 100 * float(fitted(best, x, y).score((test[0] - mean) / deviation, test[1]))


def layers_and_poolings(model: Model, data: Path, rows: int) -> dict[str, Any]:
    """Prints the first table, and gives it."""
    parts, dev = load("korsts", data), load("klue-sts", data)
    assert parts.valid is not None
    assert dev.valid is not None
    # Without its training file, which was not at hand, KLUE-STS dev is cut in three: together they are all of it.
    klue_rows = chain(dev.train, dev.valid, dev.test)
    korsts_dev, korsts, klue = sts(parts.valid, rows), sts(parts.test, rows), sts(klue_rows, rows)
    tables = [read_reviews(data / "nsmc" / f"ratings_{part}.txt")[:rows] for part in ("train", "test")]
    names, tried = map(list, zip(*ways(model), strict=True))
    labels, scores = [own["label"].to_numpy() for own in tables], [pairs[2] for pairs in (korsts_dev, korsts, klue)]
    vectors = [all_ways(model, list(own["text"]), tried) for own in tables]
    sides = [[all_ways(model, side, tried) for side in pairs[:2]] for pairs in (korsts_dev, korsts, klue)]

    results = []
    for way, (name, settings) in enumerate(zip(names, tried, strict=True)):
        figures = [correlation([side[way] for side in own], score) for own, score in zip(sides, scores, strict=True)]
        train, test = ((own[way], label) for own, label in zip(vectors, labels, strict=True))
        results.append((name, settings, *figures, regression(train, test)))
    best = max(results, key=lambda row: row[2])
    columns = ["vectors", "KorSTS dev", "KorSTS test", "KLUE-STS dev", "NSMC"]
    lines = []
    for name, _, *figures in results:
        mark = " (best on KorSTS dev)" if name == best[0] else ""
        lines.append([name + mark, *(f"{figure:.2f}" for figure in figures)])
    for line in (columns, ["---"] * len(columns), *lines):
        print(f"| {' | '.join(line)} |", flush=True)
    return record.table("Similarity and reviews", columns, lines)


def question_pairs(data: Path, rows: int) -> tuple[list[str], list[str], list[int]]:
    """Queries, texts, and the matching text of each query: pairs of questions with the same meaning."""
    pairs = load("question-pair", data)
    # Label 1: the questions differ.
    matching = list(islice((row for row in chain(pairs.train, pairs.test) if row["label"] == "0"), rows))
    return among([row["text"] for row in matching], [row["pair"] for row in matching])


def paragraphs(data: Path, rows: int) -> tuple[list[str], list[str], list[int]]:
    """Questions of KorQuAD, and all paragraphs."""
    rows_of_set = korquad.read(data / "korquad1" / "KorQuAD_v1.0_dev.json").rows
    questions = rows_of_set[:: max(len(rows_of_set) // rows, 1)][:rows]
    contexts, others = ([row["context"] for row in part] for part in (questions, rows_of_set))
    return among([row["question"] for row in questions], contexts, others)


def paraphrases(data: Path, rows: int) -> tuple[list[str], list[str], list[int]]:
    """Pairs of KLUE-STS whose binary label is 1; the texts are the second sentences of all pairs."""
    (path,) = data.rglob("klue-sts-v1.1_dev.json")
    pairs = json.loads(path.read_text(encoding="utf-8"))
    matching = [one for one in pairs if one["labels"]["binary-label"] == 1][:rows]
    all_texts = [one["sentence2"] for one in pairs]
    return among([one["sentence1"] for one in matching], [one["sentence2"] for one in matching], all_texts)


def points_of_law(data: Path, rows: int) -> tuple[list[str], list[str], list[int]]:
    """Points at issue of court decisions, and 10,000 summaries."""
    decided, training_rows = (
        list(
            map(
                json.loads, zstandard.open(data / "law" / f"pairs-{part}.jsonl.zst", "rt", dctx=_LONG, encoding="utf-8")
            )
        )
        for part in ("dev", "train")
    )
    chosen = random.Random(1).sample(decided, min(rows, 1_008))
    texts = [row["passage"] for row in decided + random.Random(0).sample(training_rows, 7_449)]
    return among([row["query"] for row in chosen], [row["passage"] for row in chosen], texts)


def among(queries: list[str], answers: list[str], others: Sequence[str] = ()) -> tuple[list[str], list[str], list[int]]:
    texts = list(dict.fromkeys([*answers, *others]))
    places = {text: place for place, text in enumerate(texts)}
    return queries, texts, [places[answer] for answer in answers]


SEARCHES = {
    "question pairs": question_pairs, "KorQuAD dev": paragraphs, "KLUE-STS dev": paraphrases, "law": points_of_law,
}  # fmt: skip


def search(
    name: str, model: Model, asked: dict[str, Any], data: Path, rows: int, shown: str, *, words: bool = False
) -> Iterator[list[str]]:
    """Prints and yields the rows of a set in the second table: by vectors, with words, and if asked by words alone."""
    queries, texts, answers = SEARCHES[name](data, rows)
    relevant = np.zeros((len(queries), len(texts)), dtype=bool)
    relevant[np.arange(len(queries)), answers] = True
    with tempfile.TemporaryDirectory() as folder:
        index = Index.create(folder, model, **asked)
        index.add((str(place), text) for place, text in enumerate(texts))
        for way, label in (("words", "BM25"), ("vectors", shown), ("both", f"BM25 and {shown}")):
            if way == "words" and not words:
                continue
            scores = np.zeros(relevant.shape)
            for number, hits in enumerate(index.search(queries, 100, way)):  # behind the first 100 all are alike
                for rank, hit in enumerate(hits):
                    scores[number, int(hit.id)] = 1_000 - rank
            figures = recall_at(1, scores, relevant), recall_at(10, scores, relevant)
            figures += reciprocal_rank(scores, relevant), ndcg_at(10, scores, relevant.astype(float))
            cells = [f"{100 * figure.mean():.1f}" for figure in figures]
            line = [f"{name} ({len(queries):,} of {len(texts):,})", label, *cells]
            print(f"| {' | '.join(line)} |", flush=True)
            yield line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="folder of docs/data.md")
    parser.add_argument("--rows", type=int, default=2_000, help="of each set, at most")
    parser.add_argument("--trained", type=Path, nargs="*", default=[], help="models of kind embedding, for the second")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--sets", nargs="+", choices=list(SEARCHES), default=list(SEARCHES), help="of the second table")
    parser.add_argument("--tables", choices=["1", "2", "both"], default="both")
    record.add_option(parser)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    model = korbert.load(arguments.model, device="cpu")
    tables = []
    if arguments.tables != "2":
        tables.append(layers_and_poolings(model, arguments.data, arguments.rows))
    if arguments.tables != "1":
        columns = ["set (queries of texts)", "way", "recall@1", "recall@10", "MRR", "nDCG@10"]
        lines: list[list[str]] = []
        print(f"\n| {' | '.join(columns)} |\n|---|---|---|---|---|---|")
        for name in arguments.sets:
            lines += search(name, model, {}, arguments.data, arguments.rows, "vectors", words=True)
            for folder in arguments.trained:
                trained = korbert.load(folder, device="cpu")
                lines += search(name, trained, {}, arguments.data, arguments.rows, f"vectors of {folder.name}")
        tables.append(record.table("Retrieval", columns, lines))
    record.write(arguments.record, "vectors", tables)


if __name__ == "__main__":
    main()
