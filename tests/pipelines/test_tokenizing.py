"""The command `tokenize`: what it shows, --check, --accept-kiwi, errors."""

import json
import os

import pytest

from korbert.pipelines.commands import options
from korbert.tokenization import Tokenizer, folder


def test_the_command_takes_arguments_files_and_standard_input(tiny_tokenizer, tmp_path, command):
    folder = tmp_path / "model" / "tokenizer"
    lines = tmp_path / "lines.txt"
    tiny_tokenizer.save(folder)
    lines.write_text("\ufeff학교에 간다\n이걸 봤다\n", encoding="utf-8")

    table = command("tokenize", tmp_path / "model", "학교에 [MASK] 간다", "--special-tokens").out
    assert [line.split()[0] for line in table.splitlines()] == ["piece", "학교", "에", "[MASK]", "가", "ᆫ다"]

    found = [json.loads(line) for line in command("tokenize", folder, "--json", "--input", lines).out.splitlines()]
    assert [one["text"] for one in found] == ["학교에 간다", "이걸 봤다"]
    assert found[0]["pieces"][-1] == {
        "piece": "ᆫ다", "id": tiny_tokenizer.ids_of("ᆫ다")[0], "span": [4, 6], "tag": "EF", "eojeol": 1
    }  # fmt: skip


def test_check_says_how_much_another_kiwi_changes(tiny_tokenizer, tmp_path, command, monkeypatch):
    tokenizer = Tokenizer(*tiny_tokenizer.parts)
    tokenizer.save(tmp_path / "without")
    tokenizer.record_probe_encodings()
    tokenizer.save(tmp_path / "with")
    monkeypatch.setattr("korbert.tokenization.analyzer.installed_version", lambda package: "9.9.9")
    said = command("tokenize", tmp_path / "without", "--check").out
    assert said == "this tokenizer was saved without probe sentences to compare\n"
    said = command("tokenize", tmp_path / "with", "--check").out
    assert said.startswith("0 of ")
    assert "pieces differ (0.0%): made with kiwipiepy 0.24.1" in said
    assert "installed is kiwipiepy 9.9.9" in said


def test_accept_kiwi_is_handed_to_processes(tiny_tokenizer, tmp_path, command, monkeypatch):
    monkeypatch.setenv("KORBERT_ACCEPT_KIWI", "")  # put back behind the test
    tiny_tokenizer.save(tmp_path)
    monkeypatch.setattr("korbert.tokenization.analyzer.installed_version", lambda package: "9.9.9")
    assert "--accept-kiwi" in command("tokenize", tmp_path, "가", code=2).err
    command("tokenize", tmp_path, "가", "--accept-kiwi")
    assert options.ACCEPT == folder.ACCEPT


@pytest.fixture(scope="module")
def vocab(tiny_tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocab")
    tiny_tokenizer.save(folder / "tokenizer")
    return folder


def test_escape_sequences_stay_in_the_text(vocab, tmp_path, command):
    table = command("tokenize", vocab, "가\x1b]0;x\x07\u202e나").out
    assert not {"\x1b", "\x07", "\u202e"} & set(table)
    assert "\\x1b" in table
    assert "is no tokenizer" in command("tokenize", tmp_path, "가", code=2).err


@pytest.mark.parametrize("options", [["--json"], []], ids=["json", "table"])
def test_a_line_that_is_too_long_is_named(vocab, here, options, command):
    (here / "lines.txt").write_text("가\n" + "나" * 500_000 + "\n", encoding="utf-8")
    said = command("tokenize", vocab, "--input", "lines.txt", *options, code=1).err
    assert said == "korbert: lines.txt: line 2: is longer than 1,048,576 bytes: put it on several lines\n"
    assert [path.name for path in here.iterdir()] == ["lines.txt"]


def test_a_text_that_is_not_utf8(vocab, command):
    for form in ([], ["--json"]):
        said = command("tokenize", vocab, "가", os.fsdecode(b"\xb0\xa1"), *form, code=2).err
        assert "text 2: character 1 is not UTF-8" in said
