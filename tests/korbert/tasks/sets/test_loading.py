"""Sets by the format of their files; which part stands for which; errors."""

import re

import pytest

from korbert.errors import CorpusError, SettingsError
from korbert.tasks.files import GoldAnswer
from korbert.tasks.sets import SETS
from korbert.tasks.sets.loading import files_at_hand, load, part_of
from tests.korbert.tasks.writing import written

TITLES = {"유튜브 내달 2일까지 크리에이터 지원 공간 운영": "IT과학", "어버이날 맑다가 흐려져": "생활문화"}
MORE = {
    "predefined_news_category": "",
    "annotations": {"annotators": ["08"], "annotations": {}},
    "url": "-",
    "date": "",
}
HEADLINES = [{"guid": name, "title": name, "label": label, **MORE} for name, label in TITLES.items()]  # as in ynat
RELATION = {  # of klue-re
    "guid": "a",
    "sentence": "〈Something〉는 조지 해리슨이 쓰고 비틀즈가 발표한 곡이다.",
    "subject_entity": {"word": "비틀즈", "start_idx": 24, "end_idx": 26, "type": "ORG"},
    "object_entity": {"word": "조지 해리슨", "start_idx": 13, "end_idx": 18, "type": "PER"},
    "label": "no_relation",
}
RIGHT, PLAUSIBLE = ({"text": text, "answer_start": start} for text, start in (("제주도", 12), ("17일", 8)))
SILENT = {"is_impossible": True, "answers": [], "plausible_answers": [PLAUSIBLE]}
QAS = [  # of klue-mrc
    {"guid": "a", "question": "장마는 어디서?", "question_type": 1, "is_impossible": False, "answers": [RIGHT]},
    {"guid": "b", "question": "장마는 언제 끝났나?", "question_type": 3, **SILENT},
]
CONTEXT = "올여름 장마가 17일 제주도에서 시작됐다."
MANY = [f"문장 {number}" for number in range(50)]
CUT = "without sts-train.tsv, sts-dev.tsv is cut by hash ({}): not comparable with published scores"


def reading(qas):
    paragraphs = [{"context": CONTEXT, "qas": qas}]
    article = {"title": "제주도 장마", "paragraphs": paragraphs, "news_category": "종합", "source": "hankyung"}
    return {"version": "v1.1", "data": [article]}


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    return written(path.parent, path.name, content)


def test_headlines(tmp_path):
    folder = tmp_path / "KLUE" / "klue_benchmark" / "ynat-v1.1"
    write(folder / "ynat-v1.1_train.json", HEADLINES)
    write(folder / "ynat-v1.1_dev.json", HEADLINES[1:])
    for data in (tmp_path, tmp_path / "KLUE", tmp_path / "KLUE" / "klue_benchmark", folder):
        parts = load("klue-tc", data)
        assert parts.train.rows == [{"id": title, "text": title, "label": label} for title, label in TITLES.items()]
        assert (len(parts.test), parts.valid) == (1, None)
        (note,) = parts.notes
        assert note.startswith("no labelled test set is published: ynat-v1.1_dev.json is the test set, choices are")


def test_relations_and_questions_without_answers(tmp_path):
    wrong = RELATION | {"guid": "b", "object_entity": {"word": "해리슨", "start_idx": 13, "end_idx": 18}}
    gone = RELATION | {"guid": "c", "object_entity": {"word": "해리슨"}}
    write(tmp_path / "klue-re-v1.1_train.json", [RELATION, wrong, gone])
    write(tmp_path / "klue-re-v1.1_dev.json", [RELATION])
    parts = load("klue-re", tmp_path)
    text = "〈Something〉는 <obj>조지 해리슨</obj>이 쓰고 <subj>비틀즈</subj>가 발표한 곡이다."
    assert parts.train.rows == [{"id": "a", "text": text, "label": "no_relation"}]
    assert {reason: dropped.count for reason, dropped in parts.train.dropped.items()} == {"bad_record": 2}
    assert "the text has '조지 해리슨' where the object, '해리슨', should be" in " ".join(parts.train.summary())
    write(tmp_path / "tasks" / "klue" / "klue-mrc-v1.1_train.json", reading(QAS))
    write(tmp_path / "tasks" / "klue" / "klue-mrc-v1.1_dev.json", reading([QAS[0] | {"answers": []}, QAS[1]]))
    parts = load("klue-mrc", tmp_path)
    answered, silent = (
        {"id": row["guid"], "context": CONTEXT, "question": row["question"], "impossible": row["is_impossible"]}
        for row in QAS
    )
    assert parts.train.rows == [answered | {"answers": [GoldAnswer("제주도", 12)]}, silent | {"answers": []}]
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
            "alternative_2": "준다.",
            "label": 1,
        },
        {"text": "물을 끓였다. 결과", "choices": ["늘었다.", "준다."], "label": "1"},
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
        write(tmp_path / "kobest_v1" / name.removeprefix("kobest-") / file, [record])
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


