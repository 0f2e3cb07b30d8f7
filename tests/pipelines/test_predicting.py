"""`korbert predict`, `fill` and `pack`: each line its result, and a bad one costs nothing but itself."""

import codecs
import csv
import io
import json
import os
import subprocess
import sys

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import korbert
from korbert.errors import ModelError, SettingsError
from korbert.modeling import ClassificationModel, save_model
from korbert.pipelines.cli import run_command
from korbert.pipelines.inference import lines
from korbert.pipelines.inference.input_records import MAX_CHARS
from korbert.pipelines.inference.predicting import predict_lines, select_labels
from korbert.tasks.kinds.classification import Classification

CONTEXT = "서울은 한국의 수도이다."


@pytest.fixture(scope="module")
def classifier(untrained_models):
    return korbert.load(untrained_models / "nsmc", "cpu")


def results(model, data, name="input", **options):
    file = io.BytesIO(data.encode() if isinstance(data, str) else data)
    return [result for part in predict_lines(model, file, name, **options) for result in part]


def errors(found):
    return {result["line"]: result["error"] for result in found if "error" in result}


def test_results_have_line_and_text_in_order(classifier, sample):
    rows = (sample / "nsmc" / "ratings_train.txt").read_text(encoding="utf-8").split("\n")[1:301]
    texts = ["정말 좋다", "", "별로다 ㅋㅋ", '"따옴표"', "null", *(row.split("\t")[1] for row in rows)]
    found = results(classifier, "\r\n".join(texts))
    assert [(one["line"], one["text"]) for one in found] == list(enumerate(texts, 1))
    for place in (0, 1, 2, 3, 4, 5, 150, 304):
        expected = classifier.predict(texts[place])
        assert found[place]["label"] == expected.label
        assert found[place]["probabilities"] == pytest.approx(expected.probabilities, abs=1e-5)


def test_json_lines(classifier):
    lines = ['{"id": "a", "text": "좋다"}', '{"id": 7, "document": "좋다", "label": 1e999}']
    wrong = {
        '{"text": true, "id": "b"}': "'text' is a truth value, not a text",
        '{"body": "좋다"}': "has no 'text'",
        '["좋다"]': "a list where an object belongs",
        '{"text": "좋다"': "is not JSON",
        '{"text": "' + "가" * 400_000 + '"}': "is longer than 1,048,576 bytes",
        '{"text": ' + "9" * 5_000 + "}": "is not JSON (Exceeds the limit",
        "[" * 100_000: "is not JSON (maximum recursion",
        '{"text": "좋다\\ud800", "id": true}': "'text' has a surrogate at character 2",
    }
    found = results(classifier, "\n".join([*lines, '{"text": 3}', *wrong]))
    assert [one["line"] for one in found] == [*range(1, 12)]
    assert [one.get("id") for one in found[:4]] == ["a", 7, None, "b"]
    assert found[0]["probabilities"] == found[1]["probabilities"]
    assert list(errors(found)) == [*range(4, 12)]
    assert [part in error for part, error in zip(wrong.values(), errors(found).values(), strict=True)] == [True] * 8
    assert errors(results(classifier, '{"body": "좋다"}', columns={"text": ["body"]})) == {}
    assert results(classifier, '{"text": 3}', form="lines")[0]["text"] == '{"text": 3}'


def _parquet(rows, path=None):
    sink = path or io.BytesIO()
    pq.write_table(pa.table({"text": pa.array(rows, pa.string()), "점": list(range(len(rows)))}), sink)
    return None if path else sink.getvalue()


FORMS = {
    "a.csv": 'text,점\n"좋다\n정말",0\n,1\n  ,2\n별로다,3\n',
    "a.jsonl": '{"text": "좋다\\n정말"}\n{"text": null}\n{"text": "  "}\n{"text": "별로다"}\n',
    "a.json": '[{"text": "좋다\\n정말"}, {"text": ""}, {"text": "  "}, {"text": "별로다"}]',
    "a.parquet": _parquet(["좋다\n정말", None, "  ", "별로다"]),
    "a.txt": "좋다\n\n  \n별로다\n",
}


