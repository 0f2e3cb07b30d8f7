"""What a column holds is told by its name and by its cells; what could be two things is refused."""

import json
import unicodedata
from types import SimpleNamespace

import pytest

from korbert.errors import CorpusError
from korbert.pipelines.experiments.task_rows import roles_of
from korbert.tasks.files import ROLES, GoldAnswer, LabelledSpan, read_rows
from korbert.tasks.kinds import KINDS
from korbert.tasks.kinds.multiple_choice import MultipleChoice
from tests.korbert.tasks.writing import written

TEXT = ROLES["text"]
TAGGING = roles_of(KINDS["token-classification"].kind_class, part="train")
SEVERAL = roles_of(KINDS["classification"].kind_class, SimpleNamespace(several=True), part="train")
READING = roles_of(KINDS["question-answering"].kind_class, part="train")
SENTENCE = "하늘은 서울에 갔다"
SPANS = [LabelledSpan(0, 2, "PS"), LabelledSpan(4, 6, "LC")]
LISTS = [[0, 2, "PS"], [4, 6, "LC"]]
OBJECTS = [{"start": start, "end": end, "label": label} for start, end, label in LISTS]
OFFSETS = [{"start_offset": start, "end_offset": end, "label": label} for start, end, label in LISTS]
EMOJI = "😀😀 어제 하늘은 서울에 갔다"
NFD = {name: unicodedata.normalize("NFD", name) for name in ("문장", "감정", "긍정", "정답", "질문", "지문", "서울")}
CONTEXT = "배는 서울에서 난다. 하늘은 가을에 배를 팔았다."


def _jsonl(folder, *records):
    return written(folder, "a.jsonl", list(records))


def _csv(folder, content):
    return written(folder, "a.csv", content)


@pytest.mark.parametrize(
    "record",
    [
        *({name: LISTS} for name in ("labels", "entities", "spans")),
        {"label": LISTS, "comments": [{"text": "확인"}]},
        {"label": OBJECTS},
        {"annotations": OFFSETS},
        {"spans": OBJECTS, "tokens": [{"text": "하늘은", "start": 0, "end": 3, "id": 0}]},
        {"label": json.dumps(OBJECTS)},
    ],
)
def test_spans_under_the_names_of_labels(tmp_path, record):
    """Those that labelling tools write are in test_exports.py."""
    rows = read_rows(_jsonl(tmp_path, {"text": SENTENCE} | record), TAGGING)
    assert (rows.rows[0]["text"], rows.rows[0]["spans"], rows.dropped) == (SENTENCE, SPANS, {})


def test_tags_stay_tags_and_two_columns_of_spans_are_refused(tmp_path):
    rows = read_rows(_jsonl(tmp_path, {"tokens": ["가", "나"], "labels": ["O", "B-PS"]}), TAGGING)
    assert (rows.rows[0]["tags"], rows.rows[0]["spans"]) == (["O", "B-PS"], None)
    with pytest.raises(CorpusError, match="column 'label' or 'labels' may hold spans: say which one it is"):
        read_rows(_jsonl(tmp_path, {"text": SENTENCE, "label": LISTS, "labels": LISTS}), TAGGING)


@pytest.mark.parametrize(
    ("text", "start", "end", "quoted", "found"),
    [
        (EMOJI, 6, 8, "하늘", (6, 8)),
        (EMOJI, 8, 10, "하늘", (6, 8)),  # UTF-16 units
        (SENTENCE, 4, 5, "서울", (4, 6)),  # the end is that of the last character
        (SENTENCE, 4, 4, "서", (4, 5)),
        (unicodedata.normalize("NFD", SENTENCE), 0, 5, "하늘", (0, 5)),
        (EMOJI, 8, 10, "나래", None),
        (EMOJI, 10, 12, "하늘", None),
        (SENTENCE, 20, 22, "하늘", None),
        (SENTENCE, 4, 4, "하", None),
    ],
)
def test_the_text_of_a_span_says_where_it_is(tmp_path, text, start, end, quoted, found):
    """Offsets that do not fit are dropped: to shift them further would be a guess."""
    good = {"text": SENTENCE, "spans": [{"start": 0, "end": 2, "label": "PS", "text": "하늘"}]}
    record = {"text": text, "spans": [{"start": start, "end": end, "label": "PS", "text": quoted}]}
    rows = read_rows(_jsonl(tmp_path, good, record), TAGGING)
    assert [row["spans"] for row in rows][1:] == ([[LabelledSpan(*found, "PS")]] if found else [])
    if not found:
        (said,) = rows.dropped["bad_spans"].first
        assert f"a.jsonl, line 2: has PS at [{start}, {end}), where the text has " in said
        assert said.endswith(f"not {quoted!r}")


