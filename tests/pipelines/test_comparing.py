"""Runs side by side: what is read of them, what is said where they do not compare, and the page."""

import json

import pytest

from korbert.errors import ArtifactError, SettingsError
from korbert.pipelines.experiments.compare_pretraining import difference, open_runs
from korbert.pipelines.reports.pages.compare import show_runs, write_page
from tests.pipelines.reports.conftest import write_json, write_lines


def made(recipe, *, steps=40, loss=9.0, seconds=1.0, vocabulary=(4000, "a" * 64), finished=True, unigram=7.0):
    """A run that loses 0.1 nat in 10 steps, which take `seconds` and have 1,000 pieces."""
    folder = recipe / ("pretrain" if finished else "pretrain.partial")
    points = range(10, steps + 1, 10)
    heldout = {"kind": "heldout", "mlm_count": 50, "unigram_loss": unigram}
    figures = [{"step": s, "pieces": 100 * s, "mlm_loss": loss - s / 100, "mlm_accuracy": s / 1000} for s in points]
    write_lines(folder / "metrics.jsonl", [heldout | one for one in figures])
    timing = [{"kind": "train", "step": s, "seconds": seconds, "pieces_per_second": 1000 / seconds} for s in points]
    write_lines(folder / "timing.jsonl", [{"kind": "start", "step": 0}, *timing])
    size, digest = vocabulary
    place = folder / "model" if finished else recipe / "vocab"
    write_json(place / "tokenizer" / "korbert_tokenizer.json", {"vocab_size": size, "digest": digest})
    write_json(recipe / "clean" / "stage.json", {"stage": "clean"})
    if finished:
        write_json(folder / "scores.json", {"parameters": 1_250_000})
    return folder


def shown(folders):
    """Title of each table -> its rows."""
    return {
        table.title.replace("\u00a0", " "): [[cell.replace("\u00a0", " ") for cell in row] for row in table.rows]
        for table in show_runs(open_runs(folders)).tables
    }


def test_runs_are_compared_at_equal_time_and_at_equal_pieces(tmp_path):
    fast = made(tmp_path / "fast", steps=60, loss=9.0, seconds=1.0)
    slow = made(tmp_path / "slow", steps=40, loss=8.9, seconds=2.0)
    found = shown([fast, slow])
    fast_size, slow_size = found["Runs"]
    assert fast_size == ["fast", "1.25 M", "4,000", "1,000", "finished"]
    assert slow_size == ["slow", "1.25 M", "4,000", "500", "finished"]
    fast_last, slow_last = found["Last evaluation of each run"]
    assert fast_last == ["fast", "60", "6,000", "6.0 s", "8.400", "6.0 %"]
    assert slow_last == ["slow", "40", "4,000", "8.0 s", "8.500", "4.0 %"]
    assert found["At equal time: 6.0 s"] == [["fast", "8.400", "6.0 %"], ["slow", "8.600", "3.0 %"]]
    assert found["At equal pieces: 4,000"] == [["slow", "8.500", "4.0 %"], ["fast", "8.600", "4.0 %"]]
    assert difference(open_runs([fast, slow])) == ""


@pytest.mark.parametrize(
    ("one", "two", "rows"),
    [
        ({"steps": 30, "seconds": 1.5}, {"steps": 60}, [["two", "8.550", "4.5 %"], ["one", "8.700", "3.0 %"]]),
        ({"steps": 10}, {"steps": 20, "seconds": 9.0}, [["one", "8.900", "1.0 %"], ["two", "–", "–"]]),
    ],
    ids=["between two evaluations", "before the first"],
)
def test_figures_at_equal_time_lie_on_a_line(tmp_path, one, two, rows):
    found = shown([made(tmp_path / "one", **one), made(tmp_path / "two", **two)])
    assert next(table for title, table in found.items() if title.startswith("At equal time")) == rows


@pytest.mark.parametrize(("two", "said"), [
    ({"vocabulary": (8000, "b" * 64)}, "These runs have vocabularies of different sizes: losses"),
    ({"vocabulary": (4000, "b" * 64)},
     "These runs have different tokenizers: losses and accuracies are not comparable."),
    ({"unigram": 7.5}, "These runs were evaluated on different held-out rows"),
])  # fmt: skip
def test_what_does_not_compare_is_said(tmp_path, two, said):
    runs = open_runs([made(tmp_path / "one"), made(tmp_path / "two", **two)])
    assert difference(runs).startswith(said)
    assert said in write_page(tmp_path / "compare.html", show_runs(runs)).read_text("utf-8")


