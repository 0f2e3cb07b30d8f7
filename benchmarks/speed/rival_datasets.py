"""The job of `clean` as a script with `datasets`, as far as that fits on a page.

    python -m benchmarks.speed.rival_datasets FOLDER OUTPUT

Reads the .jsonl.zst files of FOLDER with two processes: NFC, entities, tags, white space, runs of jamo and marks,
e-mail addresses and phone numbers; length, Hangul share, symbols, repeated lines; then a set of hashes for equal texts.
No near-duplicates, no evaluation sets.
"""

import html
import re
import sys
import unicodedata
from hashlib import blake2b
from pathlib import Path

from datasets import load_dataset

TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
SPACES = re.compile(r"[^\S\n]+")
BLANK_LINES = re.compile(r"\n{3,}")
RUNS = re.compile(r"([ㄱ-ㅎㅏ-ㅣ!-/:-@\[-`{-~…·。、！？～♡♥★☆])\1{5,}")
EMAIL = re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
PHONE = re.compile(r"(?<![0-9])01[016789][ .-]?[0-9]{3,4}[ .-]?[0-9]{4}(?![0-9])")
HANGUL = re.compile("[가-힣]")
SYMBOL = re.compile(r"[^\w\s]")


def normalize(row: dict[str, str]) -> dict[str, str]:
    text = TAG.sub(" ", html.unescape(unicodedata.normalize("NFC", row["text"])))
    text = RUNS.sub(lambda match: match[1] * 5, BLANK_LINES.sub("\n\n", SPACES.sub(" ", text)).strip())
    return {"text": PHONE.sub("<전화번호>", EMAIL.sub("<이메일>", text))}


def is_good(row: dict[str, str]) -> bool:
    text = row["text"]
    visible = len("".join(text.split()))
    if visible < 10 or len(HANGUL.findall(text)) < 0.3 * visible or len(SYMBOL.findall(text)) > 0.5 * visible:
        return False
    lines = text.split("\n")
    return len(lines) - len(set(lines)) <= 0.374 * len(lines)


if __name__ == "__main__":
    folder, output = Path(sys.argv[1]), Path(sys.argv[2])
    files = sorted(str(path) for path in folder.glob("*.jsonl.zst"))
    rows = load_dataset("json", data_files=files, split="train", cache_dir=str(output / "cache"), num_proc=2)
    rows = rows.select_columns(["id", "text"]).map(normalize, num_proc=2).filter(is_good, num_proc=2)
    seen: set[bytes] = set()

    def is_new(row: dict[str, str]) -> bool:
        digest = blake2b(row["text"].encode(), digest_size=16).digest()
        return not (digest in seen or seen.add(digest))

    rows = rows.filter(is_new)
    rows.to_parquet(str(output / "documents.parquet"))
    print(len(rows), "documents")
