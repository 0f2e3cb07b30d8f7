"""`korbert finetune`, `evaluate`, `predict` on files of one's own, as a user types them."""

import contextlib
import json
import re
from pathlib import Path

import pytest

import korbert
from korbert.messages import Message
from korbert.pipelines.artifacts.figures import label
from korbert.pipelines.cli import run_command
from korbert.tasks.noise import NOISE
from tests.korbert.tiny import json_lines
from tests.pipelines.small_tasks import write_table

GOOD = ["정말 재미있다", "최고의 연기", "다시 보고 싶다", "음악이 아름답다", "가족과 보았다"]
BAD = ["시간이 아깝다", "지루했다", "돈이 아깝다", "배우가 어색하다", "결말이 허무하다"]
QUICK = ["--epochs", "30", "--learning-rate", "3e-3", "--set", "batch_size=5", "--set", "max_length=32",
         "--set", "threads=1", "--device", "cpu", "--workers", "1"]  # fmt: skip
NAMED = ["--text", "후기", "--label", "느낌"]


@pytest.fixture(scope="module")
def model(untrained):
    return str(untrained(hidden_size=32, num_hidden_layers=1, intermediate_size=32))


def _moods(path, encoding="utf-8"):
    """Rows of GOOD and BAD; the arguments that name them for training and test."""
    rows = [[text, mood] for mood, texts in (("좋음", GOOD), ("나쁨", BAD)) for text in texts]
    write_table(path, ["후기", "느낌"], rows, encoding)
    return ["--train", path.name, "--test", path.name, *NAMED, *QUICK]


def _json(shown):
    """The JSON lines on standard output."""
    return list(map(json.loads, shown.out.splitlines()))


def test_training_and_test_files_may_be_addresses(here, model, command):
    _moods(here / "my.csv")
    address = (here / "my.csv").as_uri()
    command(
        "finetune", model, "--train", address, "--test", address, *NAMED, "--output", "mood", *QUICK, "--epochs", "1"
    )
    lines = command("evaluate", "mood", address, "--device", "cpu", "--noise").out.splitlines()
    assert [line.split()[0] for line in lines] == ["accuracy", "macro_f1", *["accuracy"] * len(NOISE)]
    assert [line.split("  ")[-1].strip() for line in lines[2:]] == list(map(label, NOISE))
    said = command("finetune", model, "--train", (here / "no.csv").as_uri(), "--output", "none", code=2).err
    assert "no.csv: no such file: did you mean my.csv?" in said


def test_from_a_csv_file_to_a_model_in_one_command(here, model, command):
    learn = ["finetune", model, *_moods(here / "my.csv", "cp949"), "--output", "models/mood"]
    shown = command(*learn)
    assert "my.csv: classification: text from '후기', label from '느낌': 2 labels; --kind says otherwise" in shown.err
    assert "accuracy, linear model" in shown.out
    assert json.loads(Path("models/mood/scores.json").read_text())["counts"]["test"] == 10
    assert (here / "models/mood/report.html").is_file()

    assert korbert.load("models/mood", "cpu").predict(GOOD[0]).label == "좋음"
    Path("new.txt").write_text("\n".join(BAD), encoding="utf-8")
    lines = _json(command("predict", "models/mood", "new.txt", "--device", "cpu"))
    assert [line["label"] for line in lines] == ["나쁨"] * 5
    score = ["evaluate", "models/mood", "my.csv", "--output", "all.jsonl", "--device", "cpu"]
    assert json.loads(command(*score, *NAMED, "--json").out)["accuracy"]["score"] == 1.0
    assert len(Path("all.jsonl").read_text("utf-8").splitlines()) == 10
    assert "all.jsonl: already exists, and is not written over" in command(*score, code=2).err

    before = Path("models/mood/stage.json").read_bytes()
    command(*learn)  # fresh: nothing is done
    assert Path("models/mood/stage.json").read_bytes() == before
    said = command(*learn, "--seeds", "2", code=2).err
    assert "is not what korbert finetune would make: seeds: [0, 1] here, [0] in the artifact" in said
    assert "--rebuild`, or choose another --output" in said


STARTS = {"정말 재미있는 영화": 8, "서울에 갔다": 0, "부산은 멀다": 0, "이 영화를 보았다": 2, "서울": 0}
FILES = {
    "ner.jsonl": [json.dumps({"text": text, "entities": [[at, at + 2, "것"]]}) for text, at in STARTS.items()],
    "choices.jsonl": [
        json.dumps({"text": good, "choices": [bad, good], "label": 1}) for good, bad in zip(GOOD, BAD, strict=True)
    ],
    "numbers.tsv": [
        "sentence1\tsentence2\tlabel",
        *(f"{text}\t{BAD[0]}\t{place / 4}" for place, text in enumerate(GOOD)),
    ],
}


