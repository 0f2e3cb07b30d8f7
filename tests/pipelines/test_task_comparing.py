"""Artifacts of one task side by side: paired row by row, with intervals, tests, words, and a page."""

import json

import numpy as np
import pytest
from scipy import stats

from korbert.errors import ArtifactError, SettingsError
from korbert.pipelines.experiments.compare_tasks import compare_tasks
from korbert.pipelines.reports.drawing.examples import in_words
from korbert.pipelines.reports.pages.compare import show_tasks, write_page
from korbert.tasks.kinds import KINDS
from tests.pipelines.small_tasks import PARTS, fine_tune, write_table

WORDS = ("영화", "시간", "연기", "음악")
TEXTS = [f"{word} {number}편이 {end}" for number in range(3) for word in WORDS for end in ("좋다", "아깝다")]


@pytest.fixture(scope="module")
def moods(tmp_path_factory, untrained):
    """The same rows learned well with two seeds, and hardly with one."""
    folder = tmp_path_factory.mktemp("moods")
    start = untrained(type_vocab_size=2)
    rows = [[text, "긍정" if text.endswith("좋다") else "부정"] for text in TEXTS]
    base = {"batch_size": 8, "max_length": 32, "threads": 1, "checkpoint_every": 9999, "baselines": False}
    files = dict.fromkeys(PARTS, write_table(folder / "rows.csv", ["text", "label"], rows))
    for name, more in (
        ("well", {"learning_rates": [1e-3, 1e-2], "epochs": 8, "seeds": (0, 1)}),
        ("poor", {"learning_rates": 1e-9, "epochs": 1}),
    ):
        fine_tune("classification", start, folder / name, files, **base, **more)
    return folder / "well", folder / "poor"


def made(folder, rows, predictions, **more):
    """An artifact as fine-tuning leaves it. predictions: name of a model -> each seed's."""
    folder.mkdir(parents=True)
    usual = {"kind": "classification", "metrics": ["accuracy", "macro_f1"], "max_length": 32, "labels": ["a", "b"]}
    facts = [{"name": name, "seed": seed} for name, runs in predictions.items() for seed in range(len(runs))]
    task = {name: value for name, value in (usual | more).items() if value is not None}
    scores = {"task": task, "scored_on": "test", "rows": facts}
    (folder / "scores.json").write_text(json.dumps(scores), encoding="utf-8")
    with (folder / "predictions.jsonl").open("w", encoding="utf-8") as file:
        for number, row in enumerate(rows):
            own = {name: [one[number] for one in runs] for name, runs in predictions.items()}
            file.write(json.dumps({**row, "predictions": own}, ensure_ascii=False) + "\n")
    return folder


def labels(text):
    return [{"label": label, "probabilities": {label: 0.9}} for label in text]


ROWS = [{"text": f"글 {number}", "label": "ab"[number % 2]} for number in range(40)]
RIGHT = "ab" * 20
ONE = "ab" * 18 + "ba" * 2  # 4 wrong
TWO = "ba" * 6 + "ab" * 13 + "ba"  # 14 wrong, 2 of them wrong in ONE, too


def side(folder, predicted, **more):
    """An artifact whose encoder has predicted these labels for ROWS."""
    return made(folder, ROWS, {"pretrained": [labels(predicted)]}, **more)


def test_seeds_of_trained_models_are_compared_row_by_row(moods, tmp_path):
    found = compare_tasks(moods)
    assert [side.name for side in found.sides] == ["well", "poor"]
    assert [model["seeds"] for model in found.scores["models"]] == [2, 1]
    for folder, model in zip(moods, found.scores["models"], strict=True):
        own = json.loads((folder / "scores.json").read_text(encoding="utf-8"))["models"][0]
        assert model["accuracy"] == own["accuracy"]
    (one,) = found.scores["comparisons"]
    means = [model["accuracy"]["mean"] for model in found.scores["models"]]
    assert one["difference"] == pytest.approx(means[0] - means[1])
    assert one["interval"][0] <= one["difference"] <= one["interval"][1]
    assert one["more_than_chance"]
    assert one["sentence"].startswith("well (")
    assert "24 examples, 2 and 1 runs" in one["sentence"]
    page = write_page(tmp_path / "compare.html", show_tasks(found)).read_text(encoding="utf-8")
    assert one["sentence"].replace("<", "&lt;") in page
    assert "well right more often than poor" in page