def test_rows_that_were_cut_keep_their_places_and_what_was_dropped_is_said_once(tmp_path):
    path = write(tmp_path / "sts-dev.tsv", sts(*MANY).replace("5.000\t문장 7\t", "\t문장 7\t"))
    parts = load("korsts", tmp_path)
    given = (parts.train, parts.valid, parts.test)
    lines = [line for rows in given for line in rows.summary() if line.startswith("dropped ")]
    assert lines == [f"dropped 1 as no_score: {path}, line 9: 'score' is empty"]
    assert sum(map(len, given)) == 49
    for rows in given:
        assert [str(place) for place in rows.places] == [f"{path}, line {MANY.index(row['text']) + 2}" for row in rows]
        assert rows.columns["pair"] == ("sentence2",)


def test_part_of():
    """As `sha256sum` and `bc` say: 1, 2, 0, 0, 1 modulo 5."""
    for row, part in (
        ({"text": "문장 0", "pair": "가"}, "test"),
        ({"text": "문장 1", "pair": "나"}, "train"),
        ({"context": "문장 2", "question": "누구?"}, "valid"),
        ({"tokens": ["문장", "3"], "tags": ["NOUN", "NUM"]}, "valid"),
        ({"context": "문장 0", "question": "문장 1"}, "test"),
    ):
        assert part_of(row) == part


NOTHING = (
    "korsts: no sts-train.tsv (train), sts-dev.tsv (valid), sts-test.tsv (test) in {} and its folders korsts, "
    "kor-nlu-datasets/KorSTS: get the files from https://github.com/kakaobrain/kor-nlu-datasets (CC BY-SA 4.0)"
)


@pytest.mark.parametrize(
    ("there", "name", "folder", "said"),
    [
        ("", "korsts", "", f"^{re.escape(NOTHING)}$"),
        ("test", "korsts", "", r"no sts-train\.tsv \(train\), sts-dev\.tsv \(valid\) in .*/korsts: get"),
        ("train", "korsts", "", r"no sts-dev\.tsv \(valid\), sts-test\.tsv \(test\) in"),
        ("dev", "korsts", "", r"sts-dev\.tsv: 1 rows are too few to be cut \(.*\): get the files from"),
        ("", "korsts", "nowhere", "nowhere: no such folder: give the one that holds the files of korsts$"),
        ("", "klue_ner", "", r"^no data set 'klue_ner': did you mean klue-ner\?$"),
        ("", "qqq", "", "^no data set 'qqq': known are nsmc, korquad, klue-tc, "),
    ],
)
def test_errors(tmp_path, there, name, folder, said):
    if there:
        write(tmp_path / "korsts" / f"sts-{there}.tsv", sts("가"))
    with pytest.raises((CorpusError, SettingsError), match=said.replace(r"\{\}", re.escape(str(tmp_path)))):
        load(name, tmp_path / folder)


def test_which_files_are_at_hand_and_which_folder_comes_first(tmp_path):
    dev = write(tmp_path / "korsts" / "sts-dev.tsv", sts("가"))
    write(tmp_path / "kornli" / "snli_1.0_train.ko.tsv", nli("가"))
    assert files_at_hand(SETS["korsts"], tmp_path) == {"valid": (dev,)}
    for name in ("kornli", "klue-tc"):  # without a file to test on, or any file
        with pytest.raises(CorpusError, match=f"{name}: no .*: get the files from"):
            files_at_hand(SETS[name], tmp_path)
    for part in ("train", "dev"):
        write(tmp_path / f"sts-{part}.tsv", sts("다른 것"))
        write(tmp_path / "tasks" / "korsts" / f"sts-{part}.tsv", sts("이것"))
    parts = load("korsts", tmp_path)
    assert [row["text"] for row in (*parts.train, *parts.test)] == ["이것", "이것"]
    other = tmp_path / "other"  # where one folder alone has a training part
    for training, own in (("dev", "tasks/korsts"), ("train", "korsts")):
        for part in (training, "test"):
            write(other / own / f"sts-{part}.tsv", sts("이것") if own == "korsts" else sts(*MANY))
    assert [row["text"] for row in load("korsts", other).train] == ["이것"]
