"""The page that a service delivers, in a real browser: it requests its data."""

from typing import Any

import pytest

from korbert.pipelines.reports.look.data import look_data
from korbert.pipelines.reports.look.page import page
from tests.pipelines.look.conftest import PAIR, TEXT


class Service:
    """A fake of the service. operations, index: what it offers. token: that it requires. asked: the requests so far."""

    def __init__(self, filler):
        self.operations = ["attention", "fill"]
        self.index = True
        self.token = ""
        self.status = "ready"
        self.kind = "pretraining"
        self.hit = {"id": "b1", "passage": "비슷한 <b>문장</b>", "score": 0.03, "rank_vectors": 1, "rank_words": None,
                    "score_vectors": 0.9, "score_words": None, "fields": {}}  # fmt: skip
        self.asked: list[tuple[str, Any]] = []
        self.filler = filler
        self.address = "http://127.0.0.1:8000/"

    @property
    def rows(self):
        """What a file holds."""
        return [
            {"line": 1, "text": "정말 좋다", "fields": {"no": "7", "text": "정말 좋다", "label": "?"}},
            {"line": 2, "error": "is a number", "fields": {"no": "8", "text": "3"}},
            {"line": 3, "text": "", "fields": {"no": "9", "text": None}},
        ]

    def serve(self, route):
        """Answers a request of the browser."""
        path = route.request.url.removeprefix(self.address)
        if path == "":
            route.fulfill(body=page(None), content_type="text/html; charset=utf-8")
        elif self.token and path != "health" and route.request.headers.get("authorization") != f"Bearer {self.token}":
            route.fulfill(status=401, json={"error": {"message": "the token is missing or wrong"}})
        else:
            code, found = self.answer(path, route.request.post_data_json)
            route.fulfill(status=code, json=found)

    def answer(self, route, body):
        self.asked.append((route, body))
        if route == "health":
            model = {"name": "small", "kind": self.kind, "operations": self.operations, "reads": ["text"]}
            return 200, {"status": self.status, "models": [model], "index": self.index}
        if route == "attention" and "길다" in body["text"]:
            return 413, {"error": {"message": "text has 600 pieces, the model reads 512: shorten it"}}
        if route == "attention":
            return 200, look_data(self.filler, body["text"], body.get("pair"))
        if route == "rows":
            return 200, {"model": "small", "data": self.rows}
        if route == "predict":
            label = {"label": "긍정", "probabilities": {"긍정": 0.9, "부정": 0.1}}
            none = {"label": None, "probabilities": {}, "why": "the text is empty"}
            return 200, {"model": "small", "data": [label if row["text"] else none for row in body["input"]]}
        if route == "fill":
            gaps = [[vars(one) for one in gap] for gap in self.filler.fill(body["input"])]
            return 200, {"model": "small", "data": [{"gaps": gaps}]}
        return 200, {"data": [{"hits": [self.hit]}]}


@pytest.fixture
def service(filler):
    return Service(filler)


@pytest.fixture
def window(window, service):
    """Tabs whose requests to the address of the service get its answers."""

    def new(**how):
        made = window(**how)
        made.context.route(f"{service.address}**", service.serve)
        return made

    return new


def test_a_text_is_entered_and_its_link_shared(window, service):
    one = window()
    tab = one.tab
    tab.goto(f"{service.address}#job=inside")
    tab.get_by_label("Text", exact=True).fill(TEXT)
    tab.get_by_label("Second text, if any").fill(PAIR)
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".threads canvas")
    assert tab.locator("#texts").inner_text().split("\n") == [f"A{TEXT}", f"B{PAIR}"]
    assert ("attention", {"text": TEXT, "pair": PAIR}) in service.asked
    tab.get_by_role("button", name="layer 2, head 2").click()
    tab.locator("#copy").click()
    tab.get_by_text("Copied").wait_for()
    link = tab.evaluate("navigator.clipboard.readText()")
    drawn = one.lines()
    again = window()
    other = again.open(link)
    assert other.get_by_role("heading", name="Layer 2, head 2").is_visible()
    assert other.get_by_label("Text", exact=True).input_value() == TEXT
    assert again.lines() == drawn


