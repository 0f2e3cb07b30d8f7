"""Files of the tools in which people label come back as the rows that they mean. The wording is ours."""

import json
from types import SimpleNamespace

import datasets
import openpyxl
import pytest

from korbert.errors import CorpusError
from korbert.pipelines.experiments.task_rows import roles_of
from korbert.pipelines.inference.input_records import records
from korbert.tasks.files import ROLES, LabelledSpan, read_rows
from korbert.tasks.kinds import KINDS
from korbert.tasks.kinds.detecting import detect
from tests.korbert.tasks.writing import written

TEXT = "하늘은 서울에 갔다"
PS = {"start": 0, "end": 2, "text": "하늘", "labels": ["PS"]}
LC = {"start": 4, "end": 6, "text": "서울", "labels": ["LC"]}
SPANS = [LabelledSpan(0, 2, "PS"), LabelledSpan(4, 6, "LC")]
BOTH = ["욕설", "지역"]
PLAIN, OPTIONS = {"id": 1, "text": TEXT}, {"options": [{"id": "욕설", "text": "욕"}]}
DOCCANO = {"id": 7, "text": TEXT, "Comments": []}
PRODIGY = {"text": TEXT, "_input_hash": 5, "_task_hash": 6, "answer": "accept"}
TOKENS = [{"text": "하늘은", "start": 0, "end": 3, "id": 0}, {"text": "서울에", "start": 4, "end": 7, "id": 1}]
SPACY = [[TEXT, {"entities": [[0, 2, "PS"], [4, 6, "LC"]]}], [TEXT, {"entities": []}]]
QUOTED = [{"start": 0, "end": 2, "token_start": 0, "label": "PS"}, [4, 6, "LC"]]
ANN = "T1\tPS 0 2\t하늘\nT2\tLC 4 6\t서울\nR1\tvisit Arg1:T1 Arg2:T2\n#1\tAnnotatorNotes T1\t확인\n"
CONTEXT = "배는 서울에서 난다. 하늘은 가을에 배를 팔았다."
RIGHT = {"text": "배", "answer_start": 20}
OFFSETS = [{"id": end, "label": label, "start_offset": start, "end_offset": end} for start, end, label in SPANS]
RELATIONS = {"entities": OFFSETS, "relations": [{"id": 1, "from_id": 2, "to_id": 6, "type": "visit"}]}
NAMES = [{"id": end, "form": TEXT[start:end], "label": own, "begin": start, "end": end} for start, end, own in SPANS]
MODU = [{"id": f"n1.1.{len(one)}", "form": TEXT, "NE": one} for one in (NAMES, [])]


def read(path, *, several=False, columns=None):
    """The kind that is detected, and the rows of its roles, as `korbert finetune` reads them."""
    found = detect(path, columns or {}, several=several)
    roles = roles_of(KINDS[found.kind].kind_class, SimpleNamespace(several=several), part="train")
    rows = read_rows(path, roles, columns={**(columns or {}), **found.columns})
    assert read_rows(path, roles, trained=rows.columns).rows == rows.rows  # as `korbert evaluate` reads them
    return found.kind, rows


def _task(*results, **more):
    """A task of Label Studio with an annotation of each list of results."""
    annotations = [{"id": number, "was_cancelled": False, "result": one} for number, one in enumerate(results)]
    return {"id": 1, "data": {"text": TEXT}, "annotations": annotations, "predictions": []} | more


def _region(value, kind="labels", name="label"):
    return {"value": value, "id": "a1", "from_name": name, "to_name": "text", "type": kind, "origin": "manual"}


NER = [_region(LC), _region(PS)]
CHOICE = [_region({"choices": ["긍정"]}, "choices", "sentiment")]
CHOICES = [_region({"choices": BOTH}, "choices", "sentiment")]


