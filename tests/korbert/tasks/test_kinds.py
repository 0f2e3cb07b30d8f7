"""Rows that a kind of task refuses to learn from, and how it is recognised."""

from pathlib import Path

import pytest

from korbert.errors import CorpusError, SettingsError
from korbert.tasks.files import read_rows
from korbert.tasks.kinds import KINDS
from korbert.tasks.kinds.detecting import detect
from pipelines.finetuning import read_parts, roles_of
from pipelines.stages import Inputs


@pytest.mark.parametrize(
    ("kind", "lines", "settings", "message"),
    [
        (
            "tagging",
            ["tokens,tags", "나는 간다,O O", "철수 간다,B-PS O", "영희 간다,B_PS O"],
            {},
            r"a.csv, line 4: tag 'B_PS' is none of O, B-LABEL and I-LABEL, which other tags are: correct it",
        ),
        (
            "tagging",
            ["tokens,tags", "나 는,O O", "철 수,B-PS E-PS"],
            {},
            r"a.csv, line 3: tag 'E-PS' is none of .* which tags of characters have to be",
        ),
        (
            "choice",
            ["text,choices,label", *(f'하늘은,"[""가"", ""나{n}""]",{1 + n % 2}' for n in range(4))],
            {},
            r"a.csv, line 3: label '2' of 2 choices: labels count from 0",
        ),
        (
            "classification",
            ["text,label", "가,없음", "나,있음"],
            {"uncounted": "업음"},
            r"uncounted '업음': is none of the labels 없음, 있음",
        ),
        ("classification", ["text,label", "가,[]", "나,[]"], {"several": True}, "a.csv: no row has a label"),
    ],
)
def test_what_no_kind_learns_from(
    tmp_path: Path, kind: str, lines: list[str], settings: dict[str, object], message: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    section = KINDS[kind].section_class(train=str(path), **settings)
    kind_class = KINDS[kind].kind_class
    rows = read_rows(path, roles_of(kind_class, several=bool(settings.get("several")), part="train"))
    with pytest.raises((CorpusError, SettingsError), match=message):
        kind_class.learned_from(rows, section)


def test_numbers_are_scores_though_one_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,label\n" + "\n".join(f"문장,{n / 7:.3f}" for n in range(50)) + "\n문장,\n", encoding="utf-8")
    assert detect(path, {}).kind == "regression"


def test_a_set_is_of_its_own_kind(tmp_path: Path) -> None:
    section = KINDS["choice"].section_class(set="klue-sts")
    with pytest.raises(SettingsError, match="kind choice: klue-sts is a set of kind regression: leave kind out"):
        read_parts(section, Inputs({}, {}), tmp_path)
    with pytest.raises(ValueError, match="leave valid, test, columns, form and several out"):
        KINDS["regression"].section_class(set="klue-sts", form="csv")