def test_the_first_is_compared_with_each_and_labels_of_all_sides_count(tmp_path):
    """One side has learned from rows with a label more."""
    more = made(tmp_path / "two", ROWS, {"pretrained": [labels("c" * 20 + RIGHT[20:])]}, labels=["c", "a", "b"])
    found = compare_tasks([side(tmp_path / "one", ONE), more, side(tmp_path / "three", RIGHT)])
    assert [model["accuracy"]["mean"] for model in found.scores["models"]] == [36 / 40, 20 / 40, 1]
    assert [pair["names"] for pair in found.scores["comparisons"]] == [["one", "two"], ["one", "three"]]


@pytest.mark.parametrize("more", [
    {"kind": "embedding", "learns": "scores"}, {"kind": "regression", "mean": 2.5, "deviation": 1.4, "pair": True},
], ids=lambda more: more["kind"])  # fmt: skip
def test_predictions_of_another_spread_differ_as_much(more, tmp_path):
    """A model whose cosines lie between 0.9 and 1 is compared by how it ranks pairs, not by where they lie."""
    rng = np.random.default_rng(0)
    scores = rng.uniform(0, 5, 300)
    good, poor = (scores / 5 + rng.normal(0, noise, 300) for noise in (0.3, 0.5))
    rows = [{"text": f"글 {number}", "pair": "다른 글", "score": score} for number, score in enumerate(scores)]
    more = {"metrics": ["spearman", "pearson"], "labels": None, **more}
    found = []
    for name, cosines in (("wide", poor), ("narrow", 0.95 + poor / 100)):
        sides = [
            made(tmp_path / name / side, rows, {"pretrained": [own.tolist()]}, **more)
            for side, own in (("good", good), ("poor", cosines))
        ]
        found += compare_tasks(sides).scores["comparisons"]
    wide, narrow = found
    assert narrow["sentence"] == wide["sentence"]
    assert narrow["more_than_chance"]
    by_scipy = [stats.spearmanr(scores, own).statistic for own in (good, poor)]
    assert narrow["difference"] == pytest.approx(by_scipy[0] - by_scipy[1], abs=1e-9)


def test_other_rows_are_refused_with_the_first(tmp_path):
    one = side(tmp_path / "one", ONE)
    changed = [{**row, "label": "b"} if number in (4, 6) else row for number, row in enumerate(ROWS)]
    two = made(tmp_path / "two", changed, {"pretrained": [labels(TWO)]})
    said = (
        r'two/predictions\.jsonl: line 5 is \{"label": "b", "text": "글 4"\}, in .*one/predictions\.jsonl it is '
        r'\{"label": "a", "text": "글 4"\}: score both on the same file'
    )
    with pytest.raises(ArtifactError, match=said):
        compare_tasks([one, two])
    for folder, rows, what in (
        ("more", [*ROWS, {"text": "더", "label": "a"}], "is {.*it is absent"),
        ("less", ROWS[: 40 - 1], "is absent"),
    ):
        other = made(tmp_path / folder, rows, {"pretrained": [labels((TWO + "a")[: len(rows)])]})
        with pytest.raises(ArtifactError, match=rf"{folder}/predictions\.jsonl: line 4[01] {what}"):
            compare_tasks([one, other])
    undefined = made(tmp_path / "undefined", [{**row, "id": None} for row in ROWS], {"pretrained": [labels(TWO)]})
    assert len(compare_tasks([one, undefined]).rows) == 40


def test_other_models_than_the_first(tmp_path):
    one = made(tmp_path / "one", ROWS, {"pretrained": [labels(ONE)], "tfidf": [labels(TWO)]})
    two = made(tmp_path / "two", ROWS, {"pretrained": [labels(RIGHT)], "tfidf": [labels(TWO)]})
    assert [side.name for side in compare_tasks([one, two], ["tfidf"]).sides] == ["one", "two"]
    found = compare_tasks([one, two], ["tfidf", "pretrained"])
    assert [side.name for side in found.sides] == ["one/tfidf", "two/pretrained"]
    assert found.scores["comparisons"][0]["difference"] == pytest.approx(-14 / 40)
    same = compare_tasks([one, one], ["pretrained", "tfidf"])
    assert [side.name for side in same.sides] == ["pretrained", "tfidf"]
    for folders, models, said in (
        ([one, two], ["majority"], "model majority: .*one has predictions of pretrained, tfidf"),
        ([one, two, two], ["tfidf", "tfidf"], "model: 2 names for 3 folders"),
        ([one, one], ["tfidf"], "one: its model tfidf is named twice: name another folder or model"),
    ):
        with pytest.raises(SettingsError, match=said):
            compare_tasks(folders, models)


