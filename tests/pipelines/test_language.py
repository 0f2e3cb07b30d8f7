"""Help in both languages. tests/test_catalogue.py has what is true of all messages."""

import re
import unicodedata

import pytest

from korbert.pipelines import cli
from korbert.pipelines.reports.look.page import page


def test_the_page_of_a_text_is_in_the_language_of_the_browser(monkeypatch):
    monkeypatch.delenv("KORBERT_LANG", raising=False)
    assert '<html lang="ko">' in page(None, "ko")
    assert "\\uc5b4\\ud150\\uc158" in page(None, "ko")  # 어텐션, among the words of the scripts
    assert "\\uc5b4\\ud150\\uc158" not in page(None, "en")


@pytest.mark.parametrize(("lang", "title", "fill"), [
    ("ko", "모델 들여다보기:", "TEXT의 [MASK]마다 확률이 가장 높은 토큰을 채웁니다."),
    ("en", "Inside a model:", "Fill each [MASK] in TEXT with the most probable pieces."),
])  # fmt: skip
def test_the_list_of_commands_is_in_the_language(lang, title, fill, monkeypatch, command):
    monkeypatch.setenv("KORBERT_LANG", lang)
    said = command("--help").out.splitlines()
    assert {title, f"  fill         {fill}"} <= set(said)
    assert command().out.splitlines() == said


def listed(options):
    return re.findall(r"^  (-\S.*?)(?:  |$)", options, re.MULTILINE)


def examples(shown):
    return re.findall("^    korbert .*", shown, re.MULTILINE)


@pytest.mark.parametrize("name", ["", *cli.cli.commands])
def test_help_is_as_whole_in_korean(name, monkeypatch, command):
    monkeypatch.setenv("KORBERT_LANG", "en")
    monkeypatch.setenv("COLUMNS", "100")
    english, korean = (command(*name.split(), "--help", *lang).out for lang in ((), ("--lang", "ko")))
    assert korean.startswith(f"사용법: {english.splitlines()[0].removeprefix('Usage: ')}\n")
    assert listed(korean.partition("\n옵션:\n")[2]) == listed(english.partition("\nOptions:\n")[2]) != []
    assert examples(korean) == examples(english)
    lines = [line for line in korean.splitlines() if not line.startswith("    korbert ")]
    wide = {line: len(line) + sum(unicodedata.east_asian_width(char) == "W" for char in line) for line in lines}
    assert [line for line in lines if re.search(r"[가-힣]", line) and wide[line] > 98] == []
    unquoted = re.sub('"[^"]*"', "", "\n".join(lines))  # names of layers have blanks
    assert re.findall(r"[A-Za-z]+ [a-z]+ [a-z]+|default:|env var:|required]", unquoted) == []


@pytest.mark.parametrize("arguments", [("--lang", "ko", "--help"), ("finetune", "--lang=ko", "-h")])
def test_help_is_in_the_language_that_stands_before_it(arguments, monkeypatch, command):
    monkeypatch.setenv("KORBERT_LANG", "en")
    assert "  -h, --help " in command(*arguments).out.partition("\n옵션:\n")[2]


def test_errors_of_usage_are_in_the_language(monkeypatch, command):
    monkeypatch.setenv("KORBERT_LANG", "ko")
    said = command("finetune", code=2).err
    assert said.startswith("사용법: korbert finetune")
    assert "오류: 인자가 없습니다: 'MODEL'." in said


def test_all_is_text_after_two_dashes(command):
    assert "lang" in command("tokenize", "korbert-mini", "--", "--lang", "ko").out
