"""Search among whole court decisions, most of them longer than the encoder reads.

    python -m benchmarks.quality.long_documents --data $KORBERT_DATA [--documents 4951] [--model korbert-mini-embed]

Indexes the decisions of law/decisions.jsonl.zst and asks 600 of the queries of law/pairs-train.jsonl.zst that are about
one of them: headnotes, with the decision as the right answer. Those that are not indexed with --documents are not
asked. Prints recall at 1 and 10 by words, vectors and both, of all queries and of those of decisions whose summaries
the model has never learned (a tenth, by SHA-256 of the id).
"""

import argparse
import hashlib
import io
import json
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zstandard

import korbert
from benchmarks import record
from korbert.search import Index
from korbert.search.database import FILE, reading
from korbert.search.evaluation import evaluate

QUERIES = 600
_LONG = zstandard.ZstdDecompressor(max_window_size=1 << 27)


def rows_of(path: Path) -> Iterator[Any]:
    with path.open("rb") as file:
        yield from map(json.loads, io.TextIOWrapper(_LONG.stream_reader(file), "utf-8"))


def was_never_learned(id: str) -> bool:
    return int(hashlib.sha256(id.encode()).hexdigest(), 16) % 10 == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of docs/data.md")
    parser.add_argument("--documents", type=int)
    parser.add_argument("--model", default="korbert-mini-embed")
    record.add_option(parser)
    arguments = parser.parse_args()
    documents = list(rows_of(arguments.data / "law" / "decisions.jsonl.zst"))
    known_ids = {document["id"] for document in documents}
    documents = documents[: arguments.documents]
    indexed_ids = {document["id"] for document in documents}
    pairs = [
        (row["query"], row["id"].rsplit("-", 1)[0]) for row in rows_of(arguments.data / "law" / "pairs-train.jsonl.zst")
    ]
    pairs = [(query, id) for query, id in pairs if id in known_ids]
    random.Random(0).shuffle(pairs)
    pairs = [(query, id) for query, id in pairs[:QUERIES] if id in indexed_ids]
    model = korbert.load(arguments.model, device="cpu")
    with tempfile.TemporaryDirectory() as folder:
        index = Index.create(folder, model)
        start = time.process_time()
        index.add((document["id"], document["text"]) for document in documents)
        indexing_seconds = time.process_time() - start
        size = (index.folder / FILE).stat().st_size / 1e6
        with reading(index.folder) as database:
            ((passages,),) = database.execute("SELECT count(*) FROM passages")
        start = time.process_time()
        results = evaluate(index, [query for query, _ in pairs], [[id] for _, id in pairs])
        query_ms = 1e3 * (time.process_time() - start) / len(pairs) / len(results)
    columns = ["way", "recall@1", "recall@10", "MRR", "never learned: recall@1", "never learned: recall@10"]
    never = [row for row, (_, id) in enumerate(pairs) if was_never_learned(id)]
    rows = []
    for way, scores in results.items():
        ranks = [scores.ranks[row] or 1_000 for row in never]
        figures = [100 * scores.figures[name].value for name in ("recall@1", "recall@10", "MRR")]
        figures += [100 * sum(rank <= depth for rank in ranks) / max(len(ranks), 1) for depth in (1, 10)]
        rows.append([way, *(f"{figure:.1f}" for figure in figures)])
        print(*rows[-1], sep="\t", flush=True)
    costs = [
        ("passages", f"{passages:,}"), ("processor time of adding, s", f"{indexing_seconds:.0f}"),
        ("index, MB", f"{size:.0f}"), ("processor time of a query, ms", f"{query_ms:.0f}"),
    ]  # fmt: skip
    print(costs)
    title = f"{len(pairs)} queries, {len(never)} of them of never-learned decisions, {len(documents):,} decisions"
    tables = [record.table(title, columns, rows), record.table("Cost", ["what", "figure"], costs)]
    record.write(arguments.record, "long-documents", tables)


if __name__ == "__main__":
    main()
