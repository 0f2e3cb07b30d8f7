"""The page from disk in a real browser: with mouse and keyboard, on a phone, in dark mode."""

import json
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest

from korbert.pipelines.reports.look.data import look_data
from korbert.pipelines.reports.look.page import page
from korbert.vectors.attention import attention
from tests.pipelines.look.conftest import PAIR, TEXT

ROOT = Path(__file__).resolve().parents[3]
HOSTILE = '</script><script>window.hacked = 1</script><img src=x onerror="window.hacked = 2"> \u202e "'
ROOMS = ("attention", "neurons", "guesses", "pieces", "vectors")


@pytest.fixture(scope="module")
def seen(filler):
    return attention(filler.network, filler.tokenizer, TEXT, PAIR)


@pytest.fixture(scope="module")
def data(filler):
    return look_data(filler, TEXT, PAIR, whole=True)


def written(folder, data):
    """The address of a page."""
    path = folder / "look.html"
    path.write_text(page(data), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def on_disk(data, tmp_path_factory):
    return written(tmp_path_factory.mktemp("page"), data)


def joined(weights, groups):
    """The weights between units, (.., G, G): attention to a unit is the sum over its pieces, attention from a unit the
    mean over its pieces (Clark et al. 2019, 4.1)."""
    member = np.eye(groups.max() + 1)[groups]  # (T, G)
    return (member / member.sum(axis=0)).T @ (weights @ member)


def rollout(weights):
    """How much each piece of a layer depends on each piece of the text, (L, T, T): heads are averaged, and the residual
    stream counts as half (Abnar and Zuidema 2020, 3)."""
    passed = 0.5 * weights.mean(axis=1) + 0.5 * np.eye(weights.shape[-1])
    return np.stack(list(accumulate(passed, lambda below, layer: layer @ below)))


def test_the_script_computes_the_same_as_python(window, data, seen):
    tab = window().tab
    tab.goto("about:blank")
    script = ROOT / "pipelines" / "reports" / "templates" / "look" / "data.js"
    tab.add_script_tag(content=script.read_text(encoding="utf-8"))
    found = tab.evaluate(
        """async (given) => {
            const data = await opened(given), units = ["piece", "morpheme", "eojeol"];
            const heads = units.map((unit) => Array.from(headOf(data, 1, 1, unit)));
            return [heads, units.map((unit) => Array.from(rolloutOf(data, 1, unit)))];
        }""",
        json.loads(json.dumps(data)),
    )
    for unit, head, passed in zip(("piece", "morpheme", "eojeol"), *found, strict=True):
        groups = seen.groups(unit)
        np.testing.assert_allclose(head, joined(seen.weights[1, 1], groups).ravel(), atol=0.006)
        np.testing.assert_allclose(passed, joined(rollout(seen.weights)[1], groups).ravel(), atol=0.006)
    assert tab.evaluate("shown('가\\u202e\\ud800\\n')") == "가\\u202e\\ud800\n"
    assert tab.evaluate("slice('👍🏻가나', 2, 3)") == "가"


@pytest.mark.parametrize(("width", "scheme"), [
    (375, "dark"), (1280, "light"), pytest.param(375, "light", marks=pytest.mark.slow),
    pytest.param(1280, "dark", marks=pytest.mark.slow),
])  # fmt: skip
def test_every_view_fits_phone_and_desktop_in_light_and_dark(window, on_disk, width, scheme):
    one = window(width=width, scheme=scheme)
    tab = one.open(on_disk)
    assert tab.locator("#texts").inner_text().split("\n") == [f"A{TEXT}", f"B{PAIR}"]
    assert "do not explain" in tab.locator("#room").inner_text()
    assert tab.get_by_role("tab").all_inner_texts() == [name.capitalize() for name in ROOMS]
    for name in ROOMS:
        tab.get_by_role("tab", name=name.capitalize()).click()
        tab.wait_for_timeout(50)
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        assert tab.get_by_role("tab", selected=True).inner_text() == name.capitalize()
    tab.get_by_role("tab", name="Attention").click()
    tab.get_by_role("radio", name="Matrix").click()
    tab.wait_for_selector(".matrix-holder canvas")
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    paper = tab.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert paper == ("rgb(253, 252, 250)" if scheme == "light" else "rgb(21, 23, 26)")
    assert {url.split("#")[0] for url in one.asked} == {on_disk}


def test_a_click_on_a_head_changes_the_lines_and_the_address(window, on_disk):
    one = window()
    tab = one.open(on_disk)
    before = one.lines()
    tab.get_by_role("button", name="layer 2, head 1").click()
    assert tab.get_by_role("heading", name="Layer 2, head 1").is_visible()
    after = one.lines()
    assert after != before
    tab.get_by_role("radio", name="A to B").click()
    tab.get_by_role("radio", name="Eojeols").click()
    tab.locator(".units.from button", has_text="학교에").click()
    tab.mouse.move(0, 0)
    kept = one.lines()
    assert kept not in (before, after)
    tab.locator("#copy").click()
    tab.get_by_text("Copied").wait_for()
    link = tab.evaluate("navigator.clipboard.readText()")
    assert link == tab.url
    again = window()
    other = again.open(link)
    assert other.get_by_role("heading", name="Layer 2, head 1").is_visible()
    assert other.get_by_role("button", name="학교에").get_attribute("aria-pressed") == "true"
    assert again.lines() == kept


def test_the_readout_names_what_a_unit_attends_to(window, on_disk, seen):
    """In words, for screen readers; by direction."""
    labels = seen.labels("eojeol")
    weights = joined(seen.weights[1, 0], seen.groups("eojeol"))
    place = labels.index("친구를")
    tab = window().open(f"{on_disk}#layer=2&unit=eojeol")
    tab.get_by_role("button", name="친구를").focus()
    readout = tab.locator(".readout")
    best = int(weights[place].argmax())
    assert readout.inner_text().startswith(
        f"친구를 attends most to {labels[best]}\u00a0{round(100 * weights[place, best])}"
    )
    assert best > labels.index("[SEP]")
    tab.get_by_role("radio", name="Within each").click()
    tab.get_by_role("button", name="친구를").focus()
    best = int(weights[place, : labels.index("[SEP]") + 1].argmax())
    assert readout.inner_text().startswith(f"친구를 attends most to {labels[best]}\u00a0")
    tab.locator(".units.to span").nth(place).hover()
    assert readout.inner_text().startswith("친구를 is attended to most by")


def test_everything_works_by_keyboard(window, on_disk):
    tab = window().open(on_disk)
    tab.get_by_role("button", name="layer 1, head 1").focus()
    for key in ("ArrowRight", "ArrowDown"):
        tab.keyboard.press(key)
    assert tab.get_by_role("heading", name="Layer 2, head 2").is_visible()
    assert tab.evaluate("document.activeElement.getAttribute('aria-label')") == "layer 2, head 2"
    tab.get_by_role("radio", name="Pieces").focus()
    tab.keyboard.press("ArrowRight")
    assert tab.get_by_role("radio", name="Morphemes").get_attribute("aria-checked") == "true"
    tab.locator(".units.from button").first.focus()
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("Enter")
    assert tab.url.endswith("from=2")
    assert tab.evaluate("document.activeElement.innerText") == "나"
    tab.keyboard.press("Escape")
    assert "from" not in tab.url
    tab.get_by_role("tab", name="Attention").focus()
    tab.keyboard.press("ArrowRight")
    assert tab.get_by_role("tab", selected=True).inner_text() == "Neurons"
    assert tab.evaluate("document.activeElement.id") == "tab-neurons"


def test_neurons_add_up_to_the_weight(window, on_disk, seen):
    place = seen.labels("piece").index("학교")
    tab = window().open(f"{on_disk}#room=neurons&layer=2&head=2&from={place + 1}&to=4")
    product = float(seen.queries[1, 1, place] @ seen.keys[1, 1, 3])
    words = tab.locator(".sum").inner_text().replace("\u2212", "-").replace(";", "").split()
    assert float(words[words.index("to") + 1]) == pytest.approx(product, abs=0.05 + 0.02 * abs(product))
    share = seen.weights[1, 1, place, 3]
    assert float(words[-2].strip("<\u00a0%")) / 100 == pytest.approx(share, abs=0.011)
    tab.locator(".all-keys button").nth(5).click()
    assert "to=6" in tab.url


def test_a_click_puts_a_mask_and_the_guesses_show(window, on_disk, data):
    tab = window().open(f"{on_disk}#room=guesses")
    place = data["units"]["piece"]["labels"].index("학교")
    tab.get_by_role("button", name="학교").click()
    assert tab.locator(".piece[aria-pressed=true]").inner_text() == "[MASK]"
    shown = [line.inner_text().split("\n")[0] for line in tab.locator(".guess-panel li").all()]
    assert shown == [name for name, _ in data["guesses"][place]["best"]]
    assert f"mask={place + 1}" in tab.url


def test_text_never_runs(window, filler, tmp_path):
    found = look_data(filler, HOSTILE, HOSTILE, whole=True)
    found["prediction"] = {"label": HOSTILE, "probabilities": {HOSTILE: 0.75, "<i>": 0.25}}
    found["missing"]["label"] = found["model"]["name"] = HOSTILE
    odd = "#room=%3Cimg%20src=x%20onerror=alert(1)%3E&layer=99999&head=0&from=abc&unit=<b>"
    tab = window().open(written(tmp_path, found) + odd)
    assert tab.locator(".verdict").inner_text() == f"{HOSTILE} 75\u00a0%".replace("\u202e", "\\u202e")
    for name in ROOMS:
        tab.get_by_role("tab", name=name.capitalize()).click()
        tab.wait_for_timeout(50)
        assert tab.locator("img").count() == 0
    assert "<script>window.hacked = 1</script>" in tab.locator("#texts").inner_text()
    assert "\\u202e" in tab.locator("#texts").inner_text()
    assert tab.evaluate("window.hacked") is None


def test_missing_parts_are_explained(window, data, tmp_path):
    without = {key: value for key, value in data.items() if key != "neurons"}
    tab = window().open(written(tmp_path, without | {"missing": {"neurons": "<i>left out</i>"}}))
    assert "Neurons" not in tab.get_by_role("tab").all_inner_texts()
    assert tab.get_by_text("<i>left out</i>").is_visible()


def test_attributions_of_a_label_are_shown(window, classifier, tmp_path):
    tab = window().open(written(tmp_path, look_data(classifier, TEXT)))
    best = classifier.predict(TEXT)
    assert f"log odds of {best.label} ({round(100 * max(best.probabilities.values()))}" in (
        tab.locator("#room").inner_text()
    )
    assert tab.locator(".strip", has_text="label").locator("canvas").is_visible()


SENTENCE = "세종은 1443년에 👍🏻 한글을 만들었다."
SPANS = [{"start": 0, "end": 2, "label": "PS"}, {"start": 4, "end": 9, "label": "DT"}]
PREDICTIONS = {  # what the model says -> what stands in large type, and in bars below
    "label": ({"label": "긍정", "probabilities": {"부정": 0.12, "긍정": 0.88}}, "긍정 88\u00a0%", ["긍정", "부정"]),
    "labels": ({"labels": ["가", "나"], "probabilities": {"가": 0.9, "나": 0.6}}, "가, 나", ["가", "나"]),
    "number": ({"prediction": 3.14159}, "3.14", []),
    "cosine": ({"cosine": -0.5}, "\u22120.50 cosine of both texts", []),
    "gap": ({"gaps": [[{"piece": "날씨", "probability": 0.4}, {"piece": "기분", "probability": 0.2}]]},
            "날씨 40\u00a0%", ["날씨", "기분"]),
    "nothing": ({"spans": []}, "Nothing found", []),
}  # fmt: skip


def test_the_prediction_comes_first(window, filler, tmp_path):
    one = window(width=390)
    data = look_data(filler, SENTENCE)
    for name, (prediction, large, bars) in PREDICTIONS.items():
        tab = one.open(written(tmp_path, data | {"prediction": prediction}))
        assert tab.locator(".verdict").inner_text().strip() == large, name
        assert tab.locator("#prediction li > span:first-child").all_inner_texts() == bars
        assert tab.locator(".verdict").bounding_box()["y"] < tab.locator("#texts").bounding_box()["y"]
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), name


