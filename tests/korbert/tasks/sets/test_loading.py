"""Sets by the format of their files; which part stands for which; errors."""

import json
import re

import pytest

from korbert.errors import CorpusError, SettingsError
from korbert.tasks.files import Answer
from korbert.tasks.sets import SETS
from korbert.tasks.sets.loading import files_at_hand, load, part_of

HEADLINES = [  # ynat-v1.1_train.json of KLUE
    {
        "guid": "ynat-v1_train_00000", "title": "유튜브 내달 2일까지 크리에이터 지원 공간 운영", "label": "IT과학",
        "predefined_news_category": "IT과학", "annotations": {"annotators": ["08"], "annotations": {}}, "url": "-",
    },
    {"guid": "ynat-v1_train_00001", "title": "어버이날 맑다가 흐려져", "label": "생활문화", "url": "", "date": ""},
]  # fmt: skip
RELATION = {
    "guid": "klue-re-v1_train_00000",
    "sentence": "〈Something〉는 조지 해리슨이 쓰고 비틀즈가 발표한 곡이다.",
    "subject_entity": {"word": "비틀즈", "start_idx": 24, "end_idx": 26, "type": "ORG"},
    "object_entity": {"word": "조지 해리슨", "start_idx": 13, "end_idx": 18, "type": "PER"},
    "label": "no_relation",
    "source": "wikipedia",
}
QAS = [
    {
        "guid": "klue-mrc-v1_train_12759", "question": "장마는 어디서 시작됐나?", "question_type": 1,
        "answers": [{"text": "제주도", "answer_start": 12}], "is_impossible": False,
    },
    {
        "guid": "klue-mrc-v1_train_12760", "question": "장마는 언제 끝났나?", "question_type": 3,
        "answers": [], "plausible_answers": [{"text": "17일", "answer_start": 8}], "is_impossible": True,
    },
]  # fmt: skip
CONTEXT = "올여름 장마가 17일 제주도에서 시작됐다."
MANY = [f"문장 {number}" for number in range(50)]
CUT = "without sts-train.tsv, sts-dev.tsv is cut by hash ({}): not comparable with published scores"


def reading(qas):
    paragraphs = [{"context": CONTEXT, "qas": qas}]
    article = {"title": "제주도 장마", "paragraphs": paragraphs, "news_category": "종합", "source": "hankyung"}
    return {"version": "v1.1", "data": [article]}


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return path


def test_headlines(tmp_path):
    folder = tmp_path / "KLUE" / "klue_benchmark" / "ynat-v1.1"
    write(folder / "ynat-v1.1_train.json", HEADLINES)
    write(folder / "ynat-v1.1_dev.json", HEADLINES[1:])
    for data in (tmp_path, tmp_path / "KLUE", tmp_path / "KLUE" / "klue_benchmark", folder):
        parts = load("klue-tc", data)
        own = [{"id": item["guid"], "text": item["title"], "label": item["label"]} for item in HEADLINES]
        assert parts.train.rows == own
        assert len(parts.test) == 1
        assert parts.valid is None
        (note,) = parts.notes
        assert note.startswith("no labelled test set is published: ynat-v1.1_dev.json is the test set, choices are")


def test_relations(tmp_path):
    wrong = RELATION | {"guid": "b", "object_entity": {"word": "해리슨", "start_idx": 13, "end_idx": 18}}
    gone = RELATION | {"guid": "c", "object_entity": {"word": "해리슨"}}
    write(tmp_path / "klue-re-v1.1_train.json", [RELATION, wrong, gone])
    write(tmp_path / "klue-re-v1.1_dev.json", [RELATION])
    parts = load("klue-re", tmp_path)
    assert parts.train.rows == [
        {
            "id": "klue-re-v1_train_00000",
            "text": "〈Something〉는 <obj>조지 해리슨</obj>이 쓰고 <subj>비틀즈</subj>가 발표한 곡이다.",
            "label": "no_relation",
        }
    ]
    assert {reason: dropped.count for reason, dropped in parts.train.dropped.items()} == {"bad_record": 2}
    assert "the text has '조지 해리슨' where the object, '해리슨', should be" in " ".join(parts.train.said())


def test_questions_without_answers(tmp_path):
    write(tmp_path / "tasks" / "klue" / "klue-mrc-v1.1_train.json", reading(QAS))
    write(tmp_path / "tasks" / "klue" / "klue-mrc-v1.1_dev.json", reading([QAS[0] | {"answers": []}, QAS[1]]))
    parts = load("klue-mrc", tmp_path)
    answered, silent = (
        {"id": row["guid"], "context": CONTEXT, "question": row["question"], "impossible": row["is_impossible"]}
        for row in QAS
    )
    assert parts.train.rows == [answered | {"answers": [Answer("제주도", 12)]}, silent | {"answers": []}]
    assert len(parts.test) == 2


