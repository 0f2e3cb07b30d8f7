"""Texts analysed once: a later run takes what is there, resumes part by part, and makes anew what was damaged."""

import numpy as np
import pytest

from korbert.errors import ArtifactError
from korbert.tasks.finetuning import encoded
from korbert.tasks.finetuning.encoded import EncodedTexts
from korbert.tasks.passages import encode_passages

TEXTS = [f"{number}번째 영화는 정말 재미있었다." for number in range(40)]
ODD = ("한글은 1443년에 만들어졌다.", "", "🙂 각하고 걸어갔다\r\n둘째 줄", "lone \ud800 surrogate")
_ARRAYS = ("ids", "boundaries", "spans")


class Counting:
    """A tokenizer that counts the texts it is asked for."""

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer
        self.analyzer = tokenizer.analyzer
        self.digest = tokenizer.digest
        self.texts = 0

    def pieces(self, analysis, text):
        self.texts += 1
        return self._tokenizer.pieces(analysis, text)


def _kept(tokenizer, texts, folder):
    """As reading.question_pairs has them kept."""
    encoded_texts = EncodedTexts(folder, texts, tokenizer)
    encoded_texts.make(1, "encode")
    return list(encoded_texts.passages().values())


def _equal(one, other):
    pairs = [(getattr(a, name), getattr(b, name)) for a, b in zip(one, other, strict=True) for name in _ARRAYS]
    return [a.text for a in one] == [b.text for b in other] and all(np.array_equal(*pair) for pair in pairs)


@pytest.mark.parametrize("place", [0.1, 0.3, 0.5, 0.7])
def test_a_flipped_bit_is_found_and_the_part_made_anew(tiny_tokenizer, tmp_path, place):
    texts = EncodedTexts(tmp_path, TEXTS, tiny_tokenizer)
    texts.make(1)
    (path,) = tmp_path.glob("texts-*.parquet")
    written, expected = path.read_bytes(), texts.passages().values()
    harmed = bytearray(written)
    harmed[int(place * len(harmed))] ^= 1
    path.write_bytes(harmed)
    texts.make(1)
    assert path.read_bytes() == written
    assert _equal(texts.passages().values(), expected)


def test_a_part_is_the_same_whatever_the_workers_and_not_made_again(tiny_tokenizer, tmp_path):
    EncodedTexts(tmp_path, TEXTS, tiny_tokenizer).make(1)
    (path,) = tmp_path.glob("texts-*.parquet")
    before = path.read_bytes(), path.stat().st_mtime_ns
    EncodedTexts(tmp_path, TEXTS, tiny_tokenizer).make(2)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    texts = EncodedTexts(tmp_path, TEXTS, tiny_tokenizer)
    assert "영화" in next(texts.morphemes())
    path.unlink()
    with pytest.raises(ArtifactError, match="the cached pieces of 40 texts are missing: run this again"):
        texts.passages()


def test_passages_are_read_as_they_were_made(tiny_tokenizer, tmp_path):
    fresh = encode_passages(tiny_tokenizer, ODD)
    for _ in range(2):
        kept = _kept(tiny_tokenizer, ODD, tmp_path)
        assert _equal(kept, fresh)
        assert [getattr(kept[0], name).dtype for name in _ARRAYS] == [np.int32, np.uint8, np.int32]
    assert _kept(tiny_tokenizer, [], tmp_path) == []
    tokenizer = Counting(tiny_tokenizer)
    for texts, digest in ((ODD, tokenizer.digest), (ODD[::-1], tokenizer.digest), (ODD, "0" * 64)):
        tokenizer.digest = digest
        _kept(tokenizer, texts, tmp_path / "others")
    assert tokenizer.texts == 12


def test_an_interrupted_run_resumes_part_by_part(tiny_tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(encoded, "_PART_TEXTS", 3)
    tokenizer = Counting(tiny_tokenizer)
    fresh = encode_passages(tiny_tokenizer, ODD)
    assert _equal(_kept(tokenizer, ODD[:3], tmp_path), fresh[:3])
    assert tokenizer.texts == 3
    for _ in range(2):
        assert _equal(_kept(tokenizer, ODD, tmp_path), fresh)
        assert tokenizer.texts == 4  # the first part is there
    # Parts end where their characters are full, too.
    monkeypatch.setattr(encoded, "_PART_CHARS", 30)
    full = tmp_path / "full"
    assert len(_kept(tiny_tokenizer, ["가" * 20, "나" * 20, "다", "라" * 90, "마"], full)) == 5
    assert len(list(full.iterdir())) == 3  # 20 + 20, 1 + 90, 1
