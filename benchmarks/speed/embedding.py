"""`embed` next to sentence-transformers on our export of the same model, in one process, in turn.

    korbert export MODEL EXPORT
    python -m benchmarks.speed.embedding MODEL EXPORT --data DATA [--threads 2] [--rounds 3]

Texts are the first 20,000 test reviews of NSMC, and the first 5,000 paragraphs of Wikipedia with 100 characters or
more. Both get the texts in the order of the files, with the same number of threads and their own batch sizes (64 and
32); sentence-transformers tokenizes with the exported tokenizer. Ours runs in each precision that the processor has.
Prints texts a second, ratios, and how far the vectors differ.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

import korbert
from benchmarks import record
from benchmarks.nsmc_files import read_reviews
from benchmarks.texts import read_texts
from korbert.training.devices import has_bf16


def paragraphs(data: Path) -> Iterator[str]:
    for document in read_texts([data / "corpus" / "wiki-0.jsonl.zst"]):
        yield from (line for line in document.splitlines() if len(line) >= 100)


def speed(embed: Callable[[list[str]], Any], texts: list[str]) -> float:
    """Texts a second."""
    began = time.perf_counter()
    embed(texts)
    return len(texts) / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("export", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--reviews", type=int, default=20_000)
    parser.add_argument("--paragraphs", type=int, default=5_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    record.add_option(parser)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    theirs = SentenceTransformer(str(arguments.export), trust_remote_code=True, device="cpu")
    names = ["fp32", *(["bf16"] if has_bf16(torch.device("cpu")) else []), "int8"]
    ours: dict[str, Any] = {name: korbert.load(arguments.model, "cpu", name) for name in names}
    texts = {
        "reviews": read_reviews(arguments.data / "nsmc" / "ratings_test.txt")["text"].tolist()[: arguments.reviews],
        "paragraphs": list(islice(paragraphs(arguments.data), arguments.paragraphs)),
    }
    sample = list(chain.from_iterable(some[:50] for some in texts.values()))
    print(f"of {len(sample)} texts, from the vectors of sentence-transformers: largest difference, least cosine")
    expected = theirs.encode(sample)
    rows: list[list[str]] = []
    differences = []
    for name, model in ours.items():
        vectors = model.embed(sample)
        cosines = (vectors * expected).sum(1) / np.linalg.norm(vectors, axis=1) / np.linalg.norm(expected, axis=1)
        print(f"{name}: {np.abs(vectors - expected).max():.1e}, {cosines.min():.6f}")
        differences.append(f"{np.abs(vectors - expected).max():.1e}, {cosines.min():.6f}")
    print(f"\n| texts | sentence-transformers, texts/s | {' | '.join(f'korbert, {name} | ratio' for name in ours)} |")
    print("|---|---|" + "---|---|" * len(ours))
    for kind, kind_texts in texts.items():
        ratios: dict[str, list[float]] = {name: [] for name in ours}
        rates: dict[str, list[float]] = {name: [] for name in ["sentence-transformers", *ours]}
        for _ in range(arguments.rounds):
            base, cells = speed(theirs.encode, kind_texts), []
            rates["sentence-transformers"].append(base)
            for name, model in ours.items():
                found_speed = speed(model.embed, kind_texts)
                ratios[name].append(found_speed / base)
                rates[name].append(found_speed)
                cells.append(f"{found_speed:,.0f} | {ratios[name][-1]:.2f}")
            print(f"| {len(kind_texts):,} {kind} | {base:,.0f} | {' | '.join(cells)} |", flush=True)
        medians = ", ".join(f"{name} {statistics.median(found):.2f}" for name, found in ratios.items())
        print(f"median ratios: {medians} (bar: 3)")
        row = [f"{len(kind_texts):,} {kind}"]
        for name, found in rates.items():
            ratio_text = f": x {statistics.median(ratios[name]):.2f}" if name in ratios else ""
            row.append(f"{min(found):,.0f} to {max(found):,.0f}{ratio_text}")
        rows.append(row)
    rows.append([f"largest difference, smallest cosine, {len(sample)} texts", "", *differences])
    columns = ["texts", "sentence-transformers", *ours]
    title = "Texts a second, times sentence-transformers"
    record.write(arguments.record, "embedding", [record.table(title, columns, rows)])


if __name__ == "__main__":
    main()
