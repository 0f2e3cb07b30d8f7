"""The page of a task of any kind shows what is in its records, even if parts are missing."""

import ast
import json
import math
import re
import shlex

import pytest
from seqeval.metrics import classification_report
from sklearn.metrics import f1_score, precision_recall_fscore_support

from korbert.pipelines.artifacts.record import Artifact
from korbert.pipelines.reports import index, render
from korbert.pipelines.reports.artifacts import task
from korbert.tasks.token_classification.bio import write_bio
from tests.pipelines.reports.conftest import Reader, change, elements, plain
from tests.pipelines.reports.task_artifacts import KINDS, labelled, several, tagged, write_task


def _story(folder):
    return task.story(Artifact.open(folder))


def _elements(folder):
    return elements(_story(folder))


def _shares(*numbers):
    return tuple(f"{100 * number:.1f} %" for number in numbers)


@pytest.fixture
def mood(tmp_path):
    """An artifact of classification with three labels, two seeds and a baseline."""
    return write_task(tmp_path, "mood", labelled())


def _scores(folder):
    return json.loads((folder / "scores.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", KINDS)
def test_page_of_every_kind_shows_score_and_usage(tmp_path, name):
    folder = write_task(tmp_path, name, KINDS[name]())
    page = render(folder).read_text(encoding="utf-8")
    scores = _scores(folder)
    mean = scores["models"][0][scores["metrics"][0]]["mean"]
    shown = f"{mean:.3f}" if name == "regression" else f"{100 * mean:.1f} %"
    assert f"<dd>{shown}</dd>" in plain(page)
    assert "/somewhere" not in page
    use = task.use(folder)
    assert shlex.split(use.command.replace("{}", "x"))[:3] == ["korbert", "predict", "x"]
    assert ast.parse(use.python.replace("{}", '"x"'))
    for title in ("Scores", "Trainings and baselines", "Training", "Data", "Usage"):
        assert f"<h2>{title}</h2>" in page


def test_scores_are_next_to_baselines_with_both_intervals(mood):
    scores = _scores(mood)
    shown = _elements(mood)
    examples = shown["Scores over examples: macro F1"]
    seeds = shown["Scores over seeds: macro F1"]
    assert [row.label for row in examples.rows] == ["pretrained", "not pretrained", "majority baseline"]
    assert [row.label for row in seeds.rows] == ["pretrained"]  # the others have one seed
    low, high = scores["models"][0]["examples"]
    first = scores["rows"][0]["scores"]["macro_f1"]
    assert plain(examples.rows[0].text) == f"{100 * first:.1f} % ({100 * low:.1f} to {100 * high:.1f})"
    assert all(0 <= row.low <= row.at <= row.high <= 1 for row in (*examples.rows, *seeds.rows))
    said = [row[0] for row in shown["On the same rows"].rows]
    assert len(said) == len(scores["comparisons"]) == 2
    assert said[0].startswith("pretrained (")
    assert "not pretrained (" in said[0]
    assert said[0].replace("not pretrained (", "scratch (") == scores["comparisons"][0]["sentence"]
    rows = shown["All scores"].rows
    trained = ["pretrained 0", "pretrained 1", "not pretrained 0"]
    assert [" ".join(row[:2]) for row in rows] == [*trained, "majority baseline "]
    assert [plain(row[2]) for row in rows] == [f"{100 * row['scores']['macro_f1']:.2f} %" for row in scores["rows"]]


def test_title_claims_a_difference_only_if_it_is_more_than_chance(mood):
    pairs = _scores(mood)["comparisons"]
    pairs[-1] |= {"names": ["pretrained", "majority"], "difference": -0.0312, "more_than_chance": True}
    change(mood / "scores.json", comparisons=pairs)
    assert _story(mood).title == "mood: macro F1 3.1 points below the majority baseline"
    pairs[-1]["more_than_chance"] = False
    change(mood / "scores.json", comparisons=pairs)
    assert _story(mood).title == "mood: no clear difference from the majority baseline"
    change(mood / "scores.json", comparisons=[])
    assert _story(mood).title == "Fine-tuned on mood"


def test_label_scores_equal_those_of_scikit_learn_and_each_confusion_has_examples(mood):
    kind, rows, models = labelled()
    shown = _elements(mood)
    truth = [row["label"] for row in rows]
    predicted = [prediction["label"] for prediction in models["pretrained"][0]]
    measures = precision_recall_fscore_support(truth, predicted, labels=kind.labels)
    wanted = {label: (*_shares(*own), str(of)) for label, *own, of in zip(kind.labels, *measures, strict=True)}
    assert {row[0]: tuple(map(plain, row[1:5])) for row in shown["Scores of 3 labels"].rows} == wanted
    counts = [[int(text) for text, _ in row] for row in shown["Confusion matrix"].cells]
    pairs = list(zip(truth, predicted, strict=True))
    assert counts == [[pairs.count((true, label)) for label in kind.labels] for true in kind.labels]
    for true, label in set(pairs):
        own = [block for title, block in shown.items() if title.startswith(f"{true} predicted as {label} · ")]
        assert len(own) == (true != label)
        for entry in own and own[0].entries:
            assert entry.facts[0] == ("true", true)
            assert entry.facts[1][1].startswith(f"{label} (")
    (errors,) = [block for title, block in shown.items() if title.endswith(" errors")]
    shares = [float(plain(entry.facts[1][1]).split("(")[-1].split()[0]) for entry in errors.entries]
    assert shares == sorted(shares, reverse=True)  # the most confident ones first


def test_many_labels_are_folded_and_have_no_matrix(tmp_path):
    kit = labelled([f"갈래 {number}" for number in range(200)], number=20)
    shown = _elements(folder := write_task(tmp_path, "many", kit))
    assert "Confusion matrix" not in shown
    assert shown["Scores of 200 labels"].folded
    assert any(" predicted as " in title for title in shown)
    assert "<summary>Scores of 200 labels</summary>" in render(folder).read_text(encoding="utf-8")


def test_multi_label_f1_equals_that_of_scikit_learn(tmp_path):
    kind, rows, models = several()
    table = _elements(write_task(tmp_path, "feelings", (kind, rows, models)))["Scores of 3 labels"]
    labels = ([row["label"] for row in rows], [one["labels"] for one in models["pretrained"][0]])
    sides = [[[label in of_row for label in kind.labels] for of_row in side] for side in labels]
    wanted = dict(zip(kind.labels, _shares(*f1_score(*sides, average=None, zero_division=0)), strict=True))
    wanted["놀람"] = "–"  # neither true nor predicted
    assert {label: plain(f1) for label, _, _, f1, *_ in table.rows} == wanted


def test_entities_have_scores_and_errors_by_cause(tmp_path):
    kind, rows, models = tagged()
    shown = _elements(folder := write_task(tmp_path, "ner", (kind, rows, models)))
    gold, predicted = (
        [write_bio(spans, len(row["text"])) for spans, row in zip(side, rows, strict=True)]
        for side in ([row["spans"] for row in rows], models["pretrained"][0])
    )
    report = classification_report(gold, predicted, output_dict=True, zero_division=0)
    columns = ("precision", "recall", "f1-score")
    entities = {name: own for name, own in report.items() if not name.endswith(" avg")}
    wanted = {name: (*_shares(*map(own.get, columns)), str(own["support"])) for name, own in entities.items()}
    assert {row[0]: tuple(map(plain, row[1:5])) for row in shown["Scores of 2 labels"].rows} == wanted
    causes = {bar.label: int(bar.text.split(",")[0]) for bar in shown["Errors by cause"].bars}
    assert causes == {"other ends": 1, "other label": 1, "missed": 1, "invented": 1}
    assert shown["Most frequent confusions"].rows == [("곳", "사람", "1")]
    (missed,) = shown["missed · 1, 1 text shown"].entries
    assert missed.facts == [("true", "이순신 (사람)")]
    assert ("이순신", ["right"]) in missed.passage
    assert missed.passage[0][0] == "… "  # a long text is cut
    (ends,) = shown["other ends · 1, 1 text shown"].entries
    assert ends.passage[:2] == [("세종", ["right", "given"]), ("은", ["given"])]
    assert "&lt;한글&gt;" in render(folder).read_text(encoding="utf-8")


def test_regression_shows_largest_errors_first_and_leaves_out_nan(tmp_path):
    kind, rows, models = KINDS["regression"]()
    folder = write_task(tmp_path, "sts", (kind, rows, models))
    first, *lines = (folder / "predictions.jsonl").read_text().splitlines()
    broken = json.loads(first) | {"predictions": {"pretrained": [math.nan]}}
    (folder / "predictions.jsonl").write_text("\n".join([json.dumps(broken), *lines]))
    shown = _elements(folder)
    (entries,) = [block.entries for block in shown.values() if block.kind == "folded"]
    errors = [abs(float(entry.facts[0][1]) - float(entry.facts[1][1])) for entry in entries]
    assert errors == sorted(errors, reverse=True)
    assert shown["Prediction against target"].kind == "picture"


def test_caveats_are_at_the_top(tmp_path):
    counts = {"train": 100, "valid": 10, "test_in_train": 3}
    folder = write_task(tmp_path, "mood", labelled(), scored_on="valid", counts=counts, note="<b>한 번</b>.")
    lede = _story(folder).lede
    about = "Classification: one of 3 labels (긍정, 부정, 중립 <i>) for a text."
    assert lede.startswith(f"{about} 100 training rows, 10 valid")
    assert "optimistic for the trained models" in lede
    assert "3 scored rows have the same texts as a training row." in lede
    assert lede.endswith("<b>한 번</b>.")
    page = render(folder).read_text(encoding="utf-8")
    assert "&lt;b&gt;한 번&lt;/b&gt;" in page
    assert "macro F1 (validation), pretrained" in page
    assert _elements(folder)["Files and rows read"].rows == [("train.csv: 100 rows",), ("10 rows are held out",)]


def test_undefined_scores_are_dashes(mood, tmp_path):
    scores = _scores(mood)
    for row in scores["rows"]:
        row["scores"] = dict.fromkeys(row["scores"])
    for model in scores["models"]:
        model |= {"macro_f1": None, "accuracy": None, "examples": None}
    change(mood / "scores.json", rows=scores["rows"], models=scores["models"], comparisons=[])
    page = render(mood).read_text(encoding="utf-8")
    assert "<dd>–</dd>" in page
    assert re.search(r"\b(nan|None)\b", Reader(page).text) is None
    index(tmp_path, ["tasks.mood"])


@pytest.mark.parametrize("name", KINDS)
def test_single_row_gives_a_page(tmp_path, name):
    kind, rows, models = KINDS[name]()
    if name == "regression":
        kind = kind.model_copy(update={"metrics": ("f1_at_3",)})
    first = {model: [seed[:1] for seed in seeds] for model, seeds in models.items()}
    render(write_task(tmp_path, name, (kind, rows[:1], first)))
    index(tmp_path, [f"tasks.{name}"])


def test_missing_parts_give_a_page(mood):
    text = (mood / "predictions.jsonl").read_text()
    (mood / "predictions.jsonl").write_text(re.sub(r"0\.\d+", "NaN", text))
    assert "Calibration" not in _elements(mood)
    render(mood)
    for missing in ("metrics", "predictions.jsonl", "model", "run.json"):
        path = mood / missing
        for file in [path] if path.is_file() else path.iterdir():
            file.unlink()
        assert "<h2>Scores</h2>" in render(mood).read_text(encoding="utf-8")


def test_curves_are_of_chosen_hyperparameters_and_trials_in_a_folded_table(mood):
    rows = _scores(mood)["rows"]
    trials = [{"learning_rate": rate, "epoch": 1, "validation_macro_f1": rate} for rate in (3e-4, 1e-5)]
    change(mood / "scores.json", rows=[row | ({"trials": trials} if "trials" in row else {}) for row in rows])
    other = mood / "metrics/pretrained-rate-1e-05-seed-0.jsonl"
    other.write_bytes((mood / "metrics/pretrained-rate-0.0003-seed-0.jsonl").read_bytes())
    shown = _elements(mood)
    runs = [("pretrained", 0), ("pretrained", 1), ("not pretrained", 0)]
    names = [f"{model}, rate 0.0003, seed {seed}" for model, seed in runs]
    assert [name for name, *_ in shown["Validation macro F1"].legend] == names
    tried = shown["Hyperparameters tried, pretrained · 2"]
    assert tried.folded
    assert [row[0] for row in tried.rows] == ["0.0003", "1e-05"]