@pytest.mark.parametrize("name", FORMS)
def test_lines_count_records_and_an_empty_text_gets_no_label_in_every_form(classifier, name):
    found = results(classifier, FORMS[name], name)
    assert [one["line"] for one in found] == [1, 2, 3, 4]
    assert ["why" in one for one in found] == [False, True, True, False]
    for one in found[1:3]:
        assert (one["label"], one["probabilities"], one["why"]) == (None, {}, "the text is empty")
        assert select_labels(one, 1, 0.5) == one


def test_a_faulty_record_names_its_place_in_the_file(classifier):
    found = results(classifier, "text,점\n좋다,1\n나쁘다\n별로다,2\n", "a.csv")
    assert list(errors(found)) == [2]
    assert "(line 3 of the file)" in errors(found)[2]


def test_personal_data_is_masked(classifier):
    lines = '{"text": "메일은 hong@example.com 으로"}\n{"text": "010-1234-5678로 전화 주세요"}\n{"text": "좋다"}'
    found = results(classifier, lines, form="jsonl", mask_personal=True)
    assert [one["text"] for one in found] == ["메일은 <이메일> 으로", "<전화번호>로 전화 주세요", "좋다"]
    expected = classifier.predict("메일은 <이메일> 으로").probabilities
    assert found[0]["probabilities"] == pytest.approx(expected, abs=1e-5)


def test_why_there_is_no_label_stands_in_a_table(untrained_models, tmp_path, command):
    path = tmp_path / "a.txt"
    path.write_text("\n좋다\n", encoding="utf-8")
    empty, good = csv.DictReader(io.StringIO(command("predict", untrained_models / "nsmc", path, "--csv").out))
    assert (empty["label"], empty["probability"], empty["error"]) == ("", "", "the text is empty")
    assert good["label"] in ("긍정", "부정")
    assert good["error"] == ""


def test_reasons_are_a_column_whatever_the_first_row_has(here, command):
    (here / "a.txt").write_text("\n정말 좋다\n", encoding="utf-8")
    empty, good = csv.DictReader(io.StringIO(command("predict", "korbert-mini-nsmc", "a.txt", "--why", "--csv").out))
    assert empty["reasons"] == ""
    assert "좋" in [reason["text"] for reason in json.loads(good["reasons"])]


def test_a_carriage_return_comes_back(untrained_models, here, command):
    texts = ["좋다\r", "앞\r뒤", "\r", "앞\r\n뒤", "끝"]
    rows = [json.dumps({"text": text}, ensure_ascii=False) for text in texts]
    (here / "a.jsonl").write_text("\n".join(rows), encoding="utf-8")
    command("predict", untrained_models / "nsmc", "a.jsonl", "--output", "b.csv")
    assert (here / "b.csv").read_bytes().count(b"\r\n") == 1
    again = command("predict", untrained_models / "nsmc", "b.csv").out.splitlines()
    assert [json.loads(line)["text"] for line in again] == texts


def test_a_printed_table_is_utf8_whatever_the_encoding_of_the_output(untrained_models, here, monkeypatch):
    (here / "a.txt").write_text("정말 좋다\n", encoding="utf-8")
    printed = io.TextIOWrapper(io.BytesIO(), "cp949")
    monkeypatch.setattr(sys, "stdout", printed)
    monkeypatch.setenv("KORBERT_LANG", "ko")
    assert run_command(["predict", str(untrained_models / "nsmc"), "a.txt", "--csv"]) == 0
    header, row = printed.buffer.getvalue().decode("utf-8-sig").splitlines()
    assert header.startswith("line,")
    assert row.startswith("1,,정말 좋다,")


