"""What an index says of damage to its file: seeded copies, each damaged once, searched and checked.

    python -m benchmarks.damage.damaged_index korbert-mini-embed --seed 59

The index has 600 texts of the sample, some of them replaced and removed, so that it has free pages. Each copy has one
bit flipped, its end cut off, a page (16 KiB) or a block of 512 bytes set to zero, or two blocks swapped. The answers of
a copy are its texts and what 48 searches find, by words, by vectors, by both, and with a condition.
"""

import argparse
import json
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import korbert
from benchmarks import record
from korbert import search
from korbert.errors import KorbertError

SAMPLE = Path(__file__).resolve().parents[2] / "corpus" / "sample"
PAGE, BLOCK = 16_384, 512
KINDS = {"bit": 10, "bits": 2, "truncated": 2, "page": 2, "block": 2, "swapped": 2}


def rows_of(path: Path, text: str, count: int) -> list[tuple[str, str, dict[str, object]]]:
    """Id, text and fields of the first rows of a file of JSON lines."""
    lines = path.read_text(encoding="utf-8").splitlines()[:count]
    rows = [json.loads(line) for line in lines]
    return [(f"{path.stem}-{number}", row.pop(text), {"number": number, **row}) for number, row in enumerate(rows)]


def make(folder: Path, model: korbert.Model) -> None:
    """Makes an index with texts and fields, from which some texts were removed and replaced."""
    law = rows_of(SAMPLE / "law" / "dev.jsonl", "passage", 100)
    reviews = rows_of(SAMPLE / "reviews.jsonl", "text", 560)
    index = search.Index.create(folder, model)
    index.add(law)
    index.add(reviews)
    index.remove([id for id, *_ in reviews[:60]])
    index.add([(id, f"{text} 다시", fields) for id, text, fields in reviews[60:90]])


def answers_of(folder: Path, model: korbert.Model) -> str:
    """All that a user gets from an index."""
    index = search.Index.load(folder, model)
    queries = [json.loads(line)["query"] for line in (SAMPLE / "law" / "dev.jsonl").open(encoding="utf-8")][:8]
    queries += ["배우의 연기", "지루한 영화", "최고의 감동", "음악이 좋다"]
    results = [index.search(queries, 10, way) for way in ("words", "vectors", "both")]
    results.append(index.search(queries, 10, "both", "number BETWEEN 20 AND 300 AND text LIKE '%다%'"))
    hits = [[list(map(asdict, query_hits)) for query_hits in per_query] for per_query in results]
    return json.dumps([len(index), list(index), hits], ensure_ascii=False)


def damaged(data: bytes, rng: random.Random) -> Iterator[tuple[str, bytes]]:
    """Yields a kind of damage and a copy with that damage, without end."""
    while True:
        copy = bytearray(data)
        (kind,) = rng.choices(list(KINDS), list(KINDS.values()))
        blocks = range(0, len(data), BLOCK)
        if kind in ("bit", "bits"):
            for _ in range(1 if kind == "bit" else 8):
                copy[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        elif kind == "truncated":
            del copy[rng.randrange(len(data)) :]
        elif kind == "swapped":
            size = rng.choice((BLOCK, PAGE))
            first, second = (rng.randrange(len(data) // size) * size for _ in range(2))
            copy[first : first + size], copy[second : second + size] = (
                data[second : second + size],
                data[first : first + size],
            )
        else:
            size = PAGE if kind == "page" else BLOCK
            start = rng.choice(blocks) // size * size
            copy[start : start + size] = bytes(size)
        if copy != data:
            yield kind, bytes(copy)


def outcome(act: Callable[..., object], *given: object) -> tuple[str, str]:
    """What happens: "answered" and the answer, "refused" and the message, or "raw" and the error."""
    try:
        return "answered", str(act(*given))
    except KorbertError as error:
        return "refused", str(error)
    except Exception as error:
        return "raw", repr(error)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--copies", type=int, default=340)
    parser.add_argument("--seed", type=int, default=59)
    record.add_option(parser)
    arguments = parser.parse_args()
    model = korbert.load(arguments.model, "cpu")
    with tempfile.TemporaryDirectory(prefix="korbert-damaged-") as folder:
        whole, copy = Path(folder, "whole"), Path(folder, "copy")
        make(whole, model)
        (file,) = whole.iterdir()  # a closed index has one file
        expected = answers_of(whole, model)
        data = file.read_bytes()
        print(f"{file.name}: {len(data):,} bytes; seed {arguments.seed}")
        counts: dict[str, Counter[str]] = {kind: Counter() for kind in (*KINDS, "all")}
        copies = damaged(data, random.Random(arguments.seed))
        for number in range(arguments.copies):
            kind, content = next(copies)
            shutil.rmtree(copy, ignore_errors=True)
            copy.mkdir()
            (copy / file.name).write_bytes(content)
            checked, check_message = outcome(search.check, copy)
            (copy / file.name).write_bytes(content)
            result, answer = outcome(answers_of, copy, model)
            differs = result == "answered" and answer != expected
            facts = {
                "copies": True,
                "answered as before": result == "answered" and not differs,
                "refused": result == "refused",
                "answered otherwise in silence": differs,
                "raw error": "raw" in (result, checked),
                "--check found it": checked == "refused",
                "missed by --check, and answered otherwise": checked == "answered" and differs,
            }
            for name, is_so in facts.items():
                counts[kind][name] += is_so
                counts["all"][name] += is_so
            if differs or facts["raw error"]:
                print(
                    number,
                    kind,
                    result,
                    answer[:200] if result == "raw" else "",
                    checked,
                    check_message[:200],
                    flush=True,
                )
        rows = [[name, *(counts[kind][name] for kind in counts)] for name in counts["all"]]
        title = "Copies of an index, each damaged once"
        record.write(arguments.record, "damaged-index", [record.table(title, ["copies", *counts], rows)])
        for name in counts["all"]:
            print(f"{name:45}", *(f"{kind} {counts[kind][name]:4}" for kind in counts))


if __name__ == "__main__":
    main()
