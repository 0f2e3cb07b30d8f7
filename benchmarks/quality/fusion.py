"""Weights of cosines beside BM25, chosen on half of the queries and tested on the other half.

    python -m benchmarks.quality.fusion MODEL --data $KORBERT_DATA [--sets law ..] [--rows 2000]

Sets are those of the second table of vectors.py. Prints recall at 1 and MRR, times 100, on both halves: of words, of
vectors, of reciprocal rank fusion, for each weight of BM25 (as a share of the best text's) + weight x cosine, and of
what a search by both finds (its first hundred).
"""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import korbert
from benchmarks import record
from benchmarks.quality.ranking import recall_at, reciprocal_rank
from benchmarks.quality.vectors import SEARCHES
from korbert.search import Index
from korbert.search.database import reading
from korbert.search.owners import read_owners
from korbert.search.words import read_texts, word_scores

Scores = NDArray[Any]
WEIGHTS = (0.1, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0)


def scores_of(model: Any, queries: list[str], texts: list[str]) -> tuple[Scores, Scores, Scores]:
    """BM25, cosine, and score of a search by both, of each query and text: (Q, N)."""
    encoded_queries = list(read_texts(model.tokenizer, queries, model.max_length))
    with tempfile.TemporaryDirectory() as folder:
        index = Index.create(folder, model)
        index.add((str(row), text) for row, text in enumerate(texts))
        settings = index.settings.model_copy(update={"side": "query"})
        query_vectors = index.model.pool_encoded([encoding for encoding, _ in encoded_queries], settings)
        with reading(index.folder) as database:
            numbers, vectors = zip(*database.execute("SELECT number, vector FROM vectors ORDER BY number"), strict=True)
            owners = read_owners(database)
            words = np.stack([word_scores(database, terms, owners) for _, terms in encoded_queries])
        combined = np.full((len(queries), len(texts)), -1.0, np.float32)
        for row, hits in enumerate(index.search(queries, 100, "both")):
            combined[row, [int(hit.id) for hit in hits]] = [hit.score for hit in hits]
    rows = np.frombuffer(b"".join(vectors), np.float32).reshape(len(numbers), -1)
    # Of a text of several passages, the best one.
    starts = np.flatnonzero(np.diff(owners.texts[list(numbers)], prepend=-1))
    words, cosines = (
        np.maximum.reduceat(columns, starts, axis=1) for columns in (words[:, list(numbers)], query_vectors @ rows.T)
    )
    return words, cosines, combined


def by_ranks(scores: Scores, only: float) -> Scores:
    """1 / (60 + rank) of the first 100 texts that score above `only`."""
    ranks = np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1) + 1
    return np.where((ranks <= 100) & (scores > only), 1 / (60 + ranks), 0)


def ways(words: Scores, cosines: Scores, both: Scores) -> Iterator[tuple[str, Scores]]:
    yield "words", words
    yield "vectors", cosines
    yield "reciprocal ranks", by_ranks(words, 0) + by_ranks(cosines, -np.inf)
    for weight in WEIGHTS:
        best = np.maximum(words.max(axis=1, keepdims=True), 1e-9)
        yield f"share of BM25 + {weight:g} x cosine", words / best + weight * cosines
    yield "search by both", both


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--data", type=Path, required=True, help="folder of docs/data.md")
    parser.add_argument("--sets", nargs="+", choices=list(SEARCHES), default=list(SEARCHES))
    parser.add_argument("--rows", type=int, default=2_000, help="of each set, at most")
    parser.add_argument("--precision", choices=["auto", "fp32", "bf16", "int8"], default="auto")
    record.add_option(parser)
    arguments = parser.parse_args()
    model = korbert.load(arguments.model, device="cpu", precision=arguments.precision)
    columns = ["set", "ranking", "recall@1", "MRR", "recall@1, other half", "MRR, other half"]
    print(f"| {' | '.join(columns)} |\n|---|---|---|---|---|---|")
    rows: list[list[str]] = []
    for name in arguments.sets:
        queries, texts, answers = SEARCHES[name](arguments.data, arguments.rows)
        relevant = np.zeros((len(queries), len(texts)), bool)
        relevant[np.arange(len(queries)), answers] = True
        for label, scores in ways(*scores_of(model, queries, texts)):
            figures = [
                f"{100 * metric(scores[half::2], relevant[half::2]).mean():.1f}"
                for half in (0, 1)
                for metric in (lambda scores_half, true: recall_at(1, scores_half, true), reciprocal_rank)
            ]
            rows.append([f"{name} ({len(queries):,} of {len(texts):,})", label, *figures])
            print(f"| {' | '.join(rows[-1])} |", flush=True)
    record.write(arguments.record, "fusion", [record.table(f"Recall and MRR with {arguments.model}", columns, rows)])


if __name__ == "__main__":
    main()
