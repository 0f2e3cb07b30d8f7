"""Texts analysed once: a later run takes what is there, resumes part by part, and makes anew what was damaged."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from korbert.errors import ArtifactError
from korbert.tasks import passages
from korbert.tasks.finetuning import encoded
from korbert.tasks.finetuning.encoded import EncodedTexts
from korbert.tasks.passages import Passage, encode_passages

TEXTS = [f"{number}번째 영화는 정말 재미있었다." for number in range(40)]
ODD = ("한글은 1443년에 만들어졌다.", "", "🙂 각하고 걸어갔다\r\n둘째 줄", "lone \ud800 surrogate")


class Counting:
    """A tokenizer that counts the texts it is asked for."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self.digest = tokenizer.digest
        self.texts = 0

    def pieces_of_many(self, texts: list[str], *, workers: int = 1) -> Iterator[Any]:
        for text in texts:
            self.texts += 1
            yield from self._tokenizer.pieces_of_many([text])


def _kept(tokenizer: Any, texts: Sequence[str], folder: Path) -> list[Passage]:
    """As reading.question_pairs has them kept."""
    encoded_texts = EncodedTexts(folder, texts, tokenizer, "spans")
    encoded_texts.make(1, "encode")
    return encoded_texts.passages()


def _equal(one: list[Passage], other: list[Passage]) -> bool:
    return all(
        a.text == b.text and all(np.array_equal(getattr(a, name), getattr(b, name)) for name in _ARRAYS)
        for a, b in zip(one, other, strict=True)
    )


_ARRAYS = ("ids", "boundaries", "spans")


@pytest.mark.parametrize("extra", ["morphemes", "spans"])
@pytest.mark.parametrize("place", [0.1, 0.3, 0.5, 0.7])
def test_a_flipped_bit_is_found_and_the_part_made_anew(
    tiny_tokenizer: Any, tmp_path: Path, place: float, extra: Any
) -> None:
    texts = EncodedTexts(tmp_path, TEXTS, tiny_tokenizer, extra)
    texts.make(1)
    (path,) = tmp_path.glob("texts-*.parquet")
    written = path.read_bytes()
    expected = texts.examples(np.zeros(len(TEXTS), np.int64), 64).input_ids.tolist()
    harmed = bytearray(written)
    harmed[int(place * len(harmed))] ^= 1
    path.write_bytes(harmed)
    texts.make(1)
    assert path.read_bytes() == written
    assert texts.examples(np.zeros(len(TEXTS), np.int64), 64).input_ids.tolist() == expected


def test_a_part_is_the_same_whatever_the_workers_and_not_made_again(tiny_tokenizer: Any, tmp_path: Path) -> None:
    EncodedTexts(tmp_path, TEXTS, tiny_tokenizer).make(1)
    (path,) = tmp_path.glob("texts-*.parquet")
    before = path.read_bytes(), path.stat().st_mtime_ns
    EncodedTexts(tmp_path, TEXTS, tiny_tokenizer).make(2)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    path.write_bytes(before[0][:100])  # as if torn
    EncodedTexts(tmp_path, TEXTS, tiny_tokenizer).make(2)
    assert path.read_bytes() == before[0]


def test_columns_are_there_when_asked_for(tiny_tokenizer: Any, tmp_path: Path) -> None:
    for extra in ((), ("morphemes",), ("spans",), ("morphemes", "spans")):
        EncodedTexts(tmp_path, TEXTS, tiny_tokenizer, *extra).make(1)
    assert len(list(tmp_path.iterdir())) == 4
    both = EncodedTexts(tmp_path, TEXTS, tiny_tokenizer, "morphemes", "spans")
    assert "영화" in next(both.morphemes())
    assert _equal(both.passages(), encode_passages(tiny_tokenizer, TEXTS))


def test_passages_are_read_as_they_were_made(tiny_tokenizer: Any, tmp_path: Path) -> None:
    fresh = encode_passages(tiny_tokenizer, ODD)
    for _ in range(2):
        kept = _kept(tiny_tokenizer, ODD, tmp_path)
        assert _equal(kept, fresh)
        assert [getattr(kept[0], name).dtype for name in _ARRAYS] == [np.int32, np.uint8, np.int32]
    assert _kept(tiny_tokenizer, [], tmp_path) == []


def test_an_interrupted_run_resumes_part_by_part(
    tiny_tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoded, "_PART_TEXTS", 3)
    tokenizer: Any = Counting(tiny_tokenizer)
    fresh = encode_passages(tokenizer, ODD)
    assert tokenizer.texts == 4
    assert _equal(_kept(tokenizer, ODD[:3], tmp_path), fresh[:3])
    assert tokenizer.texts == 7
    assert _equal(_kept(tokenizer, ODD, tmp_path), fresh)  # the first part is there
    assert tokenizer.texts == 8
    assert _equal(_kept(tokenizer, ODD, tmp_path), fresh)
    assert tokenizer.texts == 8


def test_parts_end_where_their_characters_are_full(
    tiny_tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoded, "_PART_CHARS", 30)
    texts = ["가" * 20, "나" * 20, "다", "라" * 90, "마"]
    parts = EncodedTexts(tmp_path, texts, tiny_tokenizer)
    parts.make(1)
    assert len(list(tmp_path.iterdir())) == 3  # 20 + 20, 1 + 90, 1
    assert len(parts.examples(np.zeros(5, np.int64), 128)) == 5


def test_other_texts_and_other_tokenizers_have_parts_of_their_own(tiny_tokenizer: Any, tmp_path: Path) -> None:
    tokenizer: Any = Counting(tiny_tokenizer)
    _kept(tokenizer, ODD, tmp_path)
    _kept(tokenizer, ODD[::-1], tmp_path)
    tokenizer.digest = "0" * 64
    _kept(tokenizer, ODD, tmp_path)
    assert tokenizer.texts == 12


def test_a_part_that_went_while_it_was_needed_is_named(tiny_tokenizer: Any, tmp_path: Path) -> None:
    texts = EncodedTexts(tmp_path, TEXTS, tiny_tokenizer)
    texts.make(1)
    next(tmp_path.iterdir()).unlink()
    with pytest.raises(ArtifactError, match="the cached pieces of 40 texts are missing: run this again"):
        texts.examples(np.zeros(len(TEXTS), np.int64), 64)


def test_passages_know_nothing_of_what_keeps_them() -> None:
    """Otherwise the two import each other, and a submission, which has no pyarrow, depends on the order."""
    assert "korbert.tasks.finetuning.encoded" not in Path(passages.__file__).read_text(encoding="utf-8")