def test_entities_are_marked_in_the_text_and_slots_listed(window, filler, tmp_path):
    data = look_data(filler, SENTENCE)
    tab = window().open(written(tmp_path, data | {"prediction": {"spans": SPANS}}))
    assert tab.locator("mark.entity").all_inner_texts() == ["세종PS", "1443년DT"]
    assert tab.locator("#texts").inner_text() == SENTENCE.replace("세종", "세종PS").replace("1443년", "1443년DT")
    slots = {"언제": {"value": "1443년", "start": 4, "end": 9}, "어디": None, "누구": "any"}
    tab = window().open(written(tmp_path, data | {"prediction": {"slots": slots}}))
    assert tab.locator("table.slots td").all_inner_texts() == ["언제", "1443년", "어디", "", "누구", "any"]


def test_a_reader_answers_in_large_type_and_in_the_context(window, reader, tmp_path):
    question = "한글은 언제 만들어졌나?"
    tab = window().open(written(tmp_path, look_data(reader, question, SENTENCE)))
    answer = reader.answer(question, SENTENCE).answer
    assert tab.locator(".verdict b").inner_text() == answer != ""
    assert "".join(tab.locator("mark.answer").all_inner_texts()) == answer
    assert tab.locator(".passage").inner_text() == SENTENCE
    written(tmp_path, look_data(reader, question))
    tab.reload()
    tab.locator("#prediction").get_by_text("give one that holds the answer").wait_for()
