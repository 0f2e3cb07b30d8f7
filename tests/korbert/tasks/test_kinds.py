"""Rows that a kind of task refuses to learn from, and how it is recognised."""

import json
from types import SimpleNamespace

import numpy as np
import openpyxl
import pytest

from korbert.errors import CorpusError, SettingsError
from korbert.pipelines.artifacts.stage import StageInputs
from korbert.pipelines.experiments.task_rows import read_parts, roles_of
from korbert.tasks.files import read_rows
from korbert.tasks.kinds import ALIASES, KINDS, section_class
from korbert.tasks.kinds.detecting import detect
from korbert.tasks.splits import Splits
from tests.korbert.tasks.writing import written

HASTY = "text,choices,label\n" + "\n".join(f'하늘은,"[""가"", ""나{n}""]",{1 + n % 2}' for n in range(4))


@pytest.mark.parametrize(
    ("kind", "content", "settings", "message"),
    [
        ("token-classification", "tokens,tags\n나는 간다,O O\n철수 간다,B-PS O\n영희 간다,B_PS O\n", {},
         r"a.csv, line 4: tag 'B_PS' is not O, B-LABEL or I-LABEL, as other tags are: correct it"),
        ("token-classification", "tokens,tags\n나 는,O O\n철 수,B-PS E-PS\n", {},
         r"a.csv, line 3: tag 'E-PS' is not O, .* as tags of characters have to be"),
        ("multiple-choice", HASTY, {}, r"a.csv, line 3: label '2' of 2 choices: labels count from 0"),
        ("classification", "text,label\n가,없음\n나,있음\n", {"uncounted": "업음"},
         r"uncounted '업음': is not one of the labels 없음, 있음"),
        ("classification", 'text,label\n가,0\n나,1\n다,"0,1"\n', {},
         r"line 4: label '0,1' joins others, such as '0': if a text may have several labels, use several=True"),
        ("classification", "text,label\n가,정상\n나,hate\n다,기타편향|hate\n", {},
         r"line 4: label '기타편향\|hate' joins others, such as 'hate': if a text"),
        ("classification", "text,label\n가,[]\n나,[]\n", {"several": True}, "a.csv: no row has a label"),
    ],
)  # fmt: skip
def test_rows_that_a_kind_refuses(tmp_path, kind, content, settings, message):
    with pytest.raises((CorpusError, SettingsError), match=message):
        learned(written(tmp_path, "a.csv", content), kind, **settings)


def learned(path, kind, **settings):
    """The rows of a file, and the task that learned from them."""
    section, kind_class = KINDS[kind].section_class(train=str(path), **settings), KINDS[kind].kind_class
    rows = read_rows(path, roles_of(kind_class, SimpleNamespace(several=settings.get("several")), part="train"))
    return rows, kind_class.from_training_rows(rows, section)


def test_a_short_name_of_a_kind_is_as_good_as_its_name_and_a_set_is_of_its_own_kind(tmp_path):
    for short, kind in ALIASES.items():
        section = section_class({"kind": short}).model_validate({"kind": short, "train": "a.csv"})
        assert section == KINDS[kind].section_class(train="a.csv")
    section = KINDS["multiple-choice"].section_class(set="klue-sts")
    with pytest.raises(SettingsError, match="klue-sts is a set of kind regression: leave kind out"):
        read_parts(section, StageInputs({}, {}), tmp_path)
    with pytest.raises(ValueError, match="leave valid, test, columns, form, several and split_by_article out"):
        KINDS["regression"].section_class(set="klue-sts", form="csv")


@pytest.mark.parametrize(
    ("lines", "several", "kind", "why"),
    [
        (["comments,hate", "가,none", "나,hate"], False, "classification", "text from 'comments', label from 'hate'"),
        (["comments,label", "가,none", "나,hate"], False, "classification", "'comments', label from 'label': 2 labels"),
        (["문장,욕설,지역", "가,1,0", "나,0,0"], True, "classification", "text from '문장', label from '욕설', '지역'"),
        (["text,entities", '가나,"[[0, 1, ""PS""]]"'], False, "token-classification", "spans from 'entities'"),
        (["tokens,tags", "가 나,O B-PS"], False, "token-classification", "tokens from 'tokens', tags from 'tags'"),
        (["질문,지문,정답", "어디?,배는 서울,서울"], False, "question-answering", "context from '지문', answers from"),
        (["text,slots", '가나,"{""곳"": ""가""}"'], False, "slots", "text from 'text', slots from 'slots'"),
        (["text,choice1,choice2,label", "가,나,다,0"], False, "multiple-choice", "choices from 'choice1'"),
        (["text,score", "가,0.5"], False, "regression", "score from 'score'"),
        (["문장,점수,욕설,지역", "가,5,1,0", "나,3,0,0"], True, "classification", "label from '욕설', '지역'"),
        (["text,label", *(f"문장,{n % 30}" for n in range(90))], True, "classification", "label from 'label'"),
        (["comments,hate,categories", "가,0,0.5", "나,1,1.5"], True, "classification", "label from 'hate'"),
        (["text,label", *(f"문장,{n / 7:.3f}" for n in range(50)), "문장,"], False, "regression", "from 'label'"),
    ],
)
def test_what_a_file_is_taken_for(tmp_path, lines, several, kind, why):
    path = written(tmp_path, "a.csv", "\n".join(lines) + "\n")
    columns = {"label": ["hate"]} if "hate" in lines[0] else {}
    found = detect(path, columns, several=several)
    assert (found.kind, why in found.why) == (kind, True)


