"""benchmarks/results/: RESULTS.md is written from it, and what the READMEs and the model card quote stands in it."""

import json
import re
from pathlib import Path

import pytest

from benchmarks import record, tables

ROOT = Path(__file__).resolve().parent.parent
BENCHMARKS = ROOT / "benchmarks"
RESULTS = tables.read_results()
README_ROWS = (  # the files of results/ that the figures of each row of the READMEs' table come from
    ["demo", "third-edition"],
    ["demo", "third-edition"],
    ["demo", "third-edition"],
    ["demo", "third-edition", "box-8-bits"],
    ["demo", "tasks"],
    ["demo", "tasks", "third-edition"],
    ["demo", "third-edition", "box-8-bits"],
    ["third-edition", "entities-teachers"],
    ["search-model"],
    ["search-model"],
    ["search-model"],
    ["demo", "third-edition", "second-edition", "first-edition"],
)
CARD = ["card-scores", "card-noise", "biases-masks", "biases-reviews"]
PEERS = ("| DistilKoBERT", "| KoELECTRA", "| KoBERT")  # published by others

_FIGURE = re.compile(r"(?<![A-Za-z]-)(?<![A-Za-z\d.,])\d[\d,.]*\d")  # not those of names, as in H200 or AVX-512


def figures(text):
    """Numbers of two digits or more; smaller ones count seeds, layers and cores."""
    return set(_FIGURE.findall(text))


def measured(names):
    return set().union(*(figures(json.dumps(RESULTS[name]["tables"])) for name in names))


def rows_of(page, heading):
    """The lines of the tables in a section, without their heads."""
    text = (ROOT / page).read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    tables_of_section = re.findall(r"^\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    return "".join(tables_of_section).splitlines()


def test_the_page_is_what_make_results_writes():
    written = (BENCHMARKS / "RESULTS.md").read_text(encoding="utf-8")
    assert written == tables.page(RESULTS)
    assert len(written.splitlines()) <= 250


def test_notes_are_short():
    notes = {path.name: path.read_text(encoding="utf-8") for path in (BENCHMARKS / "notes").iterdir()}
    assert {result["note"] for result in RESULTS.values()} - {None} == notes.keys()
    assert [name for name, text in notes.items() if len(text.splitlines()) > 10] == []


@pytest.mark.parametrize(("page", "heading"), [("README.md", "Results"), ("README.ko.md", "결과")])
def test_figures_of_the_readmes_are_measured(page, heading):
    rows = rows_of(page, heading)
    assert len(rows) == len(README_ROWS)
    for row, names in zip(rows, README_ROWS, strict=True):
        assert figures(row) - measured(names) - {"50"} == set(), row  # 50 %: by chance


@pytest.mark.parametrize("heading", ["Scores", "Biases"])
def test_figures_of_the_model_card_are_measured(heading):
    ours = [row for row in rows_of("korbert/box/README.md", heading) if not row.startswith(PEERS)]
    assert figures("\n".join(ours)) - measured(CARD) == set()


def test_a_benchmark_keeps_its_figures(tmp_path, monkeypatch):
    words = ["/bin/python", "-m", "benchmarks.speed.shard", "/a/morphemes", "--record", str(tmp_path)]
    monkeypatch.setattr("sys.orig_argv", words)
    record.write(tmp_path, "shard", [record.table("Speed", ["what", "figure"], [["one", 1.5]])])
    kept = json.loads((tmp_path / "shard.json").read_text(encoding="utf-8"))
    assert kept["command"] == "python -m benchmarks.speed.shard morphemes"
    assert kept["tables"] == [{"title": "Speed", "columns": ["what", "figure"], "rows": [["one", "1.5"]]}]
    assert kept.keys() == RESULTS["shard"].keys()