ENTITIES = [
    ("label-studio.json", [_task(NER), _task([])]),
    ("label-studio.json", [_task(NER, NER[::-1]), _task([])]),  # two annotators who agree
    ("label-studio-old.json", [{"data": {"text": TEXT}, "completions": [{"result": one}]} for one in (NER, [])]),
    ("label-studio-min.json", [{"id": 1, "text": TEXT, "label": one, "annotator": 1} for one in ([PS, LC], [])]),
    ("label-studio.csv", 'id,text,label\n1,{0},"{1}"\n2,{0},[]'.format(TEXT, json.dumps([PS, LC]).replace('"', '""'))),
    ("doccano.jsonl", [DOCCANO | {"label": one} for one in ([[0, 2, "PS"], [4, 6, "LC"]], [])]),
    ("doccano-old.jsonl", [{"id": 1, "data": TEXT, "label": one} for one in ([[0, 2, "PS"], [4, 6, "LC"]], [])]),
    ("doccano-relations.jsonl", [DOCCANO | RELATIONS, DOCCANO | {"entities": [], "relations": []}]),
    ("prodigy.jsonl", [PRODIGY | {"tokens": TOKENS, "spans": QUOTED}, PRODIGY | {"tokens": TOKENS}]),
    ("spacy.json", SPACY),
    ("spacy.jsonl", SPACY),
    ("modu.json", {"id": "n1", "metadata": {"title": "연습"}, "document": [{"id": "n1.1", "sentence": MODU}]}),
]


@pytest.mark.parametrize(("name", "content"), ENTITIES)
def test_entities(tmp_path, name, content):
    """A text with two entities and one without come back as such."""
    kind, rows = read(written(tmp_path, name, content))
    assert kind == "token-classification"
    assert [(row["text"], row["spans"]) for row in rows] == [(TEXT, SPANS), (TEXT, [])]
    assert not rows.dropped


LABELS = [
    ("label-studio.json", [_task(CHOICE)], False, ["긍정"]),
    ("label-studio.json", [_task(CHOICES), _task(CHOICE)], True, [BOTH, ["긍정"]]),
    ("label-studio-min.json", [{"id": 1, "text": TEXT, "sentiment": "긍정"}], False, ["긍정"]),
    (
        "label-studio-min.json",
        [PLAIN | {"label": {"choices": BOTH}}, PLAIN | {"label": "욕설"}],
        True,
        [BOTH, ["욕설"]],
    ),
    ("doccano.jsonl", [DOCCANO | {"label": ["긍정"]}, DOCCANO | {"label": ["부정"]}], False, ["긍정", "부정"]),
    ("doccano.jsonl", [DOCCANO | {"label": one} for one in (BOTH, [])], True, [BOTH, []]),
    ("doccano.csv", f"id,text,label\n1,{TEXT},긍정\n", False, ["긍정"]),
    ("prodigy.jsonl", [PRODIGY | {"label": "긍정"}], False, ["긍정"]),
    ("prodigy.jsonl", [PRODIGY | OPTIONS | {"accept": one} for one in (BOTH, [])], True, [BOTH, []]),
    ("spacy.json", [[TEXT, {"cats": {"긍정": 1.0, "부정": 0.0}}]], False, ["긍정"]),
    ("spacy.json", [[TEXT, {"cats": {"욕설": one, "지역": 1}}] for one in (0, 1)], True, [["지역"], BOTH]),
    ("klue-tc.json", [{"guid": "t-0", "title": TEXT, "label": "생활", "annotations": {}, "url": "-"}], False, ["생활"]),
]


@pytest.mark.parametrize(("name", "content", "several", "labels"), LABELS)
def test_labels(tmp_path, name, content, several, labels):
    columns = {"label": ["sentiment"]} if isinstance(content, list) and "sentiment" in content[0] else {}
    kind, rows = read(written(tmp_path, name, content), several=several, columns=columns)
    assert (kind, [row["label"] for row in rows]) == ("classification", labels)
    assert {row["text"] for row in rows} == {TEXT}