@pytest.mark.parametrize(("name", "kind"), [
    ("ner.jsonl", "token-classification: text from 'text', spans from 'entities'"),
    ("choices.jsonl", "multiple-choice: choices from 'choices'"),
    ("numbers.tsv", "regression: score from 'label': 5 numbers"),
])  # fmt: skip
def test_the_kind_is_found_from_the_columns(here, model, name, kind, command):
    (here / name).write_text("\n".join(FILES[name]), encoding="utf-8")
    said = command("finetune", model, "--train", name, "--test", name, "--output", "out", *QUICK, "--epochs", "2").err
    assert kind in said
    lines = _json(command("predict", "out", name, "--device", "cpu"))
    assert len(lines) == 5
    assert all({"choice", "spans"} & line.keys() or isinstance(line["prediction"], float) for line in lines)
    score = ["evaluate", "out", name, *([] if name == "ner.jsonl" else ["--label", "label"])]
    command(*score, *([] if name == "choices.jsonl" else ["--html", "sure.html"]), "--device", "cpu")
    assert Path("sure.html").exists() == (name != "choices.jsonl")
    if name == "choices.jsonl":
        said = command(*score, "--noise", code=2).err
        assert "models of kind multiple-choice cannot be scored with noise; these can: classification" in said


def test_finetune_and_evaluate_print_the_same_scores(here, model, command, monkeypatch):
    """With interval, macro F1 and the number of rows; scored in fp32 whatever the precision of training."""
    asked = []

    def autocast(device, precision):
        asked.append(precision)
        return contextlib.nullcontext()

    monkeypatch.setattr("korbert.training.scoring.autocast", autocast)
    monkeypatch.setenv("COLUMNS", "200")
    shown = command("finetune", model, *_moods(here / "my.csv"), "--output", "mood", "--epochs", "1")
    pattern = r"([0-9.]+)\s% accuracy, .*: ([0-9.]+) to ([0-9.]+)\s%; macro F1 ([0-9.]+)\s%; 10 rows\)"
    found = re.search(pattern, shown.out)
    assert found
    said = map(Message.from_json, json.loads(Path("mood/scores.json").read_text("utf-8"))["said"])
    few = "only 10 rows are scored, each worth 10 points: too few for a reliable score, give more"
    assert few in said
    assert set(asked) == {"fp32"}
    shown = command("evaluate", "mood", "my.csv", "--device", "cpu")
    assert "my.csv: the model was trained on this file: expect lower scores on other rows" in shown.err
    Path("other.csv").write_text(Path("my.csv").read_text("utf-8") + "\n", encoding="utf-8")
    assert "trained on this file" not in command("evaluate", "mood", "other.csv", "--device", "cpu").err
    score, low, high, macro = (f"{float(figure) / 100:.4f}" for figure in found.groups())
    assert re.search(rf"accuracy +{score} +{low} to {high} +10 rows\n", shown.out)
    printed = re.search(r"macro_f1 +([0-9.]+) ", shown.out)
    assert printed
    assert float(printed[1]) == pytest.approx(float(macro), abs=6e-4)
    assert few in shown.err