def test_a_csv_file_is_the_table_that_is_printed(untrained_models, tmp_path, command):
    (tmp_path / "a.csv").write_text("id,text\n7,좋다\n8,\n", encoding="utf-8")
    command("predict", untrained_models / "nsmc", tmp_path / "a.csv", "--output", tmp_path / "b.csv")
    printed = command("predict", untrained_models / "nsmc", tmp_path / "a.csv", "--csv").out
    assert (tmp_path / "b.csv").read_bytes() == codecs.BOM_UTF8 + printed.encode()


def test_a_table_without_a_prediction_has_the_errors(untrained_models, tmp_path, command):
    (tmp_path / "a.jsonl").write_text('{"text": {}}\n{"txt": "좋다"}\n', encoding="utf-8")
    table = io.StringIO(command("predict", untrained_models / "nsmc", tmp_path / "a.jsonl", "--csv", code=1).out)
    assert [(row["line"], row["error"][:12]) for row in csv.DictReader(table)] == [
        ("1", "'text' is an"), ("2", "has no 'text"),
    ]  # fmt: skip


def test_a_table_of_parquet_keeps_its_columns(untrained_models, tmp_path, command):
    _parquet(["좋다", None, *(f"{n}번째 영화" for n in range(3_000))], tmp_path / "a.parquet")
    command("predict", untrained_models / "nsmc", tmp_path / "a.parquet", "--output", tmp_path / "b.parquet")
    before, after = (pq.read_table(tmp_path / f"{name}.parquet") for name in "ab")
    assert after.select(before.column_names) == before
    assert after.column_names == ["text", "점", "label", "probability", "probabilities", "error"]
    assert after.slice(1, 1).to_pylist()[0]["error"] == "the text is empty"
    said = [
        json.loads(line)
        for line in command("predict", untrained_models / "nsmc", tmp_path / "a.parquet").out.splitlines()
    ]
    assert after["label"].to_pylist() == [one["label"] for one in said]
    pq.write_table(after.select(["text", "label"]), tmp_path / "c.parquet")
    command("predict", untrained_models / "nsmc", tmp_path / "c.parquet", "--output", tmp_path / "d.parquet")
    assert pq.read_table(tmp_path / "d.parquet")["predicted_label"].equals(after["label"])


NO_TABLE = "is for .csv and .xlsx, or for the columns of a file of Parquet: name it .csv"


@pytest.mark.parametrize(("name", "options", "said"), [
    ("a.csv", "--output out.parquet", f"out.parquet: {NO_TABLE}"),
    ("a.csv", "--output out.xls", f"out.xls: {NO_TABLE}"),
    ("none.parquet", "--output out.parquet", "none.parquet: holds no row, so there is nothing to write"),
    ("a.csv", "--form csv --sheet a", "--sheet is for workbooks: leave --form csv out"),
])  # fmt: skip
def test_options_that_do_not_suit_a_file_are_refused(untrained_models, here, command, name, options, said):
    (here / "a.csv").write_text("text\n좋다\n", encoding="utf-8")
    _parquet([], here / "none.parquet")
    assert said in command("predict", untrained_models / "nsmc", name, *options.split(), code=2).err
    assert not [*here.glob("out.*")]


@pytest.mark.parametrize(("data", "name", "columns", "said"), [
    ("번호,후기\n1,좋다\n", "a.csv", {},
     "a.csv: no column text among 번호, 후기: name it with --text NAME, or if the first .* use form lines"),
    ("id,text\n1,좋다\n", "a.csv", {"text": ["후기"]}, "no column 후기 among id, text"),
    ('[{"번호": 1, "후기": "좋다"}]', "a.json", {},
     "^a.json: no column text among 번호, 후기: name it with --text NAME$"),
    ("id,후기글\n1,좋다\n", "a.csv", {"text": ["후기"]}, "did you mean 후기글\\? name it with --text"),
    ("좋다\n", "a.txt", {"text": ["후기"]}, "a.txt: plain lines have no 후기: give a table or JSON lines"),
    ("번호,text\n1,좋다\n", "a.csv", {"id": ["순번"]},
     "a.csv: no column 순번 among 번호, text: name it with --column id=NAME"),
])  # fmt: skip
def test_columns_that_are_not_there(classifier, data, name, columns, said):
    with pytest.raises(SettingsError, match=said):
        results(classifier, data, name, columns=columns)


