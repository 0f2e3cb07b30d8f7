"""Texts analysed once: a later run takes what is there, and makes anew what was damaged."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from korbert.tasks.encoded import Encoded

TEXTS = [f"{number}번째 영화는 정말 재미있었다." for number in range(40)]


@pytest.mark.parametrize("place", [0.1, 0.3, 0.5, 0.7])
def test_a_flipped_bit_is_found_and_the_part_made_anew(tiny_tokenizer: Any, tmp_path: Path, place: float) -> None:
    encoded = Encoded(tmp_path, TEXTS, tiny_tokenizer)
    encoded.make(1)
    (path,) = tmp_path.glob("texts-*.parquet")
    written = path.read_bytes()
    expected = encoded.examples(np.zeros(len(TEXTS), np.int64), 64).input_ids.tolist()
    harmed = bytearray(written)
    harmed[int(place * len(harmed))] ^= 1
    path.write_bytes(harmed)
    encoded.make(1)
    assert path.read_bytes() == written
    assert encoded.examples(np.zeros(len(TEXTS), np.int64), 64).input_ids.tolist() == expected


def test_what_is_there_is_not_made_again(tiny_tokenizer: Any, tmp_path: Path) -> None:
    encoded = Encoded(tmp_path, TEXTS, tiny_tokenizer)
    encoded.make(1)
    (path,) = tmp_path.glob("texts-*.parquet")
    before = path.stat().st_mtime_ns
    Encoded(tmp_path, TEXTS, tiny_tokenizer).make(1)
    assert path.stat().st_mtime_ns == before
