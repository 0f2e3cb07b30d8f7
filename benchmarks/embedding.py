"""`embed` next to sentence-transformers on our export of the same model, in one process, in turn.

    korbert export MODEL EXPORT
    python benchmarks/embedding.py MODEL EXPORT --data DATA [--threads 2] [--rounds 3]

Texts are the first 20,000 test reviews of NSMC, and the first 5,000 paragraphs of Wikipedia with 100 characters or
more. Both get the texts in the order of the files, with the same number of threads and their own batch sizes (64 and
32); sentence-transformers tokenizes with the exported tokenizer. Prints texts a second and their ratio, and the largest
difference between vectors.
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
from texts import read_texts

import korbert
from korbert.tasks import nsmc


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
    parser.add_argument("model", type=Path)
    parser.add_argument("export", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--reviews", type=int, default=20_000)
    parser.add_argument("--paragraphs", type=int, default=5_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    ours: Any = korbert.load(given.model)
    theirs = SentenceTransformer(str(given.export), trust_remote_code=True, device="cpu")
    texts = {
        "reviews": nsmc.read(given.data / "nsmc" / "ratings_test.txt")["text"].tolist()[: given.reviews],
        "paragraphs": list(islice(paragraphs(given.data), given.paragraphs)),
    }
    few = list(chain.from_iterable(some[:50] for some in texts.values()))
    apart = np.abs(ours.embed(few) - theirs.encode(few)).max()
    print(f"largest difference between vectors of {len(few)} texts: {apart:.1e}")
    print("| texts | korbert, texts/s | sentence-transformers, texts/s | ratio |\n|---|---|---|---|")
    for name, some in texts.items():
        ratios = []
        for _ in range(given.rounds):
            first, second = speed(ours.embed, some), speed(theirs.encode, some)
            ratios.append(first / second)
            print(f"| {len(some):,} {name} | {first:,.0f} | {second:,.0f} | {ratios[-1]:.2f} |", flush=True)
        print(f"median ratio {statistics.median(ratios):.2f} (bar: 3)")


if __name__ == "__main__":
    main()