def test_pairs_of_glue(tmp_path):
    header = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    row = '1\t702876\t702977\tAmrozi accused his brother , " the witness " .\t" The witness " accused him .\n'
    write(tmp_path / "glue_data" / "MRPC" / "train.tsv", header + row * 2)
    write(tmp_path / "glue_data" / "MRPC" / "dev.tsv", header + row)
    write(tmp_path / "glue_data" / "MRPC" / "test.tsv", "index\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t1\t2\tA\tB\n")
    parts = load("mrpc", tmp_path)
    assert (len(parts.train), parts.valid, len(parts.test)) == (2, None, 1)
    first, second = 'Amrozi accused his brother , " the witness " .', '" The witness " accused him .'
    assert parts.test.rows == [{"text": first, "pair": second, "label": "1"}]


def nli(*texts):
    return "".join(f"{line}\n" for line in ("sentence1\tsentence2\tgold_label", *(f"{t}\t나\tneutral" for t in texts)))


def test_both_files_of_kornli(tmp_path):
    folder = tmp_path / "kor-nlu-datasets" / "KorNLI"
    write(folder / "multinli.train.ko.tsv", nli("가", '"나'))
    write(folder / "xnli.dev.ko.tsv", nli("다"))
    write(folder / "xnli.test.ko.tsv", nli("라"))
    half = load("kornli", tmp_path)
    assert len(half.train) == 2
    assert half.notes == ("train is without snli_1.0_train.ko.tsv: not comparable with published scores",)
    write(folder / "snli_1.0_train.ko.tsv", nli("마", "바", "사"))
    whole = load("kornli", tmp_path)
    assert [row["text"] for row in whole.train] == ["가", '"나', "마", "바", "사"]
    assert (whole.notes, len(whole.valid or [])) == ((), 1)


HUB = {
    "kobest-boolq": (
        {"paragraph": "두아 리파는 잉글랜드의 가수이다.", "question": "영국인인가?", "label": 1},
        {"text": "두아 리파는 잉글랜드의 가수이다.", "pair": "영국인인가?", "label": "True"},
    ),
    "kobest-copa": (
        {
            "premise": "물을 끓였다.",
            "question": "결과",
            "alternative_1": "늘었다.",
            "alternative_2": "줄었다.",
            "label": 1,
        },
        {"text": "물을 끓였다. 결과", "choices": ["늘었다.", "줄었다."], "label": "1"},
    ),
    "kobest-hellaswag": (
        {"context": "공이 난다.", **{f"ending_{n}": f"끝 {n}." for n in range(1, 5)}, "label": 3},
        {"text": "공이 난다.", "choices": ["끝 1.", "끝 2.", "끝 3.", "끝 4."], "label": "3"},
    ),
    "kobest-sentineg": ({"sentence": "좋아요", "label": 1}, {"text": "좋아요", "label": "1"}),
    "kobest-wic": (
        {"word": "양분", "context_1": "[양분]이 많다.\t", "context_2": "[양분]과 산소.", "label": 0},
        {"text": "[양분]이 많다.\t", "pair": "[양분]과 산소.", "label": "False"},
    ),
}


@pytest.mark.parametrize("name", HUB)
def test_kobest_as_its_authors_have_it_on_the_hub(tmp_path, name):
    record, row = HUB[name]
    for file in ("train.jsonl", "validation.jsonl", "test.jsonl"):
        write(tmp_path / "kobest_v1" / name.removeprefix("kobest-") / file, record)
    parts = load(name, tmp_path)
    assert (parts.train.rows, len(parts.valid or []), len(parts.test)) == ([row], 1, 1)
    if name == "kobest-boolq":  # the labels of these files, not of the tables in datasets.toml before them
        assert parts.labels == {"1": "True", "0": "False"}


def sts(*texts):
    header = "genre\tfilename\tyear\tid\tscore\tsentence1\tsentence2\n"
    return header + "".join(f"main\tMSRvid\t2012test\t0001\t5.000\t{text}\t나\n" for text in texts)


@pytest.mark.parametrize(
    ("there", "counts", "notes"),
    [
        ("train dev test", (50, 50, 50), ()),
        ("train test", (50, None, 50), ("without sts-dev.tsv, choices are made on a share of train",)),
        ("train dev", (50, None, 50),
         ("without sts-test.tsv, sts-dev.tsv is the test set: not comparable with published scores",)),
        ("dev test", (36, 14, 50), (CUT.format("36 train, 14 valid"),)),
        ("dev", (28, 14, 8), (CUT.format("28 train, 14 valid, 8 test"),)),
    ],
)  # fmt: skip
def test_which_part_stands_for_which(tmp_path, there, counts, notes):
    for part in there.split():
        write(tmp_path / "korsts" / f"sts-{part}.tsv", sts(*MANY))
    parts = load("korsts", tmp_path)
    assert (len(parts.train), parts.valid and len(parts.valid), len(parts.test)) == counts
    assert parts.notes == notes