def test_an_example_is_one_click_away(window, service):
    tab = window().tab
    tab.goto(service.address)
    tab.get_by_role("tab", name="Look inside").click()
    tab.get_by_role("button", name="나는 너를 사랑해").click()
    tab.wait_for_selector(".threads canvas")
    assert ("attention", {"text": "나는 너를 사랑해"}) in service.asked
    assert not tab.locator("#examples").is_visible()
    tab.reload()  # the address holds it
    tab.wait_for_selector(".threads canvas")
    assert tab.locator("#texts").inner_text() == "나는 너를 사랑해"


def test_no_examples_are_offered_for_a_model_without_any(window, service):
    service.kind = "classification"
    one = window()
    one.tab.goto(service.address)
    one.tab.get_by_role("button", name="Label a text").wait_for()
    one.tab.wait_for_load_state("networkidle")
    assert not one.tab.locator("#examples").is_visible()


def test_the_service_is_asked_for_a_mask(window, service):
    tab = window().open(f"{service.address}#room=guesses&text={TEXT}&pair={PAIR}")
    tab.get_by_role("button", name="또").click()
    tab.wait_for_selector(".guess-panel li")
    assert ("fill", {"input": "이걸 왜 [MASK] 봤을까 👍🏻", "top": 5}) in service.asked
    assert tab.locator(".guess-panel li").count() == 5


def test_a_label_is_shown_before_its_attributions(window, service):
    service.kind = "classification"
    window().open(f"{service.address}#text={TEXT}").wait_for_timeout(500)
    asked = [body for route, body in service.asked if route == "attention"]
    assert asked == [{"text": TEXT, "attribution": False}, {"text": TEXT}]


@pytest.mark.parametrize(
    ("job", "boxes"), [("fill", ["Text with [MASK]"]), ("inside", ["Text", "Second text, if any"])]
)
def test_a_job_has_its_boxes(job, boxes, window, service):
    tab = window().tab
    tab.goto(f"{service.address}#job={job}")
    tab.get_by_text("Or try one of these").wait_for()
    assert tab.locator("#ask label:visible > span").all_inner_texts() == boxes


def test_jobs_are_chosen_by_keyboard_and_show_the_result_first(window, service):
    tab = window().tab
    tab.goto(service.address)
    tab.get_by_role("tab", name="Fill a gap").focus()
    tab.keyboard.press("ArrowRight")
    tab.locator("[aria-selected=true]:focus", has_text="Search").wait_for()
    tab.keyboard.press("ArrowLeft")
    tab.get_by_label("Text with [MASK]").fill("오늘 [MASK] 좋다")
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".verdict")
    assert not tab.locator("#room").is_visible()
    tab.get_by_text("What goes on inside the model").click()
    tab.wait_for_selector(".threads canvas")
    tab.get_by_role("tab", name="Search").click()
    assert not tab.locator(".verdict").is_visible()


def test_a_text_is_labelled_where_it_was_entered_and_the_next_can_be_typed(window, service):
    service.kind, service.operations = "classification", ["attention", "predict"]
    tab = window().tab
    tab.goto(service.address)
    asks = tab.get_by_role("tab", name="Label a text")
    assert asks.get_attribute("aria-selected") == "true"
    box = tab.locator("#text")
    box.fill(TEXT)
    box.press("Enter")
    tab.locator("#copy").wait_for()
    assert asks.get_attribute("aria-selected") == "true"
    tab.get_by_role("tab", name="Look inside").click()
    asks.click()
    box.fill(PAIR)
    box.press("Enter")
    tab.locator("#copy").wait_for()
    assert box.evaluate("box => box === document.activeElement")
    asks.click()  # again: what is there stays
    assert box.input_value() == PAIR


def test_a_file_is_labelled_and_saved(window, service, tmp_path):
    service.kind = "classification"
    tab = window().tab
    tab.goto(service.address)
    (tmp_path / "a.csv").write_text("text\n정말 좋다\n\n", encoding="utf-8")
    tab.get_by_label("Or label a whole file").set_input_files(tmp_path / "a.csv")
    tab.wait_for_selector("#labelled table")
    assert tab.locator("#labelled td").all_inner_texts() == [
        "1", "정말 좋다", "긍정", "0.900", "2", "", "", "is a number", "3", "", "", "the text is empty",
    ]  # fmt: skip
    assert ("rows", {"name": "a.csv", "content": "dGV4dArsoJXrp5Ag7KKL64ukCgo="}) in service.asked
    assert ("predict", {"input": [{"text": "정말 좋다"}, {"text": ""}]}) in service.asked
    with tab.expect_download() as saved:
        tab.get_by_text("Save as CSV").click()
    assert saved.value.suggested_filename == "a-labels.csv"
    lines = saved.value.path().read_text("utf-8-sig").splitlines()
    assert lines == [
        '"no","text","label","predicted_label","probability"',
        '"7","정말 좋다","?","긍정","0.900"',
        '"8","3","","","is a number"',
        '"9","","","","the text is empty"',
    ]