def test_a_regression_names_its_baseline_and_its_error(here, model, command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    (here / "numbers.tsv").write_text("\n".join(FILES["numbers.tsv"]), encoding="utf-8")
    learn = ["finetune", model, "--train", "numbers.tsv", "--test", "numbers.tsv", "--output", "out", *QUICK]
    assert "words baseline" in command(*learn).out
    shown = command(*learn, "--epochs", "1", "--only", "encoder", "--rebuild").out
    assert "TF-IDF baseline" in shown
    assert "logistic" not in shown
    assert re.search(r"mean absolute error [0-9.]+; 5 rows", shown)
    said = command(*learn, "--set", 'metrics=["mae"]', "--rebuild", code=2).err
    assert "metrics: mae is lower for better models" in said


@pytest.fixture(scope="module")
def of_pairs(model, tmp_path_factory):
    """A model of pairs whose training file has column names of its own."""
    folder = tmp_path_factory.mktemp("pairs")
    _pairs(folder / "train.csv", "앞글,뒷글,같은가")
    named = ["--text", "앞글", "--pair", "뒷글", "--label", "같은가", "--output", str(folder / "out"), *QUICK]
    assert run_command(["finetune", model, "--train", str(folder / "train.csv"), *named, "--epochs", "1"]) == 0
    return folder / "out"


def _pairs(path, head):
    rows = [f"{a},{b},{'예' if a in GOOD else '아니요'}" for a, b in zip(GOOD + BAD, BAD + GOOD, strict=True)]
    path.write_text("\n".join([head, *rows]), encoding="utf-8")


@pytest.mark.parametrize(("head", "options"), [
    ("앞글,뒷글,같은가", []),  # as in training
    ("sentence1,sentence2,label", []),  # usual names
    ("뒷글,앞글,같은가", ["--text", "뒷글", "--pair", "앞글"]),  # named by the user
    ("가,나,다", ["--text", "가", "--pair", "나", "--label", "다"]),
    ("가,뒷글,같은가", ["--text", "가"]),  # one by the user, the others as in training
])  # fmt: skip
def test_a_model_remembers_the_columns_it_was_trained_on(here, of_pairs, head, options, command):
    _pairs(here / "new.csv", head)
    command("evaluate", of_pairs, "new.csv", "--output", "rows.jsonl", *options, "--device", "cpu")
    predicted = _json(command("predict", of_pairs, "new.csv", *options, "--device", "cpu"))
    assert [(one["text"], one["pair"]) for one in predicted] == list(zip(GOOD + BAD, BAD + GOOD, strict=True))
    assert [one["label"] for one in predicted] == [one["prediction"]["label"] for one in json_lines(Path("rows.jsonl"))]


def test_choices_in_several_columns_are_predicted(here, model, command):
    rows = [f"{good},{bad},{good},1" for good, bad in zip(GOOD, BAD, strict=True)]
    Path("choices.csv").write_text("\n".join(["물음,첫째,둘째,정답", *rows]), encoding="utf-8")
    named = ["--kind", "choice", "--text", "물음", "--column", "choices=첫째", "--column", "choices=둘째",
             "--label", "정답", "--output", "out", *QUICK]  # fmt: skip
    command("finetune", model, "--train", "choices.csv", *named, "--epochs", "1")
    found = _json(command("predict", "out", "choices.csv", "--device", "cpu"))
    assert [one["choices"] for one in found] == [[bad, good] for good, bad in zip(GOOD, BAD, strict=True)]


@pytest.mark.parametrize(("options", "said"), [
    ("--train no.csv", "no.csv: no such file"),
    ("--train my.csv", "no column of labels or scores among 후기, 느낌"),
    ("--train my.csv --label 느끼", "no column '느끼' .* did you mean 느낌"),
    ("--train my.csv --text 후기 --label 느낌 --valid other.csv",
     "labels not seen in training: '다름' 1 times, first at .*other.csv, line 3"),
    ("--train my.csv --text 후기 --label 느낌 --set epoch=3", "no such key .did you"),
    ("--train my.csv --text 후기 --kind regression", "my.csv: no column for score"),
    ("--train my.csv --text 후기 --label 느낌 --valid-share 2", "is not in the range"),
    ("--task klue-nerr --data .", "did you mean klue-ner"),
    ("--task klue-ner --data .", "klue-ner: no .*get the files from"),
    ("--task klue-re --data . --dry-run", "klue-re: no .*get the files from"),
    ("--task klue-ner", "--task needs --data"),
    ("", "give either --train FILE or --task NAME"),
])  # fmt: skip
def test_what_cannot_be_learned_is_refused(here, model, options, said, capsys):
    _moods(here / "my.csv")
    Path("other.csv").write_text("후기,느낌\n좋다,좋음\n이상하다,다름\n", encoding="utf-8")
    assert run_command(["finetune", model, *options.split(), "--output", "out", *QUICK]) in (1, 2)
    assert re.search(said, capsys.readouterr().err)
    assert not Path("out").exists()
    assert not Path("out.partial").exists() or "other.csv" in options


def test_a_model_of_a_known_set_knows_the_labels_of_its_files(here, model, sample, command):
    folder = here / "data" / "nsmc"
    folder.mkdir(parents=True)
    for part in ("train", "test"):
        lines = (sample / "nsmc" / f"ratings_{part}.txt").read_text("utf-8").splitlines()[:41]
        (folder / f"ratings_{part}.txt").write_text("\n".join(lines), encoding="utf-8")
    command("finetune", model, "--task", "nsmc", "--data", "data", "--output", "out", *QUICK, "--epochs", "1")
    evaluated = json.loads(command("evaluate", "out", "data/nsmc/ratings_test.txt", "--json").out)["accuracy"]["score"]
    assert evaluated == json.loads(Path("out/scores.json").read_text())["rows"][0]["scores"]["accuracy"]
    assert json.loads(Path("out/predictions.jsonl").read_text("utf-8").splitlines()[0])["label"] in ("부정", "긍정")


def test_every_layer_is_scored(here, model, command):
    _moods(here / "my.csv")
    score = ["layers", model, "--train", "my.csv", *NAMED, "--output", "layers", *QUICK, "--epochs", "2"]
    assert "layers.html" in command(*score).out
    found = json.loads(Path("layers/layers.json").read_text())
    assert [row["name"] for row in found["models"][:2]] == ["0", "1"]
    assert sorted(path.name for path in Path("layers").iterdir()) == ["layers.html", "layers.json"]
    Path("layers/layers.json").unlink()
    command(*score, "--seeds", "1")  # again, in the same folder
    assert json.loads(Path("layers/layers.json").read_text())["models"][0]["seeds"] == 1
    Path("layers/stage.json").write_text("{}")
    assert "layers: is an artifact, which other files would make stale" in command(*score, code=2).err
