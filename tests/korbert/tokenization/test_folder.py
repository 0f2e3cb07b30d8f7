"""Folders of tokenizers: what was changed, is missing or was made with another Kiwi is refused."""

import json
from pathlib import Path

import pytest

from korbert.errors import ModelError
from korbert.tokenization import AnalyzerOptions, Tokenizer, VocabularySettings


@pytest.fixture
def saved(tiny_tokenizer: Tokenizer, tmp_path: Path) -> Path:
    tiny_tokenizer.save(tmp_path / "tokenizer")
    return tmp_path / "tokenizer"


def change(path: Path, **fields: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | fields), encoding="utf-8")


@pytest.mark.parametrize("name", ["vocabulary.model", "pieces.txt"])
def test_changed_and_missing_files_are_refused(saved: Path, name: str) -> None:
    data = (saved / name).read_bytes()
    (saved / name).write_bytes(data[:-1] + b"?")
    with pytest.raises(ModelError, match=f"{name}: was changed since it was saved"):
        Tokenizer.load(saved)
    (saved / name).unlink()
    with pytest.raises(ModelError, match=f"{name}: cannot be read, but belongs to the tokenizer"):
        Tokenizer.load(saved)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"format": 2}, r"korbert_tokenizer\.json: format 2, this korbert reads 1"),
        ({"analyzer": {"z_coda": False}}, "a setting was changed since"),
        ({"analyzer": {"z_codas": False}}, r"korbert_tokenizer\.json: z_codas: Extra inputs"),
        ({"vocabulary": {"mark": "eojeol"}}, "a setting was changed since"),
        ({"digest": "0" * 64}, "the digest is .*, 000000000000 when it was saved"),
    ],
)
def test_a_changed_record_is_refused(saved: Path, fields: dict[str, object], message: str) -> None:
    change(saved / "korbert_tokenizer.json", **fields)
    with pytest.raises(ModelError, match=message):
        Tokenizer.load(saved)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "is no tokenizer, it has no korbert_tokenizer.json"),
        ("{", "cannot be read"),
        ("[]", "format None, this korbert reads 1"),
        ('{"format": 1}', "has no 'analyzer'"),
    ],
)
def test_a_folder_that_is_no_tokenizer(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / "korbert_tokenizer.json").write_text(text, encoding="utf-8")
    with pytest.raises(ModelError, match=message):
        Tokenizer.load(tmp_path)


def test_another_kiwi_is_refused_and_both_versions_named(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("korbert.tokenization.analyzer.version", lambda package: "9.9.9")
    with pytest.raises(ModelError, match=r"made with kiwipiepy 0\.24\.1, installed is 9\.9\.9"):
        Tokenizer.load(saved)


def test_a_foreign_model_is_refused(tiny_tokenizer: Tokenizer) -> None:
    with pytest.raises(ModelError, match="is no SentencePiece model"):
        Tokenizer.build(b"nonsense", tiny_tokenizer.settings, AnalyzerOptions(), {})
    with pytest.raises(ModelError, match="the vocabulary has no ▁, but mark is 'eojeol'"):
        Tokenizer.build(tiny_tokenizer._parts.model, VocabularySettings(mark="eojeol"), AnalyzerOptions(), {})