def test_what_is_not_settled_is_left_out(tmp_path):
    other, cancelled = _task(CHOICE, [_region({"choices": ["부정"]}, "choices", "sentiment")]), _task(CHOICE)
    cancelled["annotations"][0]["was_cancelled"] = True
    settled = json.loads(json.dumps(other))
    settled["annotations"][1]["ground_truth"] = True
    _, rows = read(written(tmp_path, "a.json", [_task(CHOICE), other, cancelled, settled]))
    assert [row["label"] for row in rows] == ["긍정", "부정"]
    assert {reason: dropped.count for reason, dropped in rows.dropped.items()} == {"disagreeing": 1, "unlabelled": 1}
    # Two questions ask which.
    both = [*CHOICE, _region({"choices": ["정치"]}, "choices", "주제")]
    path = written(tmp_path, "a.json", [_task(both)])
    with pytest.raises(CorpusError, match="column 'sentiment' or '주제' may hold label: say which one it is"):
        read(path)
    assert [row["label"] for row in read(path, columns={"label": ["sentiment"]})[1]] == ["긍정"]
    assert read(written(tmp_path, "b.json", [_task([_region({"rating": 4}, "rating", "stars")])]))[0] == "regression"
    spans, answers = [[0, 2, "PS"]], ("accept", "reject", "reject", "ignore")
    records = [PRODIGY | {"spans": spans, "answer": answer} for answer in answers]
    _, rows = read(written(tmp_path, "a.jsonl", records))
    assert [row["spans"] for row in rows] == [[LabelledSpan(0, 2, "PS")]]
    assert {reason: dropped.count for reason, dropped in rows.dropped.items()} == {"rejected": 2, "ignored": 1}


def _choice(name, *choices):
    return _region({"choices": list(choices)}, "choices", name)


def test_controls_of_label_studio_keep_their_names_in_the_whole_file(tmp_path):
    """Though a task has an answer to only one of them."""
    tasks = [_task([_choice("기분", "기쁨")]), _task([_choice("주제", "정치")])]
    tasks += [_task([_choice("기분", "슬픔"), _choice("주제", "경제")])]
    path = written(tmp_path, "a.json", tasks)
    assert [row["label"] for row in read(path, columns={"label": ["기분"]})[1]] == ["기쁨", "슬픔"]
    assert [row["label"] for row in read(path, columns={"label": ["주제"]})[1]] == ["정치", "경제"]
    path = written(tmp_path, "a.json", [_task([_region(PS, name="이름")]), _task([_region(LC, name="곳")])])
    assert [row["spans"] for row in read(path, columns={"spans": ["곳"]})[1]] == [[], SPANS[1:]]


def test_a_choice_for_each_region_is_no_label(tmp_path):
    path = written(tmp_path, "a.json", [_task(CHOICE), _task([*CHOICE, *CHOICES])])
    _, rows = read(path)
    assert [row["label"] for row in rows] == ["긍정"]
    assert rows.dropped["bad_record"].first == [
        f"{path}, line 29: has several answers to 'sentiment' in one annotation, as one for each region: keep one"
    ]


END = {"word": "하늘", "start_idx": 0, "end_idx": 1}
OWN = [
    ({"guid": "1", "title": "제목", "text": TEXT, "label": "정치"}, "text", TEXT),
    ({"guid": "1", "title": TEXT, "id": "가", "label": "정치"}, "id", "가"),
    ({"data": "2026-11-29", "text": TEXT, "label": "정치"}, "text", TEXT),
    ({"query": "무엇?", "pos": ["배"], "passage": CONTEXT, "label": "정치"}, "context", CONTEXT),
    ({"sentence": [{"form": "가"}], "text": TEXT, "label": "정치"}, "text", TEXT),
    ({"sentence": TEXT, "subject_entity": END, "object_entity": END, "text": CONTEXT, "label": "a"}, "text", CONTEXT),
    ({"guid": "1", "sentence1": "가", "sentence2": "나", "labels": {"label": 1}, "score": 5}, "score", 5),
]


@pytest.mark.parametrize(("record", "role", "value"), OWN)
def test_columns_of_a_file_are_not_replaced_by_those_of_a_form(tmp_path, record, role, value):
    path = written(tmp_path, "a.jsonl", [record])
    columns = {role: "passage" if role == "context" else role}
    assert read_rows(path, [ROLES[role]], columns=columns).rows == [{role: value}]


def test_notes_on_a_workbook_stay(tmp_path):
    book = openpyxl.Workbook()
    for row in (["guid", "title", "label"], ["1", TEXT, "생활"], ["2", TEXT, "정치"]):
        book.active.append(row)
    book.active.row_dimensions[3].hidden = True
    book.save(tmp_path / "a.xlsx")
    rows = read(tmp_path / "a.xlsx")[1]
    assert rows.sources[0].form.startswith("KLUE-TC in Excel")
    assert rows.notes == [f"{tmp_path / 'a.xlsx'}: hidden rows or columns, read all the same: 1"]