def test_an_index_is_searched_from_a_box(window, service):
    tab = window().tab
    tab.goto(service.address)
    tab.get_by_role("tab", name="Search").click()
    tab.get_by_label("Search the index").fill("분실 신고")
    tab.keyboard.press("Enter")
    assert tab.locator(".hits p").inner_text() == "비슷한 <b>문장</b>"
    assert "0.900 (rank 1)" in tab.locator(".hits dl").inner_text()
    assert ("similar", {"input": "분실 신고", "top": 10}) in service.asked
    tab.reload()  # the address holds it
    assert tab.locator(".hits p").inner_text() == "비슷한 <b>문장</b>"
    assert tab.locator(".hits h3").inner_text() == "b1"
    assert tab.get_by_role("link", name="HTTP API").get_attribute("href") == "docs"


PASSAGE = "면책사유가 있다. " * 60 + "음주운전 중의 사고라도 보험금을 지급한다. " + "그 밖의 것은 다르다. " * 60


MARKED = {  # query -> the words that are marked in the passage
    "음주운전으로 난 사고에도": ["음주운전", "사고"],
    "보험금을 받는가": ["보험금을"],
    "없는말": [],
    "다": [],  # a word of one letter is marked where it begins a short word
    "밖 <b>": ["밖"],
}


def test_a_hit_has_a_title_and_a_snippet_with_the_words_of_the_query_marked(window, service):
    service.hit |= {"passage": PASSAGE, "fields": {"제목": "보험금"}}
    one = window()
    for query, marked in MARKED.items():
        tab = one.tab
        tab.goto("about:blank")
        tab.goto(f"{service.address}#query={query}")
        tab.wait_for_selector(".hits li")
        assert tab.locator(".hits h3").inner_text() == "보험금"
        assert list(dict.fromkeys(tab.locator(".hits mark").all_inner_texts())) == marked, query
        assert len(tab.locator(".hits p").inner_text()) <= 205


def test_the_page_waits_for_models_that_are_loading(window, service):
    service.status = "loading"
    tab = window().tab
    tab.goto(f"{service.address}#text={TEXT}")
    tab.get_by_text("The models are loading").wait_for()
    service.status = "ready"
    tab.wait_for_selector(".threads canvas")


def test_views_that_the_service_lacks_are_hidden(window, service):
    service.operations = ["attention"]
    service.index = False
    tab = window().open(f"{service.address}#text={TEXT}")
    assert tab.locator("#rooms").get_by_role("tab").all_inner_texts() == ["Attention", "Neurons", "Pieces", "Vectors"]
    assert tab.locator("#jobs").get_by_role("tab").all_inner_texts() == ["Fill a gap", "Look inside"]
    assert not window().open(f"{service.address}#text={TEXT}").get_by_role("search").is_visible()
    assert not [route for route, _ in service.asked if route in ("similar", "fill")]


def test_refusals_are_shown(window, service):
    service.token = "secret"
    one = window()
    tab = one.tab
    tab.goto(f"{service.address}#text={TEXT}")
    tab.get_by_role("alert").wait_for()
    assert tab.get_by_role("alert").inner_text() == "the token is missing or wrong"
    tab.get_by_label("Token").fill("secret")
    tab.get_by_role("button", name="Look").click()
    tab.wait_for_selector(".threads canvas")
    assert not tab.get_by_role("alert").is_visible()
    assert "secret" not in tab.url
    tab.get_by_label("Text", exact=True).fill("너무 길다")
    tab.keyboard.press("Enter")
    tab.get_by_role("alert").wait_for()
    assert tab.get_by_role("alert").inner_text() == "text has 600 pieces, the model reads 512: shorten it"
    one.faults.clear()  # a browser notes each refusal
