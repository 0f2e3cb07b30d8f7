"""`korbert label` and `korbert suggest`, from texts without labels to a model."""

import csv
import json

import pytest

import korbert

TEXTS = [
    "환불해 주세요",
    "배송이 언제 오나요",
    "택배 배송이 늦네요",
    "",
    "환불 신청했어요",
    "배송 조회가 안 돼요",
    "환불이 안 됐어요",
]


@pytest.fixture
def texts(here):
    with (here / "texts.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["문의"], *([text] for text in TEXTS)])
    return here / "texts.csv"


def _rows(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_from_nothing_to_a_model(here, texts, command):
    asked = ("label", texts, "--text", "문의", "--labels", "환불,배송", "--describe", "배송: 언제 오는지 묻는다")
    results = [json.loads(line) for line in command(*asked, "--save", here / "first").out.splitlines()]
    assert [one["label"] for one in results[:3]] == ["환불", "배송", "배송"]
    assert results[3]["why"] == "the text is empty"
    assert korbert.load(here / "first").predict(TEXTS[0]).label == "환불"
    again = command("label", texts, "--text", "문의", "--labels", "환불", "--save", here / "first", code=2).err
    assert "first: already exists: name a new folder" in again  # before anything is done

    command("suggest", here / "first", texts, "--text", "문의", "--rows", "4", "--output", here / "next.csv")
    rows = _rows(here / "next.csv")
    assert list(rows[0]) == ["line", "text", "guess", "probability", "label"]
    assert all(TEXTS[int(row["line"]) - 1] == row["text"] and row["guess"] and not row["label"] for row in rows)
    for row in rows[:3]:
        row["label"] = row["guess"]
    with (here / "next.csv").open("w", encoding="utf-8-sig", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)
    more = ("--labelled", here / "next.csv", "--rows", "2", "--output", here / "more.csv")
    command("suggest", "korbert-mini-embed", texts, "--text", "문의", *more)
    grown = _rows(here / "more.csv")
    assert [row["label"] for row in grown] == [*(row["label"] for row in rows[:3]), "", ""]
    assert len({row["text"] for row in grown}) == 5
    found = korbert.finetune("korbert-mini", here / "more.csv", quick=True, baselines=False)
    assert found.model.predict(TEXTS[0]).label in ("환불", "배송")


def test_what_suggest_cannot_read_is_said(here, command):
    lines = [json.dumps({"text": text}, ensure_ascii=False) for text in filter(None, TEXTS)]
    lines[2:2] = ["no JSON", '{"text": 3}']
    (here / "texts.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (here / "done.jsonl").write_text(
        '{"text": "환불이 안 됐어요\\r", "label": "환불"}\n{"text": "가\\ud800", "label": "배송"}\n', encoding="utf-8"
    )
    asked = ("--labelled", "done.jsonl", "--rows", "2", "--output", "next.csv")
    said = command("suggest", "korbert-mini-embed", "texts.jsonl", *asked, code=1).err
    assert "dropped 1 as bad_text: done.jsonl, line 2: 'text' has a surrogate at character 1" in said
    assert "korbert: texts.jsonl: line 3: is not JSON" in said
    assert "korbert: texts.jsonl: line 4: 'text' is a number, not a string" in said
    assert "texts.jsonl: 2 of 8 lines failed" in said
    rows = _rows(here / "next.csv")
    assert [row["label"] for row in rows] == ["환불", "", ""]
    assert rows[0]["text"] == "환불이 안 됐어요\r"
    assert all(json.loads(lines[int(row["line"]) - 1])["text"] == row["text"] for row in rows[1:])


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("--labels 환불,배송 -", "is read twice: give a file"),
        ("--labels 환불,배송 --describe 환불 texts.csv", "give it as NAME: SENTENCE"),
        ("--labels 환불,배송 --describe 환불:가 --describe 환불:나 texts.csv", "환불 is described twice"),
        ("--labels 환불 --text 문의 texts.csv", "--labels: 환불: give two labels or more"),
        ("--labels 환불,배송 texts.csv", "no column text among 문의"),
    ],
)
def test_what_label_refuses(asked, said, texts, command):
    assert said in command("label", *asked.split(), code=2).err
