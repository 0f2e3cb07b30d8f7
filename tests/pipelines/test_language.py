"""Korean of pages, help and results: each text that asks for it has it, each in the table is asked for, numbers stay.

What a command or an option says in its help needs an entry of pipelines/ko.toml: a failure names the text.
"""

import ast
import inspect
import re
import unicodedata
from pathlib import Path

import click
import pytest

from korbert.pipelines import cli
from korbert.pipelines.language import _NUMBER, language, t, table
from korbert.pipelines.reports.look.page import page

PACKAGE = Path(__file__).resolve().parents[2] / "pipelines"
TEMPLATES = PACKAGE / "reports" / "templates"
SHIPPED = [*PACKAGE.glob("recipes/*.toml"), PACKAGE.parent / "korbert" / "tasks" / "datasets.toml"]
ELSEWHERE = ("korbert/tasks/**/*.py", "corpus/**/*.py", "korbert/modeling/counting.py", "korbert/records/*.py")
"""Where texts are made that pages and commands translate when they show them."""


def key(text):
    return _NUMBER.sub("{}", text)


def in_scripts():
    """What stands in t(..) in the scripts and in look.html, and what their buttons are named."""
    sources = [path.read_text(encoding="utf-8") for path in (*TEMPLATES.glob("look/*.js"), TEMPLATES / "look.html")]
    for source in sources:
        joined = re.sub(r"([\"`])\s*\+\s*\1", "", source)
        for double, back in re.findall(r"\bt\(\s*(?:\"((?:[^\"\\]|\\.)*)\"|`((?:\$\{[^}]*\}+|[^`])*)`)\s*\)", joined):
            yield re.sub(r"\$\{(?:[^{}]|\{[^}]*\})*\}", "{}", double or back)
    for name in ("page", "attention"):
        script = (TEMPLATES / "look" / f"{name}.js").read_text(encoding="utf-8")
        yield from re.findall(r'\["\w+", "([A-Z][\w ]+)"', script)  # rooms, units, directions
    yield from re.findall(r'(?:choice|menu)\("(\w+)"', "".join(sources))


def in_templates():
    for path in TEMPLATES.glob("*.html"):
        yield from re.findall(r'"([^"]*)"\|t', path.read_text(encoding="utf-8"))


def strings():
    """(called function, text) of each string of the package that may be shown; parts that vary are {}."""
    for path in (*PACKAGE.rglob("*.py"), *(path for where in ELSEWHERE for path in PACKAGE.parent.glob(where))):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args)
        first = {id(call.args[0]): ast.unparse(call.func) for call in calls}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield first.get(id(node), ""), node.value
            elif isinstance(node, ast.JoinedStr):
                parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
                yield first.get(id(node), ""), "".join(map(str, parts))


def in_help():
    """Headings, paragraphs, and what options do; behind it, what is in brackets and more than a number."""
    yield from (*cli.GROUPS, "Options", "Show this message and exit.", "default", "env var", "required")
    for command in (cli.cli, *cli.cli.commands.values()):
        yield cli.summary(command)
        for paragraph in inspect.cleandoc(command.help).split("\n\n"):
            lines = paragraph.split("\n")
            yield lines[1] if lines[0] == "\b" else " ".join(lines)  # the head of examples, which are not wrapped
        for option in command.params:
            if isinstance(option, click.Option):
                parts = (option.help or "NO HELP").split("  ")
                yield from (part for part in parts if not re.fullmatch(r"\[default: [-.\de]+\]", part))


def required():
    """Texts that the table must have: of the page that shows a text, of templates, headings, arguments of t, help."""
    named = [text for function, text in strings() if function in ("t", "Section") and text]
    return {*map(key, (*in_scripts(), *in_templates(), *in_help(), *named))}


def test_the_table_has_what_is_asked_for():
    assert required() - table().keys() - {re.sub(r"{\w+}", "{}", text) for text in table("patterns")} == set()
    assert [english for english, korean in table().items() if english.count("{}") != korean.count("{}")] == []
    for english, korean in table("patterns").items():
        assert korean.format(*["0"] * english.count("{}"), **{name: name for name in re.findall(r"{(\w+)}", english)})