def test_what_was_dropped_is_said_once(tmp_path):
    path = write(tmp_path / "sts-dev.tsv", sts(*MANY).replace("5.000\t문장 7\t", "\t문장 7\t"))
    parts = load("korsts", tmp_path)
    lines = [line for rows in (parts.train, parts.valid, parts.test) if rows for line in rows.said()]
    assert [line for line in lines if line.startswith("dropped ")] == [
        f"dropped 1 as no_score: {path}, line 9: 'score' is empty"
    ]
    assert sum(map(len, filter(None, (parts.train, parts.valid, parts.test)))) == 49


def test_rows_that_were_cut_keep_their_places(tmp_path):
    path = write(tmp_path / "sts-dev.tsv", sts(*MANY))
    parts = load("korsts", tmp_path)
    for rows in (parts.train, parts.valid, parts.test):
        assert rows is not None
        assert [str(place) for place in rows.places] == [f"{path}, line {MANY.index(row['text']) + 2}" for row in rows]
        assert rows.columns["pair"] == ("sentence2",)


@pytest.mark.parametrize(
    ("row", "part"),
    [  # by `sha256sum` and `bc`: 1, 2, 0, 0, 1 modulo 5
        ({"text": "문장 0", "pair": "가"}, "test"),
        ({"text": "문장 1", "pair": "나"}, "train"),
        ({"context": "문장 2", "question": "누구?"}, "valid"),
        ({"tokens": ["문장", "3"], "tags": ["NOUN", "NUM"]}, "valid"),
        ({"context": "문장 0", "question": "문장 1"}, "test"),
    ],
)
def test_part_of(row, part):
    assert part_of(row) == part


def test_missing_files_are_named(tmp_path):
    nothing = (
        f"korsts: no sts-train.tsv (train), sts-dev.tsv (valid), sts-test.tsv (test) in {tmp_path} and its folders"
        " korsts, kor-nlu-datasets/KorSTS: get the files from https://github.com/kakaobrain/kor-nlu-datasets"
        " (CC BY-SA 4.0)"
    )
    with pytest.raises(CorpusError, match=f"^{re.escape(nothing)}$"):
        load("korsts", tmp_path)
    write(tmp_path / "korsts" / "sts-test.tsv", sts("가"))
    with pytest.raises(CorpusError, match=r"no sts-train\.tsv \(train\), sts-dev\.tsv \(valid\) in .*/korsts: get"):
        load("korsts", tmp_path)
    (tmp_path / "korsts" / "sts-test.tsv").rename(tmp_path / "korsts" / "sts-train.tsv")
    with pytest.raises(CorpusError, match=r"no sts-dev\.tsv \(valid\), sts-test\.tsv \(test\) in"):
        load("korsts", tmp_path)


def test_errors(tmp_path):
    with pytest.raises(SettingsError, match=r"^no data set 'klue_ner': did you mean klue-ner\?$"):
        load("klue_ner", tmp_path)
    with pytest.raises(SettingsError, match=r"^no data set 'qqq': known are nsmc, korquad, klue-tc, "):
        load("qqq", tmp_path)
    with pytest.raises(CorpusError, match=r"nowhere: no such folder: give the one that holds the files of korsts$"):
        load("korsts", tmp_path / "nowhere")
    write(tmp_path / "sts-dev.tsv", sts("가"))
    with pytest.raises(CorpusError, match=r"sts-dev\.tsv: 1 rows are too few to be cut \(.*\): get the files from"):
        load("korsts", tmp_path)


def test_files_at_hand(tmp_path):
    dev = write(tmp_path / "korsts" / "sts-dev.tsv", sts("가"))
    write(tmp_path / "kornli" / "snli_1.0_train.ko.tsv", nli("가"))
    assert files_at_hand(SETS["korsts"], tmp_path) == {"valid": (dev,)}
    for name in ("kornli", "klue-tc"):  # without a file to test on, or any file
        with pytest.raises(CorpusError, match=f"{name}: no .*: get the files from"):
            files_at_hand(SETS[name], tmp_path)


def test_which_folder_comes_first(tmp_path):
    write(tmp_path / "sts-train.tsv", sts("다른 것"))
    write(tmp_path / "sts-dev.tsv", sts("다른 것"))
    for part in ("train", "dev"):
        write(tmp_path / "tasks" / "korsts" / f"sts-{part}.tsv", sts("이것"))
    parts = load("korsts", tmp_path)
    assert [row["text"] for row in (*parts.train, *parts.test)] == ["이것", "이것"]
    for part in ("dev", "test"):
        write(tmp_path / "tasks" / "korsts" / f"sts-{part}.tsv", sts(*MANY))
    for part in ("train", "test"):
        write(tmp_path / "korsts" / f"sts-{part}.tsv", sts("이것"))
    assert [row["text"] for row in load("korsts", tmp_path).train] == ["이것"]