def test_texts_of_brat_without_annotations_are_counted(tmp_path):
    """In a folder, in a list of its files, and in those of several folders, each under its own name."""
    folders = tmp_path / "가", tmp_path / "나"
    for folder in folders:
        folder.mkdir()
        (folder / "a.ann").write_text("T1\tPS 0 3\t하늘\n", "utf-8")
        (folder / "a.txt").write_text(TEXT, "utf-8")
        (folder / "b.txt").write_text(TEXT, "utf-8")
    roles = roles_of(KINDS["token-classification"].kind_class, part="train")
    (tmp_path / "가" / "c.ann").write_text(ANN, "utf-8")
    (tmp_path / "가" / "c.txt").write_text(TEXT, "utf-8")
    folder = folders[0]
    for paths in (folder, sorted(folder.iterdir())):
        rows = read_rows(paths, roles)
        assert [row["id"] for row in rows] == ["c"]
        assert rows.dropped["unlabelled"].first == [f"{folder}, record 3: b.txt has no b.ann next to it"]
    rows = read_rows([file for one in folders for file in sorted(one.iterdir())], roles)
    assert [str(place) for place in rows.places] == [f"{folder}, record 2"]
    said = [line.split(":")[0] for line in rows.dropped["bad_spans"].first]
    assert said == [f"{one}, record 1" for one in folders]
    assert rows.dropped["unlabelled"].count == 2
    # A text by itself in another folder is one without annotations, too.
    rows = read_rows([folder / "c.ann", folder / "c.txt", folders[1] / "b.txt"], roles)
    assert rows.dropped["unlabelled"].first == [f"{folders[1]}, record 1: b.txt has no b.ann next to it"]
    # Its text is read where no labels are needed.
    texts = [record for batch in records(folder, "가", "auto", [ROLES["text"]]) for record in batch]
    assert [record.fields["text"] for record in texts] == [TEXT] * 3


def test_files_of_brat_with_a_mark_alone_are_empty(tmp_path):
    for name, content in (("a.txt", TEXT), ("a.ann", ANN), ("b.txt", "\ufeff"), ("b.ann", "\ufeff\n")):
        (tmp_path / name).write_text(content, "utf-8")
    assert [(row["text"], row["spans"]) for row in read(tmp_path)[1]] == [(TEXT, SPANS), (None, [])]


def test_standoff_of_brat(tmp_path):
    folder = tmp_path / "brat"
    folder.mkdir()
    for name, text, ann in (("a", TEXT, ANN), ("b", f"{TEXT}\n", ""), ("c", TEXT, "T1\tPS 0 1;2 3\t하 은\n")):
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
        (folder / f"{name}.ann").write_text(ann, encoding="utf-8")
    kind, rows = read(folder)
    assert kind == "token-classification"
    assert [(row["text"], row["spans"], row["id"]) for row in rows] == [(TEXT, SPANS, "a"), (f"{TEXT}\n", [], "b")]
    assert rows.dropped["bad_spans"].first == [f"{folder}, record 3: c.ann, line 1: no label, start, end and text"]
    assert read(folder / "a.ann")[1].rows == rows.rows[:1]
    (folder / "annotation.conf").write_text("[entities]\nPS\nLC\n", encoding="utf-8")
    roles = roles_of(KINDS["token-classification"].kind_class, part="train")
    some = read_rows([path for path in sorted(folder.iterdir()) if path.stem != "b"], roles)
    assert [row["id"] for row in some] == ["a"]
    for name, text in (("b.ann", "\n"), ("c.txt", ""), ("c.ann", "")):
        (folder / name).write_text(text, encoding="utf-8")
    found = [row for row in read(folder)[1] if row["text"]]
    assert found == rows.rows  # of an empty text and of annotations that are a line end, nothing is lost
    with pytest.raises(CorpusError, match=r"no\.ann: no such file"):
        read(folder / "no.ann")
    assert len(some.sources) == 1
    (folder / "a.txt").unlink()
    with pytest.raises(CorpusError, match=r"a.ann: no a.txt next to it, which holds its text: put it there"):
        read(folder)


QAS = [
    {"question_id": 1, "question": "무엇?", "is_impossible": False, "answers": RIGHT},
    {"question_id": 2, "question": "왜?", "is_impossible": True, "answers": RIGHT},
]


