"""`korbert check`: what may be wrong in a labelled file, with places."""

import csv
import re

import pytest

from korbert.pipelines.reports.drawing import is_page

GOOD = ("정말 재미있는 영화", "또 보고 싶은 명작", "배우들 연기가 훌륭하다", "감동적이고 따뜻하다", "최고의 작품이다")
BAD = ("시간이 아까운 영화", "지루해서 졸았다", "연기가 너무 어색하다", "돈이 아까운 쓰레기", "최악의 작품이다")
ENDS = ("", " 진짜로", ", 내 생각에는", " 역시", " 솔직히", " 오늘 봤는데")
ROWS = [(text + end, label) for end in ENDS for good, bad in zip(GOOD, BAD, strict=True)
        for text, label in ((good, "긍정적이다"), (bad, "부정적이다"))]  # fmt: skip


def _write(path, rows, names=("문장", "감정")):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([names, *rows])
    return path


def _found(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return {int(row["line"]): row for row in csv.DictReader(file)}


@pytest.fixture
def checked(here, command):
    """(rows, options) -> what is printed, and line -> row of the CSV file."""

    def ran(rows, *asked, names=("문장", "감정")):
        file = _write(here / "my.csv", rows, names)
        (here / "found.csv").unlink(missing_ok=True)
        said = command("check", file, *asked, "--output", here / "found.csv", "--html", here / "found.html")
        return said.out, _found(here / "found.csv")

    return ran


def test_rows_with_turned_labels_come_first(checked, here):
    turned = {7: "긍정적이다", 22: "부정적이다", 41: "긍정적이다"}  # line -> label, which was the other one
    rows = [(text, turned.get(line, label)) for line, (text, label) in enumerate(ROWS, 2)]
    assert all(rows[line - 2] != ROWS[line - 2] for line in turned)
    said, found = checked(rows, "--text", "문장", "--label", "감정")
    assert set([*found][:3]) == set(turned)
    for line, label in turned.items():
        assert (found[line]["text"], found[line]["label"]) == rows[line - 2]
        assert found[line]["likelier"] not in ("", label)
        assert float(found[line]["probability"]) < 0.5
        assert found[line]["findings"] == "doubtful"
    doubtful = [line for line, row in found.items() if "doubtful" in row["findings"]]
    assert len(doubtful) == 4  # one more than were turned
    assert "labels that the model finds unlikely: 4: " in said
    assert f"my.csv, line {next(iter(found))}; " in said
    page = (here / "found.html").read_text(encoding="utf-8")
    assert is_page(here / "found.html")
    assert "<script" not in page
    assert all(rows[line - 2][0] in page for line in turned)


def test_a_tenth_of_the_rows_are_findings_and_all_are_counted(checked):
    others = {"긍정적이다": "부정적이다", "부정적이다": "긍정적이다"}
    rows = [(text, label if number % 4 else others[label]) for number, (text, label) in enumerate(ROWS)]
    said, found = checked(rows, "--text", "문장", "--label", "감정")
    count = int(re.search(r"finds unlikely: (\d+): ", said)[1])
    assert count > len(rows) // 10
    assert sum("doubtful" in row["findings"] for row in found.values()) == len(rows) // 10
    assert "only the 6 least likely of them are findings" in said


def test_the_model_may_be_the_folder_that_one_is_in(checked, untrained, monkeypatch, here):
    monkeypatch.chdir(untrained())
    said, _ = checked(ROWS, "--text", "문장", "--label", "감정", "--model", ".")
    assert "labels that the model finds unlikely" in said


def test_each_finding_has_its_places(checked, here):
    rows = [
        *ROWS,
        ("그냥 볼만하다", "긍정저이다"),  # line 62, a slip
        (ROWS[0][0], ROWS[0][1]),  # 63, as line 2
        (ROWS[1][0], "긍정적이다"),  # 64, line 3 has the other label
        ("문의는 010-1234-5678로, kim@example.com", "긍정적이다"),
        ("", "긍정적이다"),
    ]
    test = _write(here / "test.csv", [ROWS[4]])
    said, found = checked(rows, "--text", "문장", "--label", "감정", "--test", test)
    assert "label '긍정저이다' (rows: 1) may be a slip of '긍정적이다' (rows: 33): " in said
    assert "labels with fewer than 10 rows: '긍정저이다' (1)" in said
    assert {"slip", "rare"} <= {*found[62]["findings"].split("; ")}
    assert "rows that stand there before: 1: " in said
    assert "my.csv, line 63" in said
    assert "repeated" in found[63]["findings"]
    assert 2 not in found
    assert "texts with different labels: 1: " in said
    assert "contrary" in found[3]["findings"]
    assert "contrary" in found[64]["findings"]
    assert "test rows with the texts of a training row: 1 of 1" in said
    assert found[6]["findings"].endswith("in test")
    assert found[65]["findings"].endswith("email; phone")
    assert "rows with phone numbers: 1: " in said
    assert "rows with e-mail addresses: 1: " in said
    assert "dropped 1 as no_text: " in said
    assert "my.csv, line 66" in said
    assert 66 not in found


def test_other_targets_are_not_compared_with_a_model(checked):
    rows = [(text, number + 0.5) for number, (text, _) in enumerate(ROWS[:20])]
    rows += [rows[0], ("메일은 kim@example.com", 3.5)]
    said, found = checked(rows, names=("문장", "점수"))
    assert "labels are not compared with a model" in said
    assert {line: row["findings"] for line, row in found.items()} == {22: "repeated", 23: "email"}
    assert found[22]["label"] == "0.5"
    several = [(text, "영화|" + label) for text, label in ROWS[:20]]
    said, found = checked(several, "--text", "문장", "--label", "감정", "--several")
    assert "labels are not compared with a model" in said
    assert not found


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("missing.csv", "missing.csv: no such file"),
        ("my.csv --text 글", "no column '글'"),
        ("my.csv --text 문장 --label 감정 --output my.csv", "my.csv"),
        ("my.csv --text 문장 --label 감정 --html my.csv", "my.csv"),
        ("one.csv --text 문장 --label 감정", "all rows have the label '긍정'"),
    ],
)
def test_what_check_refuses(asked, said, here, command):
    _write(here / "my.csv", ROWS)
    _write(here / "one.csv", [("좋다", "긍정"), ("또 보자", "긍정")])
    before = (here / "my.csv").read_bytes()
    assert said in command("check", *asked.split(), code=2).err
    assert (here / "my.csv").read_bytes() == before