@pytest.mark.parametrize(("name", "data", "ids"), [
    ("a.csv", "번호,text\n가1,좋다\n가2,별로다\n", ["가1", "가2"]),
    ("a.jsonl", '{"번호": 7, "text": "좋다"}', [7]),
])  # fmt: skip
def test_the_id_of_another_name(classifier, name, data, ids):
    assert [one["id"] for one in results(classifier, data, name, columns={"id": ["번호"]})] == ids


@pytest.mark.parametrize(("name", "data", "said"), [
    ("a.csv", b"id,text\n\xb0\xa1,\xec\xa2\x8b\xeb\x8b\xa4\n2,\xec\x8b\xab\xeb\x8b\xa4\n",
     "'id' has byte 0xb0, which its encoding lacks, at character 0"),
    ("a.jsonl", b'{"id": "\\ud800", "text": "a"}\n{"id": "2", "text": "b"}\n', "'id' has a surrogate at character 0"),
])  # fmt: skip
def test_an_id_that_no_file_can_hold_is_an_error_of_its_row(untrained_models, here, command, name, data, said):
    (here / name).write_bytes(data)
    err = command("predict", untrained_models / "nsmc", name, "--output", "b.csv", code=1).err
    assert f"{name}: line 1: {said}" in err
    with (here / "b.csv").open(encoding="utf-8-sig", newline="") as file:
        bad, good = csv.DictReader(file)
    assert (bad["id"], bad["label"], bad["error"]) == ("", "", said)
    assert (good["id"], good["error"]) == ("2", "")


def test_a_question_that_no_file_can_hold_is_an_error_of_its_row(untrained_reader, here, command):
    (here / "a.jsonl").write_text(f'{{"question": "\\ud800", "context": "{CONTEXT}"}}\n', encoding="utf-8")
    table = command("predict", untrained_reader, "a.jsonl", "--csv", code=1).out
    assert "1,,'question' has a surrogate at character 0" in table


def test_tokens_that_are_no_words_are_an_error_of_their_row(classifier):
    rows = [{"tokens": ["정말", 5]}, {"tokens": ["가", None]}, {"id": 3, "tokens": []}]
    found = results(classifier, "\n".join(map(json.dumps, rows)))
    assert found[0]["text"] == "정말 5"
    assert errors(found) == {2: "'tokens' has a part 1 that is missing, not a text"}
    assert found[2]["why"] == "the text is empty"


def test_columns_of_one_name_are_named(classifier, caplog):
    (found,) = results(classifier, "text,점,점,text,,\n좋다,1,2,나쁘다,,\n", "a.csv")
    assert found["text"] == "좋다"
    (line,) = caplog.messages
    assert line == "a.csv: 2 columns are called 'text', and only the first is read: give each its own name"


def test_of_a_long_text_the_beginning_is_read(classifier):
    long = "ㅋ" * 2_000_000
    just = "ㅋ" * MAX_CHARS
    found = results(classifier, f"{long}\n{just}\n{just}가\n")
    assert [one.get("cut") for one in found] == [True, None, True]
    assert {one["text"] for one in found} == {just}
    for one in found[1:]:
        assert one["probabilities"] == pytest.approx(found[0]["probabilities"], abs=1e-6)