@pytest.mark.parametrize(("more", "said"), [
    ({"kind": "multiple-choice", "metrics": ["accuracy"], "labels": None, "most": 2},
     "kind is classification and multiple-choice"),
    ({"metrics": ["macro_f1"]}, "first metric is accuracy and macro_f1"),
    ({"several": True, "metrics": ["accuracy"]}, "several is False and True"),
])  # fmt: skip
def test_tasks_that_are_not_alike_are_refused(tmp_path, more, said):
    one = side(tmp_path / "one", ONE)
    two = side(tmp_path / "two", TWO, **more)
    with pytest.raises(SettingsError, match=f"one, .*two: have different tasks: {said}: compare artifacts of the same"):
        compare_tasks([one, two])


@pytest.mark.parametrize(("name", "line", "said"), [
    ("predictions.jsonl", "{", "line 41: cannot be read"),
    ("predictions.jsonl", "[]", "line 41: is not an object"),
    ("predictions.jsonl", '{"text": "가", "label": "a"}', "line 41: no predictions in it"),
    ("predictions.jsonl", '{"text": "가", "predictions": {"pretrained": []}}', "line 41 has other seeds"),
    ("predictions.jsonl", '{"text": "가", "predictions": {"pretrained": [1, 2]}}', "line 41 has other seeds"),
    ("scores.json", '{"rows": []}', "has 0 runs of pretrained, predictions.jsonl has 1"),
    ("scores.json", '{"task": {"kind": "multiple-choice"}, "rows": [{"name": "pretrained"}]}',
     "task.metrics: Field required: put the file back as it was written"),
])  # fmt: skip
def test_damaged_files_are_named(tmp_path, name, line, said):
    one = side(tmp_path / "one", ONE)
    two = side(tmp_path / "two", TWO)
    with (two / name).open("a" if name == "predictions.jsonl" else "w", encoding="utf-8") as file:
        file.write(line + "\n")
    with pytest.raises(ArtifactError, match=rf"two/{name}: (?s:.)*{said}"):
        compare_tasks([one, two])
    other = made(tmp_path / "other", ROWS, {"pretrained": [list(range(40))]})  # of another kind
    with pytest.raises(
        ArtifactError, match=r"other/predictions\.jsonl: pretrained: not predictions of a classification"
    ):
        compare_tasks([one, other])


@pytest.mark.parametrize(("kind", "fields", "row", "predictions", "row_scores"), [
    ("token-classification", {"tags": ("O", "B-것", "I-것", "B-곳", "I-곳"), "units": "characters", "stride": 8},
     {"text": "한강 물", "spans": [(0, 2, "곳"), (3, 4, "것")]},
     [[[3, 4, "것"], [0, 2, "곳"]], [[0, 2, "곳"]]], [1, 0]),
    ("multiple-choice", {"most": 2}, {"text": "가", "choices": ["나", "다"], "label": "1"},
     [{"choice": 1}, {"choice": 0}], [1, 0]),
    ("classification", {"labels": ("a", "b"), "several": True}, {"text": "가", "label": ["b", "a"]},
     [{"labels": ["a", "b"]}, {"labels": ["a"]}], [1, 0]),
    ("regression", {"mean": 0, "deviation": 1}, {"text": "가", "score": 3.0}, [2.5, 5.0], [-0.5, -2.0]),
])  # fmt: skip
def test_what_is_right_in_each_kind(kind, fields, row, predictions, row_scores):
    task = KINDS[kind].kind_class(metrics=("accuracy",), max_length=32, **fields)
    assert task.row_scores([row] * 2, predictions).tolist() == row_scores


