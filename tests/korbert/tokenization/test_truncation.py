"""The beginnings of long texts: the same pieces as of the whole text, without the rest."""

import json

import pytest

from korbert.tokenization.base import encode_beginnings, first_pieces


def test_the_first_pieces_are_those_of_the_whole_text(sample, tiny_tokenizer):
    lines = (sample / "wiki.jsonl").read_text(encoding="utf-8").splitlines()[:12]
    texts = [json.loads(line)["text"] for line in lines]
    texts += [text.replace("\n", " ") for text in texts]  # one line each
    assert encode_beginnings(tiny_tokenizer, texts, 32) == tiny_tokenizer.encode_batch(texts, max_length=32)


@pytest.mark.parametrize(
    "text",
    ["가" * 3_000, "\u200b" * 5_000 + "학교에 간다 " * 40, " " * 4_000 + "끝", "", "\ud800" * 900, "\x00가 " * 500],
)
def test_first_pieces_of_odd_texts_are_those_of_the_whole_text(text, tiny_tokenizer):
    whole = tiny_tokenizer.encode(text, max_length=16)
    assert encode_beginnings(tiny_tokenizer, ["짧은 글", text], 16)[1].input_ids == whole.input_ids


def test_text_behind_the_beginning_is_not_analysed(tiny_tokenizer, monkeypatch):
    seen = []
    analyze = tiny_tokenizer.analyzer.analyze
    monkeypatch.setattr(tiny_tokenizer.analyzer, "analyze", lambda text: seen.append(len(text)) or analyze(text))
    assert len(first_pieces(tiny_tokenizer, "학교에 간다 " * 100_000, 16)) >= 16
    assert sum(seen) < 1_000
