"""Sample sentences saved with a tokenizer as pieces, to show the effect of another Kiwi version."""

import json
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import NamedTuple

TEXTS = tuple(Path(__file__).with_name("probe.txt").read_text(encoding="utf-8").splitlines())


class Difference(NamedTuple):
    """pieces: of all sentences, as saved. changed: pieces that differ now. texts: the sentences with such pieces."""

    pieces: int
    changed: int
    texts: list[str]


def recorded(encode: Callable[[str], Sequence[int]]) -> bytes:
    """The content of probe.json. encode: text -> ids, without special tokens."""
    rows = [{"text": text, "ids": list(encode(text))} for text in TEXTS]
    return (json.dumps(rows, ensure_ascii=False, indent=1) + "\n").encode()


def compared(record: bytes, encode: Callable[[str], Sequence[int]]) -> Difference:
    """How the pieces that `encode` gives differ from the recorded ones."""
    rows = json.loads(record)
    changed, texts = 0, []
    for row in rows:
        now = list(encode(row["text"]))
        if now != row["ids"]:
            same = sum(
                block.size for block in SequenceMatcher(None, row["ids"], now, autojunk=False).get_matching_blocks()
            )
            changed += max(len(row["ids"]), len(now)) - same
            texts.append(row["text"])
    return Difference(sum(len(row["ids"]) for row in rows), changed, texts)
