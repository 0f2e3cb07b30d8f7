"""ONNX Runtime exports against the original model, in turn in one process: speed, and the cost of 8 bits.

    korbert export MODEL fast --onnx
    korbert export MODEL faster --onnx --bits 8
    python benchmarks/engines.py MODEL fast faster --data $KORBERT_DATA [--threads 2] [--rows 2000]

A classifier labels reviews of NSMC test; other models compute vectors of KorSTS test and KLUE-STS dev. Texts are
tokenized before the clock starts. "ratio" is the median over rounds of the model's time divided by that of the export:
CPU time with one thread, which is least affected by other load, else wall time.

Prints rows in Markdown, and the load of the machine at the end.
"""

import argparse
import os
import statistics
import time
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from nsmc_files import read_reviews

import korbert
from korbert.tasks.metrics.regression import spearman
from korbert.tasks.sets.loading import load
from korbert.training.examples import Examples
from korbert.training.scoring import model_inputs, outputs
from korbert.vectors.encoder import unit
from korbert.vectors.pooling import POOLINGS

BATCH_SIZE = {True: 256, False: 64}  # of predict, and of embed
CPU = torch.device("cpu")


def sentences(data: Path, rows: int) -> tuple[list[str], dict[str, tuple[slice, slice, Any]]]:
    """Texts of both sets, and for each set the indices of first and second texts, with their scores."""
    klue, texts, places = load("klue-sts", data), [], {}
    assert klue.valid is not None
    for name, given in (
        ("KorSTS test", load("korsts", data).test),
        ("KLUE-STS dev", chain(klue.train, klue.valid, klue.test)),
    ):
        own = list(islice(given, rows))
        start, count = len(texts), len(own)
        texts += [row["text"] for row in own] + [row["pair"] for row in own]
        scores = np.array([row["score"] for row in own])
        places[name] = slice(start, start + count), slice(start + count, start + 2 * count), scores
    return texts, places


def pooled(model: Any, batch: Any) -> torch.Tensor:
    """Vectors of a batch, as `embed` computes them by default."""
    hidden = model.encoder(**model_inputs(batch))
    return POOLINGS["mean"].pool(hidden, batch["attention_mask"].float())


def scores_of(model: Any, batch: Any) -> torch.Tensor:
    found: torch.Tensor = model(**model_inputs(batch))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("exports", type=Path, nargs="+")
    parser.add_argument("--data", type=Path, required=True, help="folder of docs/data.md")
    parser.add_argument("--rows", type=int, default=2_000, help="of each set, at most")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)  # before the sessions are made, which take as many
    clock = time.process_time if given.threads == 1 else time.perf_counter

    loaded: list[Any] = [korbert.load(folder, "cpu") for folder in (given.model, *given.exports)]
    models, classifies = [one.network for one in loaded], loaded[0].network.kind == "classification"
    if classifies:
        table = read_reviews(given.data / "nsmc" / "ratings_test.txt")[: given.rows]
        texts, labels = list(table["text"]), table["label"].to_numpy()
    else:
        texts, places = sentences(given.data, given.rows)
    tokenizer, of = loaded[0].tokenizer, scores_of if classifies else pooled
    encodings = tokenizer.encode_batch(texts, max_length=128, workers=0)
    rows = [(encoding.input_ids, encoding.boundaries) for encoding in encodings]
    examples = Examples.of_rows(rows, [0] * len(rows), tokenizer.pad_id)
    typical = sorted(rows, key=lambda row: len(row[0]))[len(rows) // 2]
    alone = Examples.of_rows([typical], [0], tokenizer.pad_id).batch(np.arange(1))

    found: list[Any] = [None] * len(models)
    batched: list[list[float]] = [[] for _ in models]
    single: list[list[float]] = [[] for _ in models]
    for _ in range(given.rounds):
        for place, model in enumerate(models):
            began = clock()
            found[place] = outputs(model, examples, of, BATCH_SIZE[classifies], device=CPU)
            batched[place].append(clock() - began)
            times = []
            with torch.inference_mode():
                for _ in range(30):
                    began = clock()
                    of(model, alone)
                    times.append(clock() - began)
            single[place].append(statistics.median(times))

    print(f"{len(texts)} texts of {len(examples.input_ids) / len(texts):.1f} pieces; one text of {len(typical[0])};")
    print(f"{given.threads} threads, {given.rounds} rounds\n")
    scored = ["NSMC accuracy", "labels changed"] if classifies else [*places, "least cosine"]
    print(f"| engine | texts/s | ratio | one text, ms | ratio | {' | '.join(scored)} |")
    print("|---" * (5 + len(scored)) + "|")
    for place, folder in enumerate((given.model, *given.exports)):
        cells = [folder.name if place else "PyTorch", f"{len(texts) / statistics.median(batched[place]):,.0f}"]
        cells += [_ratio(batched, place), f"{1000 * statistics.median(single[place]):.2f}", _ratio(single, place)]
        if classifies:
            chosen, first = found[place].argmax(axis=1), found[0].argmax(axis=1)
            cells += [f"{100 * (chosen == labels).mean():.2f}", f"{100 * (chosen != first).mean():.2f} %"]
        else:
            vectors = unit(found[place])
            for one, other, scores in places.values():
                cells.append(f"{100 * (spearman(scores, (vectors[one] * vectors[other]).sum(axis=1)) or 0):.2f}")
            cells.append(f"{(vectors * unit(found[0])).sum(axis=1).min():.5f}")
        print(f"| {' | '.join(cells)} |")
    print(f"\nload {os.getloadavg()[0]:.1f}")


def _ratio(times: list[list[float]], place: int) -> str:
    return f"{statistics.median(ours / theirs for ours, theirs in zip(times[0], times[place], strict=True)):.2f}"


if __name__ == "__main__":
    main()
