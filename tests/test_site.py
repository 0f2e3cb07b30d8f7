"""The site of `make docs`: built without a warning, in two languages, and nothing in it asks another host."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from korbert.pipelines.cli import cli

ROOT = Path(__file__).resolve().parent.parent
_LOADED = re.compile(r"<(?:script|img|iframe|source)[^>]* src=\"?(?:https?:)?//|<link[^>]* rel=\"?stylesheet[^>]*//")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs", reason="the extra docs is not installed")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(folder)]  # --quiet would count no warning
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_no_page_loads_anything_from_another_host(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 30
    assert [page for page in pages if _LOADED.search(page.read_text(encoding="utf-8"))] == []
    assert [path for path in site.rglob("*.css") if re.search(r"url\(\"?(https?:)?//", path.read_text("utf-8"))] == []


@pytest.mark.slow
def test_reference_comes_from_the_code(site):
    commands = (site / "reference" / "commands" / "index.html").read_text(encoding="utf-8")
    assert [name for name in cli.commands if f'id="{name}"' not in commands] == []
    assert 'id="korbert.model.load"' in (site / "reference" / "python" / "index.html").read_text(encoding="utf-8")
    settings = (site / "settings" / "index.html").read_text(encoding="utf-8")
    assert "clean.filters.min_chars" in settings
    assert "<!-- settings" not in settings


@pytest.mark.slow
def test_korean_pages_are_korean_and_found(site):
    assert '<html lang="ko"' in (site / "ko" / "index.html").read_text(encoding="utf-8")
    assert '<html lang="en"' in (site / "index.html").read_text(encoding="utf-8")
    assert (site / "ko" / "sitemap.xml").exists()
    assert "md-footer__link--prev" not in (site / "ko" / "index.html").read_text(encoding="utf-8")
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    assert index["config"]["lang"] == ["en", "ko"]
    assert {"ko/entities/"} <= {entry["location"] for entry in index["docs"] if "개체명" in entry["title"]}