def test_spans_without_a_text_behind_an_emoji_are_warned_of(tmp_path):
    before, behind = {"text": "하늘 😀", "spans": [[0, 2, "PS"]]}, {"text": "😀 하늘", "spans": [[2, 4, "PS"]]}
    rows = read_rows(_jsonl(tmp_path, before, behind), TAGGING)
    (note,) = rows.notes
    assert note.startswith(f"{tmp_path / 'a.jsonl'}: 1 rows have spans after characters above U+FFFF (emoji), without")
    assert not read_rows(_jsonl(tmp_path, before), TAGGING).notes


def test_labels_and_columns_are_compared_in_nfc(tmp_path):
    roles = [TEXT, ROLES["label"]]
    path = _csv(tmp_path, f"{NFD['문장']},{NFD['감정']}\n좋다,긍정\n좋아,{NFD['긍정']}\n")
    for columns in ({}, {"text": "문장", "label": "감정"}, {"label": NFD["감정"]}):
        assert [row["label"] for row in read_rows(path, roles, columns=columns)] == ["긍정", "긍정"]
    labelled = ({"tokens": ["가"], "tags": [NFD["긍정"]]}, {"text": "가", "spans": [[0, 1, NFD["긍정"]]]})
    tags, spans = read_rows(_jsonl(tmp_path, *labelled), TAGGING)
    assert (tags["tags"], spans["spans"]) == (["긍정"], [LabelledSpan(0, 1, "긍정")])
    with pytest.raises(CorpusError, match="2 columns are called '문장', the one for text"):
        read_rows(_csv(tmp_path, f"문장,{NFD['문장']}\n가,나\n"), [TEXT], columns={"text": "문장"})


@pytest.mark.parametrize(
    ("cells", "found"),
    [
        ("배,20", [GoldAnswer("배", 20)]),
        ("배,20.0", [GoldAnswer("배", 20)]),
        ("배,", [GoldAnswer("배", None)]),
        ("배,-1", [GoldAnswer("배", None)]),
        (",", None),
        (",-1", None),
        ('"[""배"", ""서울""]","[20, 3]"', [GoldAnswer("배", 20), GoldAnswer("서울", 3)]),
        # An invalid start drops its row:
        ("배,열", "'answer_start' is '열', not a character from 0"),
        ("배,-2", "'answer_start' is '-2', not a character from 0"),
        ('배,"[1, 2]"', "2 starts for 1 answers"),
    ],
)
def test_a_column_of_starts(tmp_path, cells, found):
    path = _csv(tmp_path, f"context,question,answer,answer_start\n{CONTEXT},무엇?,배,20\n{CONTEXT},무엇?,{cells}\n")
    rows = read_rows(path, READING)
    if isinstance(found, str):
        assert found in rows.dropped["bad_starts"].first[0]
    else:
        assert rows.rows[1] == rows.rows[0] | {"answers": found}
        assert rows.rows[1].keys() == {"context", "question", "answers", "impossible", "id"}


@pytest.mark.parametrize("answers", [[""], {"text": [], "answer_start": []}, {"text": [""], "answer_start": [-1]}, " "])
def test_an_empty_answer_is_none(tmp_path, answers):
    records = ({"context": "배와 배", "question": "무엇?", "answers": one} for one in (answers, "배"))
    rows = read_rows(_jsonl(tmp_path, *records), READING)
    entry = KINDS["question-answering"]
    assert entry.kind_class.from_training_rows(rows, entry.section_class(train="a")).unanswerable


