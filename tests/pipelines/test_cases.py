"""Forms of files that tools and published sets use, in `cases/`: each is read right, or refused with the way out."""

from itertools import chain
from pathlib import Path

import pytest

from korbert.errors import KorbertError
from korbert.pipelines.commands.options import Failed
from korbert.pipelines.commands.vectors import _pairs
from korbert.pipelines.experiments.task_rows import roles_of
from korbert.pipelines.inference.input_records import TEXT_NAMES, records
from korbert.tasks.files import ROLES, read_rows
from korbert.tasks.kinds import KINDS
from korbert.tasks.kinds.detecting import detect

CASES = Path(__file__).parent / "cases"


@pytest.fixture(autouse=True)
def at_the_command_line(monkeypatch):
    """Messages name options."""
    monkeypatch.setenv("KORBERT_NAMES", "options")


def _taught(path, several=False, **columns):
    """The kind of a file as `finetune` finds it, and its rows as the task learns them."""
    given = {role: [name] for role, name in columns.items()}
    detected = detect(path, given, several=several)
    entry = KINDS[detected.kind]
    more = {"several": True} if several or getattr(detected, "several", False) else {}
    section = entry.section_class(train="a", **more)
    files = sorted(path.iterdir()) if path.is_dir() else path
    rows = read_rows(files, roles_of(entry.kind_class, section, part="train"), columns={**given, **detected.columns})
    entry.kind_class.from_training_rows(rows, section)
    return detected.kind, rows


def _flat(rows, role):
    return {part for row in rows for part in (row[role] if isinstance(row[role], list) else [row[role]])}


@pytest.mark.parametrize(
    ("name", "given", "kind", "role", "values"),
    [
        ("01-whole-line-quoted.csv", {}, "classification", "label", {"0", "1"}),
        ("02-kmou-bare-I.conll", {}, "token-classification", "tags", {"O", "B-PS", "B-LC", "I-LC"}),
        ("05-semicolons.csv", {"text": "의견", "label": "선택", "several": True}, "classification", "label",
         {"긍정", "부정", "배송", "품질"}),
        ("06-conll.txt", {}, "token-classification", "tags", {"O", "B-PS", "B-LC"}),
        ("07-zero-width-labels.csv", {}, "classification", "label", {"긍정", "부정"}),
        ("20-re-dict-strings.csv", {}, "classification", "label", {"per:place", "no_relation"}),
        ("24-bars.csv", {}, "classification", "label", {"0", "1"}),
        ("26-ones-and-blanks.csv", {"several": True}, "classification", "label", {"기쁨", "분노", "슬픔"}),
        ("28-bge.jsonl", {}, "embedding", "negatives", {"모른다"}),
        ("33-qa-columns.csv", {"text": "Q", "pair": "A"}, "classification", "label", {"0", "1", "2"}),
    ],
)  # fmt: skip
def test_finetune_reads_what_is_there(name, given, kind, role, values):
    found, rows = _taught(CASES / name, **given)
    assert (found, _flat(rows, role)) == (kind, values)


@pytest.mark.parametrize(
    ("line", "text"),
    [(6, '그는 "정말" 좋다고 했다 5'), (13, '"최악"이라고 한다 12')],
)
def test_a_line_in_quotes_is_a_record(line, text):
    _, rows = _taught(CASES / "01-whole-line-quoted.csv")
    assert {place.number: row["text"] for row, place in zip(rows, rows.places, strict=True)}[line] == text


@pytest.mark.parametrize("name", ["03-qa-start-float.jsonl", "03-qa-start-text.jsonl"])
def test_starts_of_answers_are_numbers_however_they_are_written(name):
    kind, rows = _taught(CASES / name)
    assert kind == "question-answering"
    assert {answer.start for answer in _flat(rows, "answers")} == {6}


def test_answers_that_cannot_be_read_are_not_ignored(tmp_path):
    content = (CASES / "03-qa-start-text.jsonl").read_text(encoding="utf-8").replace('"6"', '"여섯"')
    (tmp_path / "a.jsonl").write_text(content, encoding="utf-8")
    with pytest.raises(KorbertError, match="answer_start '여섯', not a character from 0"):
        _taught(tmp_path / "a.jsonl")


def test_tuples_are_spans():
    _, rows = _taught(CASES / "27-spans-tuples.csv")
    assert [tuple(span) for span in rows.rows[0]["spans"]] == [(0, 3, "PER"), (7, 9, "LOC")]


def test_a_text_without_annotations_is_counted():
    _, rows = _taught(CASES / "21-brat-readme")
    assert len(rows) == 2
    assert "README.txt has no README.ann" in rows.dropped["unlabelled"].first[0]