def test_questions(untrained_reader):
    reader = korbert.load(untrained_reader, "cpu")
    good = {"id": "q1", "context": CONTEXT, "question": "수도는?"}
    lines = [good, good | {"context": None}, {"question": "수도는?"}, good | {"id": "q2"}]
    found = results(reader, "\n".join(json.dumps(line, ensure_ascii=False) for line in lines))
    keys = {"line", "id", "question", "answer", "start", "end", "score"}
    assert [set(found[0]), set(found[3])] == [keys, keys]
    assert found[0]["answer"] == CONTEXT[found[0]["start"] : found[0]["end"]] == found[3]["answer"]
    missing = "has no 'context', but 'question': name it with --column context=NAME"
    assert errors(found) == {2: "'context' is null, not a string", 3: missing}
    table = results(reader, f"id,question,context\nq1,수도는?,{CONTEXT}\n", "a.csv")
    assert table[0]["answer"] == found[0]["answer"]
    for options, said in (
        ({"form": "lines"}, "plain lines have no question, context"),
        ({"columns": {"text": ["text"]}}, "--text NAME: this model reads `context` and `question`: use --column"),
    ):
        with pytest.raises(SettingsError, match=said):
            results(reader, "수도는?", **options)
    own = json.dumps({"지문": CONTEXT, "물음": "수도는?"}, ensure_ascii=False)
    (found,) = results(reader, own, columns={"context": ["지문"], "question": ["물음"]})
    assert found["answer"] == table[0]["answer"]


def test_scores_that_are_no_numbers_give_no_result(untrained_models):
    broken = korbert.load(untrained_models / "nsmc", "cpu")
    with torch.no_grad():
        broken.network.classifier.bias.fill_(float("nan"))
    with pytest.raises(ModelError, match=r"nsmc: its scores are not finite"):
        results(broken, "좋다")


def test_the_command_says_what_failed_and_goes_on(untrained_models, tmp_path, command):
    path = tmp_path / "reviews.jsonl"
    path.write_text('{"text": "좋다\\ud800"}\n{"text": "좋다, \\"정말\\"", "id": 7}\n{"text": []}\n', encoding="utf-8")
    said = command("predict", untrained_models / "nsmc", path, code=1)
    assert [json.loads(line)["line"] for line in said.out.splitlines()] == [1, 2, 3]
    first, second, last = said.err.splitlines()
    assert first == f"korbert: {path}: line 1: 'text' has a surrogate at character 2"
    assert second == f"korbert: {path}: line 3: 'text' is a list, not a text"
    assert last == f"korbert: {path}: 2 of 3 lines failed: see the messages above"
    table = command("predict", untrained_models / "nsmc", path, "--csv", "--top", "1", code=1).out
    _, good, bad = csv.DictReader(io.StringIO(table))
    assert list(bad) == ["line", "id", "text", "label", "probability", "probabilities", "error"]
    assert (bad["line"], bad["label"], bad["error"]) == ("3", "", "'text' is a list, not a text")
    assert (good["id"], good["text"], good["error"]) == ("7", '좋다, "정말"', "")
    assert json.loads(good["probabilities"]) == {good["label"]: float(good["probability"])}
    said = command("predict", untrained_models / "nsmc", "정말 좋다", code=2).err
    assert "no such file or folder" in command("predict", untrained_models / "nsmc", "정말 좋다 " * 60, code=2).err
    assert "'정말 좋다': no such file or folder: a text itself comes through a pipe: echo TEXT | korbert" in said


def _workbook(path):
    """Two sheets: 응답 with a text that looks like a formula, and 다른."""
    book = openpyxl.Workbook()
    book.active.title = "응답"
    for row in (["번호", "글", "text"], [1, "가", "'=1+1'"], [2, "나", "정말 좋다"]):
        book.active.append(row)
    book.create_sheet("다른").append(["text"])
    book["다른"].append(["별로다"])
    book.save(path)
    return path


@pytest.mark.parametrize(("options", "texts"), [([], ["'=1+1'", "정말 좋다"]), (["--sheet", "다른"], ["별로다"])])
def test_a_sheet_of_a_workbook_is_read(untrained_models, tmp_path, command, options, texts):
    out = command("predict", untrained_models / "nsmc", _workbook(tmp_path / "a.xlsx"), *options).out
    assert [json.loads(line)["text"] for line in out.splitlines()] == texts