@pytest.mark.parametrize(
    ("lists", "labels"),
    [
        ([[1, 0, 0], [0, 1, 1], [0, 0, 0]], [["0"], ["1", "2"], []]),
        ([[True, False], [False, True]], [["0"], ["1"]]),
        (["[0, 1, 0]", "[1 0 0]"], [["1"], ["0"]]),
        (["0,1,0", "1,1,0"], [["1"], ["0", "1"]]),
        ([[1.0, 0.0], [0.0, 0.0]], [["0"], []]),
        ([[1, 0], [0, 1], None], [["0"], ["1"], []]),
        ([[0], [1], [0, 1]], [["0"], ["1"], ["0", "1"]]),  # names, as their number differs
        ([["욕설"], [], None, ["지역", "욕설"]], [["욕설"], [], [], ["지역", "욕설"]]),
        ([{"욕설": 1, "지역": 0}, {"욕설": 0.0, "지역": 1.0}], [["욕설"], ["지역"]]),
        ([{"choices": ["욕설", "지역"]}, "욕설"], [["욕설", "지역"], ["욕설"]]),
        ([[NFD["긍정"]], ["긍정"]], [["긍정"], ["긍정"]]),
    ],
)
def test_labels_in_lists(tmp_path, lists, labels):
    """Lists of 0 and 1 of one length give labels by position; a row without a label is kept."""
    rows = read_rows(_jsonl(tmp_path, *({"text": "가", "labels": one} for one in lists)), SEVERAL)
    assert [row["label"] for row in rows] == labels


def test_repeated_labels_and_lists_of_0_and_1_are_refused(tmp_path):
    for lists, message in (
        ([["욕설", "욕설"]], r"a.jsonl: 'labels': the labels \['욕설', '욕설'\] repeat one: write each label once"),
        ([[0, 1, 0], [1, 0]], r"the labels \['0', '1', '0'\] repeat one"),
        ([[0, 1], [0, 1]], r"the labels of all rows are \['0', '1'\]: write the names"),
    ):
        with pytest.raises(CorpusError, match=message):
            read_rows(_jsonl(tmp_path, *({"text": "가", "labels": one} for one in lists)), SEVERAL)


@pytest.mark.parametrize("columns", [{}, {"label": ["욕설", "지역"]}])
@pytest.mark.parametrize("spelled", ["10", ["True", "False"], ["true", "false"], ["1.0", "0.0"]])
def test_a_column_for_each_label(tmp_path, columns, spelled):
    yes, no = spelled
    path = _csv(tmp_path, f"id,문장,욕설,지역\na,가,{yes},{no}\nb,나,{no},{no}\nc,다,{yes},{yes}\n")
    rows = read_rows(path, SEVERAL, columns=columns)
    assert [row["label"] for row in rows] == [["욕설"], [], ["욕설", "지역"]]
    assert "label from '욕설', '지역'" in rows.summary()[0]
    # Or the cells are the names of labels.
    rows = read_rows(_csv(tmp_path, "text,a,b\n가,욕설,\n나,지역,욕설\n"), SEVERAL, columns={"label": ["a", "b"]})
    assert [row["label"] for row in rows] == [["욕설"], ["지역", "욕설"]]


@pytest.mark.parametrize(("cell", "label"), [(["긍정"], "긍정"), ("['긍정']", "긍정"), ({"choices": ["긍정"]}, "긍정")])
def test_a_list_of_one_label_is_that_label(tmp_path, cell, label):
    roles = [TEXT, ROLES["label"]]
    assert read_rows(_jsonl(tmp_path, {"text": "가", "label": cell}), roles).rows[0]["label"] == label
    path = _jsonl(tmp_path, {"text": "가", "label": cell}, {"text": "나", "label": ["긍정", "부정"]})
    with pytest.raises(CorpusError, match=r"a.jsonl, line 2: 'label' is a list of 2 labels: use several=True"):
        read_rows(path, roles)


def test_labels_of_files_that_are_names_of_others(tmp_path):
    """COPA's files count choices from 1 or from 0: a model trained on the former is evaluated on both."""
    kind = MultipleChoice(metrics=("accuracy",), max_length=32, most=2, label_names={"1": "0", "2": "1"})
    for labels, expected in (("121", "010"), ("01", "01"), ("11", "00")):  # the second are names already
        path = _csv(tmp_path, "text,choice1,choice2,label\n" + "".join(f"글,가,나,{label}\n" for label in labels))
        assert [row["label"] for row in read_rows([path], roles_of(kind))] == list(expected)