QAS_2 = [
    {"id": "1", "question": "무엇?", "answer": RIGHT | {"html_answer_start": 23, "html_answer_text": "배"}},
    {"id": "2", "question": "왜?", "answer": {"text": "", "answer_start": -1}},
]
ARTICLES = [
    {"doc_id": 1, "doc_title": "배", "paragraphs": [{"context_id": 1, "context": CONTEXT, "qas": QAS}]},  # AI Hub
    {"title": "배", "context": CONTEXT, "raw_html": f"<p>{CONTEXT}</p>", "qas": QAS_2},  # KorQuAD 2
]


@pytest.mark.parametrize("article", ARTICLES)
def test_questions(tmp_path, article):
    kind, rows = read(written(tmp_path, "a.json", {"version": "1", "data": [article]}))
    assert kind == "question-answering"
    task = KINDS[kind].kind_class.from_training_rows(rows, KINDS[kind].section_class(train="a"))
    assert [task.target(row) for row in rows] == [[{"text": "배", "start": 20}], []]
    assert not rows.dropped


def test_relations_and_similarities_of_klue(tmp_path):
    ends = [{"word": TEXT[start : end + 1], "start_idx": start, "end_idx": end} for start, end in ((0, 1), (4, 5))]
    record = {"guid": "r-0", "sentence": TEXT, "subject_entity": ends[0], "object_entity": ends[1], "label": "visit"}
    path = written(tmp_path, "re.json", [record])
    kind, rows = read(path)
    assert (kind, rows.rows[0]["text"]) == ("classification", "<subj>하늘</subj>은 <obj>서울</obj>에 갔다")
    given = read(path, columns={"text": ["sentence"], "label": ["label"]})[1]
    assert given.rows[0]["text"] == TEXT
    labels = {"label": 3.7, "real-label": 3.714, "binary-label": 1}
    record = {"guid": "s-0", "sentence1": TEXT, "sentence2": "네", "labels": labels}
    kind, rows = read(written(tmp_path, "sts.json", [record]))
    assert (kind, rows.rows[0]["score"], rows.rows[0]["pair"]) == ("regression", 3.7, "네")


def test_names_of_classes_of_datasets(tmp_path):
    records = [{"tokens": ["하늘", "은"], "ner_tags": [1, 0]}]
    kinds = {"tokens": datasets.Value("string"), "ner_tags": datasets.ClassLabel(names=["O", "B-PS", "I-PS"])}
    features = datasets.Features({name: datasets.Sequence(kind) for name, kind in kinds.items()})
    dataset = datasets.Dataset.from_list(records, features=features)
    dataset.to_parquet(str(tmp_path / "a.parquet"))
    dataset.save_to_disk(str(tmp_path / "saved"))
    written(tmp_path, "plain.jsonl", records)
    assert read(tmp_path / "plain.jsonl")[1].rows[0]["tags"] == ["1", "0"]
    for file in ("a.parquet", "saved"):
        assert read(tmp_path / file)[1].rows[0]["tags"] == ["B-PS", "O"], file


def test_marks_of_a_relation(tmp_path):
    for subject, obj, text in (
        ((0, 2), (4, 6), "<subj>서울</subj>은 <obj>한국</obj>의 수도"),
        ((4, 6), (0, 2), "<obj>서울</obj>은 <subj>한국</subj>의 수도"),
        ((4, 6), (4, 10), "서울은 <obj><subj>한국</subj>의 수도</obj>"),
        ((4, 10), (4, 6), "서울은 <subj><obj>한국</obj>의 수도</subj>"),
        ((4, 10), (8, 10), "서울은 <subj>한국의 <obj>수도</obj></subj>"),
        ((0, 2), (2, 3), "<subj>서울</subj><obj>은</obj> 한국의 수도"),
    ):
        plain = "서울은 한국의 수도"
        ends = [{"word": plain[start:end], "start_idx": start, "end_idx": end - 1} for start, end in (subject, obj)]
        record = {"guid": "r", "sentence": plain, "label": "x", "subject_entity": ends[0], "object_entity": ends[1]}
        assert read(written(tmp_path, "a.json", [record]))[1].rows[0]["text"] == text
