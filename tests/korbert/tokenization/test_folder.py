import hashlib
import json

import pytest

from korbert.errors import ModelError
from korbert.tokenization import AnalyzerOptions, Tokenizer, VocabularySettings
from korbert.tokenization.tokenizer import PROBE_TEXTS


@pytest.fixture
def saved(tiny_tokenizer, tmp_path):
    tiny_tokenizer.save(tmp_path / "tokenizer")
    return tmp_path / "tokenizer"


def change(path, **fields):
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | fields), encoding="utf-8")


@pytest.mark.parametrize("name", ["vocabulary.model", "pieces.txt"])
def test_changed_and_missing_files_are_refused(saved, name):
    (saved / name).write_bytes((saved / name).read_bytes()[:-1] + b"?")
    with pytest.raises(ModelError, match=rf"{name}: was changed \(SHA-256"):
        Tokenizer.load(saved)
    (saved / name).unlink()
    with pytest.raises(ModelError, match=f"{name}: cannot be read, but belongs to the tokenizer"):
        Tokenizer.load(saved)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"format": 2}, "format 2, this korbert reads 1"),
        ({"analyzer": {"z_coda": False}}, ".* a setting was changed since"),
        ({"analyzer": {"z_codas": False}}, "z_codas: Extra inputs"),
        ({"vocabulary": {"mark": "eojeol"}}, ".* a setting was changed since"),
        ({"vocabulary": []}, "vocabulary: Input should be a valid dictionary"),
        ({"digest": "0" * 64}, "the digest is .*, 000000000000 when it was saved"),
        ({"files": {"vocabulary.model": None}}, r"files\.vocabulary\.model: Input should be a valid string"),
        ({"files": {}}, "files: '' are not the files of a tokenizer: restore the file as it was saved"),
        (None, "is no tokenizer, it has no korbert_tokenizer.json"),
        ("{", "cannot be read"),
        ("[]", "format None, this korbert reads 1"),
        ("[" * 100_000, r"cannot be read \(is nested too deeply\)"),
        ('{"format": 1}', "digest: Field required: restore the file as it was saved"),
    ],
)
def test_a_changed_or_unreadable_record_is_refused(saved, record, message):
    path = saved / "korbert_tokenizer.json"
    if isinstance(record, dict):
        change(path, **record)
    else:
        path.unlink() if record is None else path.write_text(record, encoding="utf-8")
    with pytest.raises(ModelError, match=message if record is None else rf"korbert_tokenizer\.json: {message}"):
        Tokenizer.load(saved)


@pytest.mark.parametrize("outside", ["../secret", "{folder}/secret"])
def test_no_file_outside_the_folder_is_read(saved, tmp_path, outside):
    (tmp_path / "secret").write_text("another's", encoding="utf-8")
    files = json.loads((saved / "korbert_tokenizer.json").read_text(encoding="utf-8"))["files"]
    files[outside.format(folder=tmp_path)] = hashlib.sha256(b"another's").hexdigest()
    change(saved / "korbert_tokenizer.json", files=files)
    with pytest.raises(ModelError, match=r"_tokenizer\.json: files: .* are not the files of a tokenizer"):
        Tokenizer.load(saved)


OTHERS = {"kiwipiepy": "9.9.9", "kiwipiepy_model": "9.9.9"}


def test_another_kiwi_is_refused_with_the_ways_out(saved, monkeypatch):
    monkeypatch.setattr("korbert.tokenization.analyzer.installed_version", lambda package: "9.9.9")
    with pytest.raises(ModelError) as refused:
        Tokenizer.load(saved)
    said = str(refused.value)
    assert "made with kiwipiepy 0.24.1, kiwipiepy_model 0.24.0, installed is kiwipiepy 9.9.9" in said
    for way in (f"`korbert tokenize {saved} --check`", "kiwipiepy==0.24.1", "another vocabulary", "accept_kiwi"):
        assert way in said


def test_another_kiwi_that_is_accepted_is_recorded(saved, tmp_path, monkeypatch):
    digest = Tokenizer.load(saved, accept_kiwi=True).digest
    assert "accepted" not in json.loads((saved / "korbert_tokenizer.json").read_text(encoding="utf-8"))
    monkeypatch.setattr("korbert.tokenization.analyzer.installed_version", lambda package: "9.9.9")
    tokenizer = Tokenizer.load(saved, accept_kiwi=True)
    assert tokenizer.digest == digest
    tokenizer.save(tmp_path / "again")
    assert json.loads((tmp_path / "again" / "korbert_tokenizer.json").read_text(encoding="utf-8"))["accepted"] == OTHERS
    Tokenizer.load(tmp_path / "again")  # once is enough
    monkeypatch.setattr("korbert.tokenization.analyzer.installed_version", lambda package: "9.9.10")
    with pytest.raises(ModelError, match=r"installed is kiwipiepy 9\.9\.10"):
        Tokenizer.load(tmp_path / "again")
    monkeypatch.setenv("KORBERT_ACCEPT_KIWI", "1")
    Tokenizer.load(tmp_path / "again")


def test_recorded_sentences_tell_how_many_pieces_change(tiny_tokenizer, tmp_path):
    tokenizer = Tokenizer(*tiny_tokenizer.parts)
    assert tokenizer.compare_probe() is None
    tokenizer.record_probe_encodings()
    tokenizer.save(tmp_path)
    loaded = Tokenizer.load(tmp_path)
    same = loaded.compare_probe()
    assert same is not None
    assert (same.changed, same.texts) == (0, [])
    assert same.pieces > 300

    rows = json.loads((tmp_path / "probe.json").read_text(encoding="utf-8"))
    assert [row["text"] for row in rows] == list(PROBE_TEXTS)
    rows[3]["ids"][2:4] = [400]  # two pieces were one
    changed = Tokenizer(*loaded.parts._replace(probe=json.dumps(rows).encode())).compare_probe()
    assert (changed.changed, changed.texts) == (2, [PROBE_TEXTS[3]])


def test_a_foreign_model_is_refused(tiny_tokenizer):
    for model, mark, said in (
        (b"nonsense", "none", "is not a SentencePiece model"),
        (tiny_tokenizer.parts.model, "eojeol", "the vocabulary lacks ▁, but mark = 'eojeol'"),
    ):
        with pytest.raises(ModelError, match=said):
            Tokenizer(model, VocabularySettings(mark=mark), AnalyzerOptions(), {})