@pytest.mark.parametrize(("pairs", "counted"), [(499, ": 2 labels"), (501, "")])
def test_labels_are_counted_if_all_rows_were_looked_at(tmp_path, pairs, counted):
    path = written(tmp_path, "a.csv", "text,label\n" + "가,a\n나,\n" * pairs + "다,b\n")
    assert detect(path, {}).why == f"text from 'text', label from 'label'{counted}"


def test_a_role_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="'lable' cannot be named for this kind of task"):
        detect(written(tmp_path, "a.csv", "text,label\n가,a\n"), {"lable": ["label"]})


def test_files_of_several_labels_ask_for_several(tmp_path):
    path = written(tmp_path, "a.csv", "문장,욕설,지역\n가,1,0\n나,0,0\n")
    with pytest.raises(CorpusError, match=r"columns '욕설', '지역' hold 0 and 1: if each .* use several=True; else"):
        detect(path, {})
    path = written(tmp_path, "a.csv", 'text,labels\n가,"[1, 0]"\n나,"[0, 1]"\n')
    assert detect(path, {}).several


def test_columns_without_a_name_and_the_sheet_are_said(tmp_path):
    path = written(tmp_path, "a.csv", ",후기,느낌\n0,좋다,A\n")
    with pytest.raises(CorpusError, match=r"no column of labels or scores among \(no name\), 후기, 느낌: name it with"):
        detect(path, {})
    book = openpyxl.Workbook()
    book.active.title = "안내"
    book.active.append(["설문"])
    book.active.append(["2024년"])
    book.save(tmp_path / "a.xlsx")
    with pytest.raises(CorpusError, match=r"a\.xlsx \(Excel, sheet 안내; --sheet names another\): no column of labels"):
        detect(tmp_path / "a.xlsx", {})


def test_rows_without_a_label_are_learned_from(tmp_path):
    """And tags that are numbers are said."""
    path = written(tmp_path, "a.csv", "text,label\n가,hate\n나,\n다,\n")
    rows, task = learned(path, "classification", several=True)
    assert [task.target(row) for row in rows] == [["hate"], [], []]
    assert rows.notes == ["2 rows have no label: none of the labels is right for them"]
    path = written(tmp_path, "a.jsonl", [{"tokens": ["가", "나다"], "ner_tags": [0, 3]}])
    rows, _ = learned(path, "token-classification")
    assert rows.notes[0].startswith("the tags are numbers (0, 3, ..) without names")


def test_majority_of_choices_is_the_place_most_often_right_among_those_of_the_row():
    kind = KINDS["multiple-choice"].kind_class(metrics=("accuracy",), max_length=32, most=4)

    def row(count, label=0):
        return {"text": "가", "choices": list("가나다라마"[:count]), "label": str(label)}

    train = [row(4, label) for label in (1, 2, 2, 3)]
    majority = next(kind.baselines(Splits(train, [], [row(4), row(2), row(1), row(5)]), {}))
    assert [one["choice"] for one in majority.predictions] == [2, 1, 0, 2]
    probabilities = [one["probabilities"] for one in majority.predictions]
    assert probabilities == [[0, 0.25, 0.5, 0.25], [0, 1], [1], [0, 0.25, 0.5, 0.25, 0]]  # place 0 was never right


def test_pairs_do_not_warm_up_what_learns_from_single_texts(tmp_path):
    path = written(tmp_path, "a.csv", "text\n비가 온다\n눈이 온다\n")
    _, kind = learned(path, "embedding", valid="b.csv")
    kind.check_training_row({"text": "잠이 온다"})
    with pytest.raises(ValueError, match="has two texts, where the training rows have one"):
        kind.check_training_row({"text": "잠이 온다", "pair": "졸리다"})


def test_no_passage_to_validate_on_is_a_negative(tmp_path):
    others = [json.dumps([f"지문 {n}" for n in range(40) if n != row], ensure_ascii=False) for row in range(40)]
    lines = [f'{{"text": "질문 {n}", "pair": "지문 {n}", "negatives": {more}}}' for n, more in enumerate(others)]
    path = written(tmp_path, "a.jsonl", "\n".join(lines))
    _, parts = read_parts(KINDS["rerank"].section_class(train=str(path)), StageInputs({}, {"train": [path]}), tmp_path)
    held = {row["pair"] for row in parts.valid}
    assert len(held) == 4
    assert all(len(row["negatives"]) == 35 and not held & set(row["negatives"]) for row in parts.train)
    assert all(len(row["negatives"]) == 39 for row in parts.valid)


def test_the_baseline_leaves_out_the_label_that_the_metric_leaves_out(tmp_path, monkeypatch):
    """Its C is the one whose micro F1 without that label is highest."""
    path = written(tmp_path, "a.csv", "text,label\n가,없음\n나,있음\n다,없음\n")
    rows, kind = learned(path, "classification", uncounted="없음", metrics=("micro_f1",))
    scores = []

    def fit_labels(inputs, targets, score, count):
        scores.extend(score(np.array([[p, 1 - p] for p in row])) for row in ((1, 1, 1), (1, 0, 0)))
        return np.zeros((len(rows), count)), 1.0

    monkeypatch.setattr("korbert.tasks.baselines.fit_labels", fit_labels)
    kind = kind.model_copy(update={"rungs": ("encoder",)})
    list(kind.baselines(Splits(rows, rows, None), {text: [text] for text in "가나다"}))
    assert scores == [0, 2 / 3]  # accuracy has 2/3 of both
