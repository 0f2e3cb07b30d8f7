"""Draws distinct sentences from files of text: those with the smallest hashes.

    python -m benchmarks.box.sentences wiki.jsonl.zst reviews.jsonl.zst --count 450000 --output sentences.jsonl

Files are read as `korbert embed` reads them. Which sentences are drawn depends on them alone, not on their order.
"""

import argparse
import heapq
import json
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import chain
from pathlib import Path

from korbert.corpus.documents import sentence_spans
from korbert.pipelines.inference.embedding import text_records
from korbert.system import write_bytes_atomically

SHORTEST, LONGEST = 8, 200  # characters


def sentences_of(files: Iterable[Path]) -> Iterator[str]:
    for file in files:
        for record in chain.from_iterable(text_records(file, file.name)):
            text = record.get("text", "")
            for start, end in sentence_spans(text):
                if SHORTEST <= end - start <= LONGEST:
                    yield text[start:end]


def drawn(sentences: Iterable[str], count: int) -> list[str]:
    """The `count` distinct sentences with the smallest hashes, in their order."""
    heap: list[tuple[int, str]] = []  # the largest hash first
    numbers = set[int]()
    for sentence in sentences:
        number = -int.from_bytes(blake2b(sentence.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
        if number in numbers or (len(heap) == count and number < heap[0][0]):
            continue
        numbers.add(number)
        heapq.heappush(heap, (number, sentence))
        if len(heap) > count:
            numbers.discard(heapq.heappop(heap)[0])
    return [sentence for _, sentence in sorted(heap, reverse=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    lines = (
        json.dumps({"text": text}, ensure_ascii=False) for text in drawn(sentences_of(arguments.files), arguments.count)
    )
    write_bytes_atomically(arguments.output, "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass"))


if __name__ == "__main__":
    main()