def test_what_the_table_has_is_asked_for():
    labels = (PACKAGE / "reports" / "figures.toml").read_text(encoding="utf-8")
    labelled = re.findall(r'= "([^"]*)"', labels)
    labelled += [text[:1].upper() + text[1:] for text in labelled]  # at the head of a figure
    labelled += re.findall(r'= "([^"]*)"', "".join(path.read_text(encoding="utf-8") for path in SHIPPED))
    texts = [*(text.replace("_", " ") for _, text in strings()), *labelled]
    unknown = table().keys() - required() - set(map(key, texts))
    skeletons = [".*".join(map(re.escape, text.split("{}"))) for text in texts if len(text.replace("{}", "")) > 5]
    assert {text for text in unknown if not any(re.fullmatch(own, text) for own in skeletons)} == set()
    texts += [path.read_text(encoding="utf-8") for path in TEMPLATES.glob("*.html")]
    words = set(re.findall(r"\w+", " ".join(texts).lower()))
    asked = {text: re.findall(r"\w+", re.sub(r"{\w*}", " ", text).lower()) for text in table("patterns")}
    assert [text for text, own in asked.items() if not words.issuperset(own)] == []


@pytest.mark.parametrize(("option", "locale", "browser", "expected"), [
    ("", "ko_KR.UTF-8", None, "ko"), ("", "C.UTF-8", None, "en"), ("", "", None, "en"),
    ("en", "ko_KR.UTF-8", "ko", "en"), ("ko", "C", "en-US", "ko"),
    ("", "ko_KR.UTF-8", "en-US,en;q=0.9,ko;q=0.8", "en"), ("", "C", "ko-KR,ko;q=0.9", "ko"),
])  # fmt: skip
def test_the_option_comes_before_the_browser_and_the_locale(option, locale, browser, expected, monkeypatch):
    for name, value in (("KORBERT_LANG", option), ("LC_ALL", ""), ("LC_MESSAGES", ""), ("LANG", locale)):
        monkeypatch.setenv(name, value)
    assert language(browser) == expected


def test_a_text_keeps_its_numbers_and_names(monkeypatch):
    monkeypatch.delenv("KORBERT_LANG", raising=False)
    assert t("1,234 documents analysed, none failed", "ko") == "문서 1,234개 분석, 실패 없음"
    assert t("mood: 3 rows", "ko") == "mood: 3 rows"
    assert t("3 of 5", "ko") == "5개 중 3개"
    assert t("analyze-1: 3 of 5 parts done", "ko") == "analyze-1: 5개 중 3개 완료"
    assert t("a: " * 1_333, "ko") == "a: " * 1_333  # by patterns, it would take minutes
    assert t("Attention", "en") == "Attention"
    assert '<html lang="ko">' in page(None, "ko")
    assert "어텐션" not in page(None, "en")


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


def test_errors_of_usage_stay_english(monkeypatch, command):
    monkeypatch.setenv("KORBERT_LANG", "ko")
    assert command("finetune", code=2).err.startswith("Usage: korbert finetune")


def test_all_is_text_after_two_dashes(command):
    assert "lang" in command("tokenize", "korbert-mini", "--", "--lang", "ko").out


def test_patterns_have_korean_with_the_same_places():
    for english, korean in table("patterns").items():
        places, used = (set(re.findall(r"{([a-zA-Z]+)}", text)) for text in (english, korean))
        numbers = len(re.findall(r"\d+", re.sub(r"{\d}", "{}", korean))) + len(re.findall(r"{\d?}", korean))
        assert (english, used, numbers) == (english, places, english.count("{}"))


@pytest.mark.parametrize(("english", "korean"), [
    ("ft: accuracy 4.7 points above the TF-IDF baseline", "ft: 정확도, TF-IDF 베이스라인보다 4.7점 높음"),
    ("accuracy: macro F1 0.120 below the mean baseline", "accuracy: 매크로 F1, 평균 베이스라인보다 0.120 낮음"),
    ("7 of 9 stages done; their last runs took 1 h 2 min in total.",
     "단계 9개 중 7개 완료; 마지막 실행 시간 합계 1시간 2분."),
    ("a.csv: 10 rows (CSV in UTF-8; text from 'rows', label from 'label')",
     "a.csv: 10행(CSV, UTF-8, text='rows', label='label')"),
    ("Nothing that is known; accuracy 3", "Nothing that is known; 정확도 3"),
])  # fmt: skip
def test_sentences_keep_names_and_translate_phrases(english, korean):
    assert (t(english, "ko"), t(english, "en")) == (korean, english)
