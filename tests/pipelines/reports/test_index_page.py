"""The index shows each stage's state and where its page is."""

import json
import re

from pipelines.reports import index, render


def _boxes(page: str) -> dict[str, str]:
    """Stage -> state, from the classes of the boxes."""
    boxes = re.findall(r'<li class="box (\w+)(?: task)?">.*?<h2>(?:<a[^>]*>)?(\w+)', page, flags=re.DOTALL)
    return {stage: state for state, stage in boxes}


def test_the_chain_with_all_states(maker):
    for stage in ("clean", "analyze", "vocab", "shard", "pretrain", "nsmc"):
        maker(stage)
    (maker.recipe / "korquad.partial").mkdir()
    (maker.recipe / "nsmc" / "scores.json").unlink()
    record = json.loads((maker.recipe / "analyze" / "stage.json").read_text())
    maker.write_json(maker.recipe / "analyze" / "stage.json", record | {"digest": "anew"})
    page = index(maker.recipe).read_text(encoding="utf-8")
    assert _boxes(page) == {
        "clean": "done",
        "analyze": "done",
        "vocab": "stale",
        "shard": "stale",
        "pretrain": "done",
        "nsmc": "broken",
        "korquad": "partial",
    }
    assert "<h1>시험</h1>" in page
    assert "analyze changed since" in page
    assert "scores.json: is missing" in page
    assert "5 of 7 stages done; their last runs took 6&nbsp;min" in page.replace("\u00a0", "&nbsp;")


def test_only_stages_of_the_recipe_are_counted_and_shown(maker):
    for stage in ("clean", "analyze", "vocab"):
        maker(stage)
    page = index(maker.recipe, ("clean", "analyze", "vocab", "shard", "pretrain")).read_text(encoding="utf-8")
    assert "3 of 5 stages done" in page
    assert list(_boxes(page)) == ["clean", "analyze", "vocab", "shard", "pretrain"]


def test_an_artifact_that_the_recipe_has_no_more_is_shown_as_such_and_not_counted(maker):
    for stage in ("clean", "nsmc"):
        maker(stage)
    page = index(maker.recipe, ["clean"]).read_text(encoding="utf-8")
    assert "1 of 1 stages done" in page
    assert _boxes(page) == {"clean": "done", "nsmc": "unused"}
    assert "not in the recipe" in page
    assert "78.3" not in page  # its scores are no result of this recipe


def test_a_stage_without_figures_of_its_own_has_a_box(maker):
    page = index(maker.recipe, ["clean", "distill"])
    assert _boxes(page.read_text(encoding="utf-8")) == {"clean": "absent", "distill": "absent"}


def test_links_lead_to_the_pages_that_are_there(maker):
    render(maker("clean"))
    maker("analyze")
    page = index(maker.recipe).read_text(encoding="utf-8")
    assert re.findall(r'href="([^"]*)"', page) == ["clean/report.html"]
    assert (maker.recipe / "clean" / "report.html").is_file()


def test_results_stand_on_top_with_what_they_must_be_seen_with(maker):
    for stage in ("pretrain", "nsmc", "korquad"):
        maker(stage)
    page = index(maker.recipe).read_text(encoding="utf-8").replace("\u00a0", " ")
    head = page[: page.index('<ol class="chain">')]
    assert "78.3 %" in head
    assert "unigram 7.31" in head
    assert "41.3 %" in head


def test_a_recipe_that_has_not_run_has_an_index_too(maker):
    maker.recipe.mkdir()
    page = index(maker.recipe)
    assert set(_boxes(page.read_text(encoding="utf-8")).values()) == {"absent"}
    assert page.read_bytes() == index(maker.recipe).read_bytes()
