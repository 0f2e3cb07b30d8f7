"""The index shows each stage's state, its figures and where its page is."""

import json
import re

import pytest

from korbert.pipelines.reports import index, render
from korbert.pipelines.stages.table import STAGES
from tests.pipelines.reports.conftest import change, plain
from tests.pipelines.reports.task_artifacts import KINDS, write_task


def _boxes(page):
    """Stage -> state, from the classes of the boxes."""
    boxes = re.findall(r'<li class="box (\w+)(?: task)?">.*?<h2>(?:<a[^>]*>)?(\w+)', page, flags=re.DOTALL)
    return {stage: state for state, stage in boxes}


def test_every_stage_has_a_box_with_its_state(maker):
    for stage in ("clean", "analyze", "vocab", "shard", "pretrain", "nsmc"):
        maker(stage)
    (maker.recipe / "korquad.partial").mkdir()
    (maker.recipe / "nsmc" / "scores.json").unlink()
    change(maker.recipe / "analyze" / "stage.json", digest="anew")
    render(maker("clean"))
    stages = ["clean", "analyze", "vocab", "shard", "pretrain", "nsmc", "korquad"]
    page = plain(index(maker.recipe, stages).read_text(encoding="utf-8"))
    assert re.findall(r'href="([^"]*)"', page) == ["clean/report.html"]  # the only page that there is
    assert _boxes(page) == {
        "clean": "done", "analyze": "done", "vocab": "stale", "shard": "stale", "pretrain": "done", "nsmc": "broken",
        "korquad": "partial",
    }  # fmt: skip
    assert "<h1>시험</h1>" in page
    assert "analyze changed since" in page
    assert "scores.json: is missing" in page
    assert "5 of 7 stages done; their last runs took 6 min" in page


def test_states_are_shown_in_korean_and_styled_in_english(maker, monkeypatch):
    maker("clean")
    monkeypatch.setenv("KORBERT_LANG", "ko")
    page = index(maker.recipe, ["clean", "analyze"]).read_text(encoding="utf-8")
    assert _boxes(page) == {"clean": "done", "analyze": "absent"}
    assert re.findall(r'<p class="state">(\w+)', page) == ["완료", "없음"]


@pytest.mark.parametrize(("made", "stages", "states"), [
    (["clean", "vocab"], ["clean", "vocab", "shard"], {"clean": "done", "vocab": "stale", "shard": "absent"}),
    (["clean", "nsmc"], ["clean"], {"clean": "done"}),
    ([], ["clean", "distill"], {"clean": "absent", "distill": "absent"}),  # one without a page module
])  # fmt: skip
def test_only_stages_of_the_recipe_are_counted(maker, made, stages, states):
    maker.recipe.mkdir()
    for stage in made:
        maker(stage)
    page = index(maker.recipe, stages).read_text(encoding="utf-8")
    assert f"{len(set(made) & set(stages))} of {len(stages)} stages done" in page
    assert _boxes(page) == states
    assert "78.3" not in page  # scores outside the recipe are no result of it
    assert page == index(maker.recipe, stages).read_text(encoding="utf-8")


def test_results_of_tasks_are_in_one_table_on_top(maker):
    for stage in ("pretrain", "nsmc", "korquad"):
        maker(stage)
    for name in ("classification", "regression"):
        write_task(maker.recipe, name, KINDS[name]())
    stages = (*STAGES, "tasks.classification", "tasks.regression")
    page = plain(index(maker.recipe, stages).read_text(encoding="utf-8"))
    head = page[: page.index('<ol class="chain">')]
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(<td.*?)</tr>", head)]
    main = json.loads((maker.recipe / "tasks.classification" / "scores.json").read_text(encoding="utf-8"))["models"][0]
    mean, deviation = (100 * main["macro_f1"][key] for key in ("mean", "deviation"))
    assert cells[0] == ["nsmc", "accuracy", "78.3 %", "76.3 to 80.3 %", "80.2 % (TF-IDF)", "2,000"]
    assert cells[1] == ["korquad", "F1", "41.3 %", "39.3 to 43.3 %", "11.0 % (nearest sentence)", "30"]
    assert [cells[2][n] for n in (0, 2, 5)] == ["classification", f"{mean:.1f} % ± {deviation:.1f} (2 seeds)", "60"]
    assert (cells[3][0], cells[3][4]) == ("regression", "")  # the mean has no correlation
