"""Shared by the tests of the page: a browser, a tab that records errors, and small models.

The browser is chromium, which no Python package brings: without it these tests skip, unless KORBERT_BROWSER_IS_REQUIRED
is set.
"""

import os
import shutil
from typing import Any

import pytest
import torch

from korbert.model import Model
from korbert.modeling import PretrainingModel
from korbert.tasks.kinds.classification import Classification
from korbert.tasks.kinds.question_answering import QuestionAnswering
from tests.korbert.tiny import stirred

TEXT = "나는 어제 학교에 갔다가 친구를 만났는데"
PAIR = "이걸 왜 또 봤을까 👍🏻"
QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser():
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        assert not os.environ.get("KORBERT_BROWSER_IS_REQUIRED"), "chromium is not installed"
        pytest.skip("chromium is not installed")
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(QUIET))
        yield browser
        browser.close()


class Window:
    """A browser tab that records errors and requests. There must be no errors, and no requests to other hosts."""

    def __init__(self, browser: Any, width: int = 1280, scheme: str = "light") -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        self.context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.tab = self.context.new_page()
        self.tab.set_default_timeout(60_000)
        self.faults: list[str] = []
        self.asked: list[str] = []
        self.tab.on("console", lambda message: self.faults.append(message.text))
        self.tab.on("pageerror", lambda error: self.faults.append(str(error)))
        self.tab.route("**/*", self._note)

    def _note(self, route: Any) -> None:
        self.asked.append(route.request.url)
        ours = route.request.url.startswith(("file://", "data:", "blob:", "http://127.0.0.1:"))
        route.fallback() if ours else route.abort()

    def open(self, address: str) -> Any:
        self.tab.goto("about:blank")
        self.tab.goto(address)
        self.tab.wait_for_selector("#room > *")
        return self.tab

    def lines(self) -> str:
        """The drawing of the lines, as it is."""
        self.tab.wait_for_selector(".threads canvas")
        return str(self.tab.eval_on_selector(".threads canvas", "one => one.toDataURL()"))


@pytest.fixture
def window(browser):
    made: list[Window] = []

    def new(**how):
        made.append(Window(browser, **how))
        return made[-1]

    yield new
    for one in made:
        one.context.close()
        assert one.faults == []
        elsewhere = [url for url in one.asked if not url.startswith(("file://", "data:", "blob:", "http://127.0.0.1:"))]
        assert elsewhere == []


@pytest.fixture(scope="module")
def config(tiny_config):
    return tiny_config()


@pytest.fixture(scope="module")
def filler(tiny_tokenizer, config):
    return Model(stirred(PretrainingModel(config, torch.Generator().manual_seed(3)), 0.3), tiny_tokenizer)


@pytest.fixture(scope="module")
def classifier(tiny_tokenizer, config):
    kind = Classification(metrics=("accuracy",), max_length=64, labels=("부정", "긍정", "중립"))
    return Model(stirred(kind.model(config, torch.Generator().manual_seed(3)), 0.3), tiny_tokenizer, kind)


@pytest.fixture(scope="module")
def reader(tiny_tokenizer, config):
    kind = QuestionAnswering(metrics=("f1",))
    return Model(stirred(kind.model(config, torch.Generator().manual_seed(3)), 0.3), tiny_tokenizer, kind)