def test_a_run_that_goes_on_is_read_as_far_as_it_is_written(tmp_path):
    one = made(tmp_path / "one")
    two = made(tmp_path / "two", finished=False)
    with (two / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"kind": "heldout", "st')
    found = shown([tmp_path / "one", tmp_path / "two"])
    assert found["Runs"][1] == ["two/pretrain.partial", "–", "4,000", "1,000", "not finished"]
    (two / "timing.jsonl").unlink()  # without times, by pieces
    assert list(shown([one, two])) == ["Runs", "Last evaluation of each run", "At equal pieces: 4,000"]
    write_page(tmp_path / "compare.html", show_runs(open_runs([one, two])))


@pytest.mark.parametrize(("folders", "names"), [
    ("a/tiny b/tiny", "a b"), ("a/tiny a/wide b/tiny", "a/tiny a/wide b/tiny"), ("a/tiny tiny", None),
    ("x/deep/tiny y/deep/tiny y/other/wide", "x/deep/tiny y/deep/tiny y/other/wide"), ("a/one a/two", "one two"),
])  # fmt: skip
def test_names_are_what_tells_runs_apart(tmp_path, folders, names):
    found = [run.name for run in open_runs([made(tmp_path / folder) for folder in folders.split()])]
    assert len(set(found)) == len(found)
    assert names is None or found == names.split()


PLACE = r"name a folder such as artifacts/RECIPE/pretrain, pretrain\.partial, or models/mood"


@pytest.mark.parametrize(("folders", "error", "said"), [
    ("one", SettingsError, "1 run to compare: name at least two"),
    ("one/pretrain one", SettingsError, "one: is named twice: name different runs"),
    ("one two", ArtifactError, "no held-out figures yet: wait for the first evaluation"),
    ("one one/clean", ArtifactError, f"is an artifact of clean: {PLACE}"),
    ("one one/nowhere", ArtifactError, f"is absent: {PLACE}"),
    ("one .", ArtifactError, f"is not a pretraining run: {PLACE}"),
])  # fmt: skip
def test_what_is_no_run_is_named(tmp_path, folders, error, said):
    made(tmp_path / "one")
    made(tmp_path / "two", steps=0)
    with pytest.raises(error, match=said):
        open_runs([tmp_path / name for name in folders.split()])


@pytest.mark.parametrize(("name", "line"), [
    ("metrics.jsonl", "{"), ("metrics.jsonl", "[]"), ("metrics.jsonl", '{"kind": "heldout", "step": 50}'),
    ("timing.jsonl", '{"kind": "train", "step": 50, "pieces_per_second": 1}'),
])  # fmt: skip
def test_damaged_lines_are_named(tmp_path, name, line):
    one = made(tmp_path / "one")
    two = made(tmp_path / "two")
    number = len((two / name).read_text(encoding="utf-8").splitlines()) + 1
    with (two / name).open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    with pytest.raises(ArtifactError, match=rf"two/pretrain/{name}: line {number}: .*: rebuild this artifact"):
        show_runs(open_runs([one, two]))


def test_the_command_prints_tables_and_writes_a_page(tmp_path, command):
    one = made(tmp_path / "one")
    two = made(tmp_path / "[bold]두<b>")
    page = tmp_path / "compare.html"
    said = command("compare", one, two, "--html", page).out
    assert "At equal time" in said
    assert "[bold]두<b>" in said
    text = page.read_text(encoding="utf-8")
    assert "[bold]두&lt;b&gt;" in text
    assert text.count("<svg") == 2
    assert "src=" not in text
    command("compare", one, two, "--page", page)  # its name before
    printed = json.loads(command("compare", one, two, "--json").out)
    assert printed["kind"] == "pretraining"
    assert [run["folder"] for run in printed["runs"]] == [str(one), str(two)]
    assert {len(run["pieces"]) for run in printed["runs"]} == {len(run["heldout"]) for run in printed["runs"]}
    command("compare", one, code=2)
