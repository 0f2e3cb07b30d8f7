"""Slots of sentences: from a file of anybody's to a scored, saved and used model."""

import json

import pytest

import korbert
from korbert.errors import CorpusError, ModelError, SettingsError
from korbert.huggingface.exporting import export
from korbert.messages import Message
from korbert.pipelines.service.limits import Limits
from korbert.pipelines.service.operations import operations_of
from tests.pipelines.small_tasks import fine_tune, scores_of

FROM = "출발하는 곳"
TO = "도착하는 곳"
DAY = "떠나는 날"
TRIPS = [
    ("서울에서 부산으로 갑니다", {FROM: "서울", TO: "부산"}), ("부산에서 서울로 갑니다", {FROM: "부산", TO: "서울"}),
    ("내일 대전으로 갈게요", {DAY: "내일", TO: "대전"}), ("대전에서 모레 떠나요", {FROM: "대전", DAY: "모레"}),
    ("언제든 제주로 보내 주세요", {DAY: "any", TO: "제주"}), ("기차표를 사고 싶어요", {}),
    ("아무 날이나 부산에서 떠나요", {DAY: "any", FROM: "부산"}), ("안녕하세요", {}),
    ("어디든 좋으니 내일 떠나요", {TO: "any", DAY: "내일"}),
    ("제주에서 서울로 모레 갑니다", {FROM: "제주", TO: "서울", DAY: "모레"}),
]  # fmt: skip
TEXT, SLOTS = TRIPS[0]
OTHER = {"text": TEXT, "descriptions": {"어디로": TO.replace(" ", "  ")}}  # a description unseen in training
BASE = {
    "learning_rates": 6e-3, "batch_size": 8, "epochs": 60, "warmup_share": 0.0, "threads": 1, "checkpoint_every": 9999,
    "max_length": 36, "stride": 8, "max_query_pieces": 12,
}  # fmt: skip


def trips(path, rows=TRIPS):
    lines = [{"text": text, "slots": {**dict.fromkeys((FROM, TO, DAY)), **slots}} for text, slots in rows]
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return path


def values(slots):
    return {name: one["value"] if isinstance(one, dict) else one for name, one in slots.items() if one is not None}


@pytest.fixture(scope="module")
def learned(untrained, tmp_path_factory):
    """The artifact of a model of ten sentences, and their file."""
    folder = tmp_path_factory.mktemp("trips")
    path = trips(folder / "trips.jsonl")
    start = untrained(hidden_size=32, intermediate_size=64, type_vocab_size=2)
    fine_tune("slots", start, folder / "out", dict.fromkeys(("train", "valid", "test"), path), **BASE)
    return folder / "out", path


@pytest.fixture(scope="module")
def model(learned):
    return korbert.load(learned[0], "cpu")


def test_ten_sentences_are_learned_better_than_by_noun_phrases(learned):
    scores = scores_of(learned[0])
    assert (scores["pretrained"]["slot_f1"], scores["pretrained"]["joint_accuracy"]) == (1.0, 1.0)
    assert scores["noun_phrase"]["slot_f1"] < 0.5


@pytest.mark.parametrize(("text", "slots"), TRIPS)
def test_slots_of_a_text_are_filled_with_parts_of_it(model, text, slots):
    found = model.predict(text)
    assert values(found) == slots
    spans = [one for one in found.values() if isinstance(one, dict)]
    assert all(text[one["start"] : one["end"]] == one["value"] for one in spans)


def test_in_python_a_row_brings_its_own_slots(model):
    assert values(model.predict(OTHER)) == {"어디로": "부산"}
    labelled = {**OTHER, "slots": {FROM: {"value": "대전", "start": 0}}}
    assert values(model.predict(labelled)) == {"어디로": "부산"}, "slots are what is predicted"
    with pytest.raises(
        SettingsError, match="is '어디로', not an object of names and values: this model takes values of 3 slots"
    ):
        model.predict({"text": TEXT, "descriptions": "어디로"})


def test_a_record_of_a_file_brings_its_own_slots(learned, command, tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps(record, ensure_ascii=False) for record in ({"text": TEXT}, OTHER)), "utf-8")
    lines = command("predict", learned[0], path, "--precision", "fp32").out.splitlines()
    assert [values(json.loads(line)["slots"]) for line in lines] == [SLOTS, {"어디로": "부산"}]


@pytest.mark.parametrize(("name", "content"), [("a.txt", TEXT), ("a.csv", f"text,descriptions\n{TEXT},\n")])
def test_slots_of_training_need_no_column(learned, command, tmp_path, name, content):
    (tmp_path / name).write_text(content, "utf-8")
    line = command("predict", learned[0], tmp_path / name, "--precision", "fp32").out
    assert values(json.loads(line)["slots"]) == SLOTS


def test_a_request_brings_its_own_slots(model):
    operation = operations_of(model, Limits())["predict"]
    found = operation.forward([row.value for row in operation.tokenize([TEXT, OTHER])])
    assert [values(one["slots"]) for one in found] == [SLOTS, {"어디로": "부산"}]


def test_rows_that_cannot_be_learned(untrained, tmp_path):
    path = trips(tmp_path / "trips.jsonl", [*TRIPS, ("광주로 갑니다", {TO: "서울"})])
    fine_tune("slots", untrained(), tmp_path / "out", {"train": path}, **{**BASE, "epochs": 1})
    scores = json.loads((tmp_path / "out" / "scores.json").read_text(encoding="utf-8"))
    said = list(map(Message.from_json, scores["said"]))
    assert "dropped 1 as bad_row: trips.jsonl, line 11: the context has no '서울'" in said
    with pytest.raises(CorpusError, match="no slot has a value"):
        fine_tune("slots", untrained(), tmp_path / "out", {"train": trips(path, [("안녕하세요", {})] * 9)}, **BASE)


def test_the_model_is_not_exported(learned, tmp_path):
    with pytest.raises(ModelError, match="no class of transformers fills slots"):
        export(learned[0], tmp_path / "export")
