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
    kept: list[tuple[int, str]] = []  # a heap, the largest hash first
    known = set[int]()
    for sentence in sentences:
        number = -int.from_bytes(blake2b(sentence.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
        if number in known or (len(kept) == count and number < kept[0][0]):
            continue
        known.add(number)
        heapq.heappush(kept, (number, sentence))
        if len(kept) > count:
            known.discard(heapq.heappop(kept)[0])
    return [sentence for _, sentence in sorted(kept, reverse=True)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    asked = parser.parse_args()
    lines = (json.dumps({"text": text}, ensure_ascii=False) for text in drawn(sentences_of(asked.files), asked.count))
    write_bytes_atomically(asked.output, "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass"))


if __name__ == "__main__":
    main()