@pytest.mark.parametrize("lists", ['["긍정", "배송"]', '["긍정"]'])
def test_lists_of_labels_need_no_option(tmp_path, lists):
    (tmp_path / "a.jsonl").write_text(
        "".join(f'{{"text": "글 {at}", "label": {own}}}\n' for at, own in enumerate([lists, '["부정"]'] * 2)), "utf-8"
    )
    _, rows = _taught(tmp_path / "a.jsonl")
    assert isinstance(rows.rows[0]["label"], list) == ("배송" in lists)


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("05-semicolons.csv", {"text": "의견", "label": "선택"}, "if a text may have several labels, use --several"),
        ("11-words-as-rows.csv", {"tokens": "Word", "tags": "Tag"}, "one word instead of a sentence: write CoNLL"),
        ("21-brat-readme/README.txt", {}, "name it with --form, or if it is a table, write the names of its columns"),
        ("22-old.hwp", {}, r"22-old.hwp: is a document of Hangul \(HWP\): in Hangul, save its text as .txt"),
        ("23-no-header.tsv", {}, "the first line looks like a row .* add a line above it that names the columns"),
        ("24-bars.txt", {}, "the first line looks like a row .* add a line above it that names the columns"),
        ("25-fasttext.txt", {}, "is of fastText: write two columns, label and text"),
        ("26-ones-and-blanks.csv", {}, "'기쁨', '분노', '슬픔' hold 0 and 1: .* use --several"),
        ("29-date-label.parquet", {}, "'label' is of type date, not a text.*: name it with --label"),
        ("32-inception.tsv", {}, "is WebAnno TSV of INCEpTION: export it as CoNLL 2002"),
        ("33-qa-columns.csv", {}, "no column of texts among Q, A, label: name it with --text"),
        ("34-label-object.jsonl", {}, "'labels' has 0.8 where 0 or 1 says whether the label holds"),
        ("35-prodigy-binary.jsonl", {}, "all rows have the label '긍정' .dropped rows: 10 rejected.: give rows of two"),
    ],
)
def test_finetune_names_the_way_out(name, given, said):
    with pytest.raises(KorbertError, match=said):
        _taught(CASES / name, **given)


def _read(path):
    """The texts of a file as `predict` and `embed` read them."""
    found = chain.from_iterable(records(path, path.name, "auto", [ROLES["text"]]))
    return [next(value for name, value in one.fields.items() if name in TEXT_NAMES) for one in found]


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("06-conll.txt", [f"{who} 씨가 {to}에 갔다" for who, to in
                          (("김민수", "부산"), ("이영희", "대전"), ("박지훈", "광주"), ("최수진", "대구"))]),
        ("09-kmou-underscores.txt", ["부산 시청 에 김민수 씨 가 갔다 ."]),  # a space there is no word
        ("10-header-by-chance.txt", ["오늘 댓글, 내용", "정말 좋은 제품이에요, 또 사요", "금방 고장 났어요, 안 사요"]),
    ],
)  # fmt: skip
def test_predict_reads_what_is_there(name, texts):
    assert _read(CASES / name)[: len(texts)] == texts


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        ("글,내용\n하나,좋아요\n둘,싫어요\n", ["좋아요", "싫어요"]),
        ("text, label\n좋아요, 1\n싫어요, 0\n", ["좋아요", "싫어요"]),
        ("번호;내용\n1;좋아요\n2;싫어요\n", ["좋아요", "싫어요"]),
        ("책,내용\n좋아요\n싫어요\n그저 그래요\n", ["책,내용", "좋아요", "싫어요", "그저 그래요"]),
        ("안녕 세상\n\n좋은 아침\n", ["안녕 세상", "", "좋은 아침"]),
    ],
)
def test_a_header_is_one_only_where_it_can_be(tmp_path, content, texts):
    (tmp_path / "a.txt").write_text(content, "utf-8")
    assert _read(tmp_path / "a.txt") == texts


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("08-document.pdf", "is a PDF: save its text as .txt in UTF-8, as with pdftotext"),
        ("08-page.html", "is HTML: save its text as .txt in UTF-8; --form lines reads each line as a text"),
        ("08-subtitles.srt", "is a file of subtitles: save its text as .txt"),
        ("08-tweets.js", "is a script: keep the JSON in it alone, as .json"),
        ("22-old.hwp", r"is a document of Hangul \(HWP\)"),
        ("32-inception.tsv", "is WebAnno TSV of INCEpTION"),
    ],
)
def test_what_is_no_text_is_refused_by_file_and_by_pipe(name, said):
    with pytest.raises(KorbertError, match=said):
        _read(CASES / name)
    with (CASES / name).open("rb") as pipe, pytest.raises(KorbertError, match=said):
        list(records(pipe, name, "auto", [ROLES["text"]]))


@pytest.mark.parametrize(
    ("name", "text", "ids"),
    [
        ("04-blank-lines.txt", None, ["04-blank-lines.txt:1", "04-blank-lines.txt:4", "04-blank-lines.txt:6"]),
        ("04-empty-cells.csv", None, ["1", "4"]),
        ("06-conll.txt", None, [f"06-conll.txt:{number}" for number in (1, 2, 3, 4)]),
        ("30-beir-corpus.jsonl", None, ["doc0", "doc1", "doc2", "doc3"]),
        ("31-corpus.jsonlines", "answer", [f"31-corpus.jsonlines:{line}" for line in (1, 2, 3)]),
    ],
)
def test_index_takes_the_texts(name, text, ids):
    assert [id for id, *_ in _pairs(CASES / name, "auto", text, Failed(name))] == ids


def test_blank_texts_are_said(capsys):
    list(_pairs(CASES / "04-blank-lines.txt", "auto", None, Failed("a")))
    assert "blank texts left out: 3" in capsys.readouterr().err