def test_numbers_are_compared_and_shown(tmp_path):
    task = {"kind": "regression", "metrics": ["pearson"], "mean": 2.0, "deviation": 1.0}
    rows = [{"text": f"글 {number}", "score": number / 4} for number in range(20)]
    near = [row["score"] + 0.1 * (-1) ** number for number, row in enumerate(rows)]
    far = [row["score"] + 0.5 * (-1) ** (number // 2) for number, row in enumerate(rows)]
    one, two = (
        made(tmp_path / name, rows, {"pretrained": [numbers]}, labels=None, **task)
        for name, numbers in (("one", near), ("two", far))
    )
    found = compare_tasks([one, two])
    true = [row["score"] for row in rows]
    assert found.scores["models"][1]["pearson"]["mean"] == pytest.approx(stats.pearsonr(true, far).statistic)
    page = write_page(tmp_path / "compare.html", show_tasks(found)).read_text(encoding="utf-8")
    assert "one closer than two · 20 of 20 rows" in page
    assert "two closer" not in page


@pytest.mark.parametrize(("row", "value", "words"), [
    ({"text": None, "tokens": [*"김구는"]}, [[0, 2, "PS"]], "김구 PS"),
    ({"text": "김구는", "tokens": None}, [[0, 2, "PS"]], "김구 PS"),
    ({}, {"label": "좋", "probabilities": {"좋": 0.9, "나": 0.1}}, "좋 (90.0\N{NO-BREAK SPACE}%)"),
    ({}, {"label": None, "probabilities": {"좋": 0.6, "나": 0.4}}, "none"),
    ({}, {"labels": None, "probabilities": {"좋": 0.6, "나": 0.4}}, "none"),
])  # fmt: skip
def test_predictions_in_words(row, value, words):
    assert in_words(row, value) == words


def test_the_page_has_examples_of_each_side_and_escapes_texts(tmp_path):
    rows = [{**ROWS[0], "text": "<b>글"}, *ROWS[1:]]
    one = made(tmp_path / "one", rows, {"pretrained": [labels(ONE)]})
    two = made(tmp_path / "두<i>", rows, {"pretrained": [labels(TWO)]})
    scores = json.loads((two / "scores.json").read_text(encoding="utf-8"))
    (two / "scores.json").write_text(json.dumps({**scores, "scored_on": "valid"}), encoding="utf-8")
    found = compare_tasks([one, two])
    said = "두<i>: scored on validation rows, which also chose its epoch: its score is optimistic"
    assert found.notes() == [said]
    page = write_page(tmp_path / "compare.html", show_tasks(found)).read_text(encoding="utf-8")
    assert "one right, 두&lt;i&gt; wrong · 12 of 40 rows" in page
    assert "두&lt;i&gt; right, one wrong · 2 of 40 rows" in page
    assert "&lt;b&gt;글" in page
    assert "<b>글" not in page
    assert "a (90.0" in page
    assert "src=" not in page


def test_the_command(tmp_path, command):
    one = made(tmp_path / "one", ROWS, {"pretrained": [labels(ONE)], "tfidf": [labels(TWO)]})
    two = made(tmp_path / "[bold]두", ROWS, {"pretrained": [labels(TWO)], "tfidf": [labels(TWO)]})
    page = tmp_path / "compare.html"
    out = command("compare", one, two, "--page", page).out
    assert "one (0.9000) scores higher than [bold]두 (0.6500); this is more than chance" in out.replace("\n", " ")
    assert "Scores on 40 rows" in out
    assert f"page: {page}" in out
    assert page.is_file()
    found = json.loads(command("compare", one, two, "--json", "--model", "tfidf").out)
    assert (found["kind"], found["rows"], found["metrics"]) == ("classification", 40, ["accuracy", "macro_f1"])
    assert [side["model"] for side in found["sides"]] == ["tfidf", "tfidf"]
    assert found["comparisons"][0]["p_value"] == 1.0
    other = tmp_path / "pretrain"
    other.mkdir()
    err = command("compare", one, other, code=2).err
    assert f"{one} is an artifact of a task and {other} is none: compare tasks, or pretraining runs" in err
    missing = tmp_path / "missing"
    assert f"{missing}: no such folder: check its name" in command("compare", one, missing, code=2).err
    assert "--model is for artifacts of tasks" in command("compare", other, other, "--model", "tfidf", code=2).err