def test_a_column_of_another_sheet_is_asked_for_with_the_sheet_that_was_read(tmp_path, command):
    book = _workbook(tmp_path / "a.xlsx")
    begin = f"{book} (Excel, sheet 응답; --sheet names another): no column"
    said = command("embed", "korbert-mini-embed", book, "--text", "본문", code=2).err
    assert f"{begin} 본문 among 번호, 글, text: name it with --text NAME\n" in said
    train = ["--train", book, "--text", "본문", "--label", "번호", "--output", tmp_path / "out"]
    assert f"{begin} '본문' for text among 번호" in command("finetune", "korbert-mini", *train, code=2).err


def test_a_misspelt_file_is_guessed(tmp_path, command):
    (tmp_path / "새 문의.csv").write_text("text\n가\n", encoding="utf-8")
    said = command("predict", "korbert-mini-nsmc", tmp_path / "새문의.csv", code=2).err
    assert "did you mean 새 문의.csv? a text itself comes through a pipe" in said


def test_a_workbook_comes_through_a_pipe(classifier, tmp_path):
    data = _workbook(tmp_path / "a.xlsx").read_bytes()
    assert [one["text"] for one in results(classifier, data)] == ["'=1+1'", "정말 좋다"]


def test_results_are_written_as_a_workbook_of_texts_and_numbers(untrained_models, tmp_path, command):
    (tmp_path / "a.txt").write_text("=1+1\n정말 좋다\n", encoding="utf-8")
    command("predict", untrained_models / "nsmc", tmp_path / "a.txt", "--top", "1", "--output", tmp_path / "out.xlsx")
    header, first, _ = openpyxl.load_workbook(tmp_path / "out.xlsx").active.rows
    named = {name.value: cell for name, cell in zip(header, first, strict=True)}
    assert list(named) == ["line", "id", "text", "label", "probability", "probabilities", "error"]
    assert named["text"].value == "=1+1"
    assert {name for name, cell in named.items() if isinstance(cell.value, int | float)} == {"line", "probability"}
    assert {cell.data_type for name, cell in named.items() if isinstance(cell.value, str)} == {"s"}


@pytest.mark.parametrize(("lang", "begins"), [("ko", "\ufeffline,"), ("en", "line,")])
def test_csv_in_korean_begins_with_the_mark_that_excel_needs(
    untrained_models, tmp_path, command, monkeypatch, lang, begins
):
    monkeypatch.setenv("KORBERT_LANG", lang)
    (tmp_path / "a.txt").write_text("정말 좋다\n", encoding="utf-8")
    assert command("predict", untrained_models / "nsmc", tmp_path / "a.txt", "--csv").out.startswith(begins)


ALL = {"probabilities": {"가": 0.2, "나": 0.7, "다": 0.6}}


@pytest.mark.parametrize(("result", "top", "threshold", "expected"), [
    ({"label": "나", **ALL}, 2, None, {"label": "나", "probabilities": {"나": 0.7, "다": 0.6}}),
    ({"label": "나", **ALL}, None, 0.7, {"label": "나", **ALL}),
    ({"label": "나", **ALL}, None, 0.8, {"label": None, **ALL}),
    ({"labels": ["나"], **ALL}, 1, 0.6, {"labels": ["나", "다"], "probabilities": {"나": 0.7}}),
    ({"labels": None, **ALL, "why": "not sure"}, None, 0.8, {"labels": None, **ALL, "why": "not sure"}),
    ({"spans": [{"score": 0.4}, {"score": 0.6}]}, 1, 0.5, {"spans": [{"score": 0.6}]}),
    ({"error": "has no 'text'"}, 1, 0.5, {"error": "has no 'text'"}),
])  # fmt: skip
def test_only_likely_labels_are_kept(result, top, threshold, expected):
    assert select_labels(result, top, threshold) == expected


def test_a_threshold_gives_no_label_that_abstaining_holds_back(here, command, tiny_tokenizer, tiny_config):
    task = Classification(metrics=("micro_f1",), max_length=32, labels=("가", "나", "다"), several=True).task()
    network = ClassificationModel(tiny_config(num_hidden_layers=1), 3, labels="가나다")
    with torch.no_grad():
        network.classifier.weight.zero_()
        network.classifier.bias.copy_(torch.tensor([0.99, 0.7, 0.1]).logit())
    save_model(here / "model", network, tiny_tokenizer, task)
    (here / "a.txt").write_text("정말 좋다\n", encoding="utf-8")
    for abstain, threshold, labels in (
        (None, 0.3, ["가", "나"]),
        (95, None, ["가"]),
        (95, 0, ["가"]),
        (95, 0.3, ["가"]),
        (95, 0.995, []),
        (99.9, 0.3, None),
    ):
        asked = [] if abstain is None else ["--abstain", abstain]
        asked += [] if threshold is None else ["--threshold", threshold]
        found = json.loads(command("predict", "model", "a.txt", *asked).out)
        assert found["labels"] == labels
        assert "label" not in found
        command("predict", "model", "*.txt", *asked, "--output", f"{abstain} {threshold}")
        (part,) = (here / f"{abstain} {threshold}").iterdir()
        (row,) = pq.read_table(part).to_pylist()
        assert row["labels"] == (labels if labels is None else json.dumps(labels, ensure_ascii=False))
    assert "nan is not a number" in command("predict", "model", "a.txt", "--threshold", "nan", code=2).err


@pytest.mark.slow
def test_a_slow_writer_sees_results_at_once(untrained_models):
    command = [sys.executable, "-m", "korbert", "predict", str(untrained_models / "nsmc"), "--device", "cpu"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for text in ("좋다", "나쁘다"):
            process.stdin.write(f"{text}\n".encode())
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["text"] == text
        process.stdin.close()
    assert process.returncode == 0


def test_fill_takes_many_and_shows_the_texts(untrained_models, tmp_path, command):
    model = untrained_models / "pretrain"
    path = tmp_path / "lines.txt"
    shown = command("fill", model, "오늘 [MASK] 정말", "\x1b[31m[MASK]", "--top", "2").out.splitlines()
    assert len(shown) == 4
    assert all(line.startswith("1  0.") for line in shown)
    *_, piece, text = shown[0].split("  ")
    assert text == f"오늘 {piece} 정말"
    assert "\\x1b[31m" in shown[2]

    path.write_text("오늘 [MASK] 정말 [MASK]\n[MASK]\n오늘\n", encoding="utf-8")
    out, err = command("fill", model, "--input", path, "--json", "--top", "1", code=1)
    first, second = map(json.loads, out.splitlines())
    assert [len(gap) for gap in first["gaps"]] == [1, 1]
    assert set(first["gaps"][0][0]) == {"piece", "id", "probability", "text"}
    assert second["text"] == "[MASK]"
    assert err.startswith(f"korbert: {path}: line 3: '오늘': has no [MASK]")
    assert "text 1: character 1 is not UTF-8" in command("fill", model, os.fsdecode(b"\xb0\xa1 [MASK]"), code=2).err


def test_pack_command(untrained_models, tmp_path, command):
    for output, base in (("base", ()), ("own", ("--base", tmp_path / "base"))):
        assert command("pack", untrained_models / "pretrain" / "model", tmp_path / output, *base).out.endswith(" MB\n")
    command("fill", tmp_path / "own", "오늘 [MASK] 좋다")
    said = command("pack", untrained_models / "pretrain" / "model", tmp_path / "base", code=2).err
    assert "already exists: name a new folder" in said


# --- texts of arguments and of files of lines, and JSON lines that are written ---


def test_a_byte_order_mark_is_no_text():
    found = lines.texts(io.BytesIO("\ufeff가\n\ufeff나".encode()), "a.txt")
    assert list(found) == [("a.txt: line 1", "가"), ("a.txt: line 2", "\ufeff나")]


def test_json_that_utf8_cannot_hold_and_numbers_that_json_has_not():
    assert lines.as_json({"text": "가\ud800"}) == '{"text": "가\\ud800"}'.encode()
    with pytest.raises(ValueError, match="JSON compliant"):
        lines.as_json(float("nan"))
