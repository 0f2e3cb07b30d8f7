"""Pages are whole, safe, self-contained, and the same for the same artifact."""

import contextlib
import errno
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser

import pytest

from korbert.errors import ArtifactError, SettingsError
from pipelines.artifacts import store
from pipelines.reports import index, render

STAGES = ("clean", "analyze", "vocab", "shard", "pretrain", "nsmc", "korquad")
_VOID = {"meta", "link", "br", "hr", "img", "input"}


class _Reader(HTMLParser):
    """Collects tags, ids and text, and holds that every element is closed where it was opened."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.ids: Counter[str] = Counter()
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        assert not self._open

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.ids.update(value for name, value in attrs if name == "id")
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self._open.pop()

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.text += data


def _page(maker, stage):
    return render(maker(stage)).read_text(encoding="utf-8")


@pytest.mark.parametrize("stage", STAGES)
def test_a_page_is_well_formed_and_needs_nothing_from_outside(maker, stage):
    page = _page(maker, stage)
    read = _Reader(page)
    assert read.tags["h1"] == 1
    assert not read.tags.keys() & {"script", "link", "img", "iframe"}
    assert re.findall(r"https?:|url\((?!#)|@import", page) == []
    assert max(read.ids.values(), default=1) == 1


@pytest.mark.parametrize("stage", STAGES)
def test_the_same_artifact_gives_the_same_bytes_wherever_it_lies(maker, tmp_path, stage):
    folder = maker(stage)
    first = render(folder).read_bytes()
    elsewhere = tmp_path / "elsewhere" / "/".join(folder.parts[-3:])  # what the page says of the place
    shutil.copytree(folder, elsewhere)
    assert render(elsewhere).read_bytes() == first
    assert [path.name for path in folder.iterdir() if path.suffix == ".tmp"] == []


def test_every_page_ends_with_the_record(maker):
    text = _Reader(_page(maker, "pretrain")).text
    for shown in (
        "262,144",
        "filters.min_chars",
        "sources[0].name",
        "위키",
        "kiwipiepy",
        "0.24.1",
        "1 min 23 s",
        "734.0 MB",
    ):
        assert shown in text.replace("\u00a0", " ")
    assert "cdcdcdcdcdcd" in text
    assert "/somewhere" not in text  # run.json's memory of source files, with a machine's paths


def test_text_of_others_is_escaped(maker):
    page = _page(maker, "clean")
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; lol &amp; ㅋㅋㅋ" in page


def test_hangul_stands_in_the_page_as_text(maker):
    assert "관형형 전성 어미" in _page(maker, "analyze")
    assert "배우의 연기가 좋아서" in _page(maker, "nsmc")


def test_half_a_surrogate_pair_in_a_question_has_a_page(maker):
    folder = maker("korquad")
    scores = json.loads((folder / "scores.json").read_text())
    scores["details"]["misses"][0]["question"] = "그 다리는 \ud83d 언제 놓였나?"
    (folder / "scores.json").write_text(json.dumps(scores))
    assert "그 다리는 \\ud83d 언제 놓였나?" in render(folder).read_text(encoding="utf-8")


def test_what_cannot_be_seen_is_shown_as_its_escape(maker):
    folder = maker("korquad")
    scores = json.loads((folder / "scores.json").read_text())
    scores["details"]["misses"][0]["question"] = "누가\u202e 했나\x1b[31m\x00?\u200b"
    (folder / "scores.json").write_text(json.dumps(scores))
    page = render(folder).read_text(encoding="utf-8")
    assert "누가\\u202e 했나\\x1b[31m\\x00?\\u200b" in page
    assert not set(page) & set("\u202e\x1b\x00\u200b")


def test_a_page_that_cannot_be_written_leaves_the_old_one_and_nothing_else(maker, monkeypatch):
    folder = maker("korquad")
    old = render(folder).read_bytes()
    record = json.loads((folder / "stage.json").read_text())
    before = set(maker.recipe.rglob("*"))

    def full(_handle):
        assert store.damage(folder, record) is None  # while the page is half written, too
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        render(folder)
    assert (folder / "report.html").read_bytes() == old
    assert set(maker.recipe.rglob("*")) == before


def test_a_killed_writer_leaves_its_half_page_outside_the_artifact(maker):
    folder = maker("korquad")
    code = (
        "import os, sys, pathlib; os.fsync = lambda handle: os._exit(9)\n"
        "from pipelines.reports import render; render(pathlib.Path(sys.argv[1]))"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(folder)], timeout=60)
    assert killed.returncode == 9
    assert store.damage(folder, json.loads((folder / "stage.json").read_text())) is None
    assert [path.name for path in maker.recipe.iterdir() if path.is_file()] == [".korbert-korquad.report.html.tmp"]
    render(folder)
    assert [path.name for path in maker.recipe.iterdir()] == ["korquad"]


def test_a_page_is_not_written_over_what_is_no_page(maker, tmp_path):
    folder = maker("korquad")
    (tmp_path / "mine.html").write_text("내 것")
    (folder / "report.html").symlink_to(tmp_path / "mine.html")
    with pytest.raises(SettingsError, match=r"report\.html: is a symbolic link"):
        render(folder)
    assert (tmp_path / "mine.html").read_text() == "내 것"


def test_a_source_behind_an_address_is_shown_with_its_version(maker):
    folder = maker("clean")
    record = json.loads((folder / "stage.json").read_text())
    record["inputs"]["files"]["web"] = [{"name": "s3://bucket/말뭉치.jsonl", "size": 12_000, "version": "ef" * 32}]
    maker.write_json(folder / "stage.json", record)
    text = _Reader(render(folder).read_text(encoding="utf-8")).text
    assert "s3://bucket/말뭉치.jsonl" in text
    assert "efefefefefef" in text
    assert "cdcdcdcdcdcd" in text


@pytest.mark.parametrize("stage", ["analyze", "pretrain"])
@pytest.mark.parametrize("damage", [{"counts": 1, "inputs": 1}, {"counts": [], "inputs": {"files": {"a": [{}]}}}, {}])
def test_an_odd_record_gives_a_page_or_a_named_error(maker, stage, damage):
    folder = maker(stage)
    record = json.loads((folder / "stage.json").read_text())
    for key in ("counts", "inputs", "settings", "files", "versions", "numerics", "digest"):
        odd = {name: value for name, value in record.items() if name != key} | damage
        maker.write_json(folder / "stage.json", odd)
        with contextlib.suppress(ArtifactError):  # any other error fails the test
            render(folder)
        index(maker.recipe)


@pytest.mark.parametrize(
    ("stage", "file", "text", "message"),
    [
        ("vocab", "coverage.json", '{"all": {}}', r"coverage.json: no all\.whole_morpheme_share in it: rebuild this"),
        ("pretrain", "scores.json", "{}", r"scores.json: no mlm_loss in it: rebuild this artifact with --rebuild"),
        ("pretrain", "metrics.jsonl", '{"step": 1}\n', r"metrics.jsonl: no \[0\]\.kind in it: rebuild this artifact"),
        ("pretrain", "metrics.jsonl", "7\n", r"pretrain: its page cannot be drawn, .*rebuild this artifact"),
        ("nsmc", "scores.json", '{"rows": [{}]}', r"scores.json: no task in it: rebuild this artifact"),
        ("korquad", "scores.json", '{"f1": "?"}', r"korquad.*rebuild this artifact"),
    ],
)
def test_a_file_that_lacks_something_is_named(maker, stage, file, text, message):
    (maker(stage) / file).write_text(text)
    with pytest.raises(ArtifactError, match=message):
        render(maker.recipe / stage)
    index(maker.recipe)


def test_a_stage_without_pictures_of_its_own_shows_its_record(maker):
    folder = maker("clean")
    record = json.loads((folder / "stage.json").read_text())
    maker.write_json(folder / "stage.json", record | {"stage": "distill"})
    text = _Reader(render(folder).read_text()).text
    assert "Run record" in text
    assert "filters.min_chars" in text


def test_an_artifact_without_run_json_has_a_page(maker):
    folder = maker("analyze")
    (folder / "run.json").unlink()
    assert "duration unknown" in render(folder).read_text()


@pytest.mark.parametrize(
    ("stage", "file", "text", "message"),
    [
        (
            "clean",
            "stage.json",
            None,
            r"clean: no stage.json in it, so there is nothing to report: run the stage first",
        ),
        ("clean", "stage.json", "{}", r"stage.json: names no stage: rebuild this artifact"),
        (
            "clean",
            "documents/part-00001.parquet",
            "다른 것",
            r"part-00001.parquet: cannot be read \(.*\): rebuild this artifact",
        ),
        ("vocab", "coverage.json", "{", r"coverage.json: cannot be read"),
        ("vocab", "tokenizer/pieces.txt", None, r"pieces.txt: is missing: rebuild this artifact"),
        ("shard", "train/part-00000.arrow", "다른 것", r"part-00000.arrow: cannot be read"),
        ("pretrain", "metrics.jsonl", '{"kind"\n', r"metrics.jsonl: cannot be read"),
        ("nsmc", "scores.json", None, r"scores.json: is missing"),
    ],
)
def test_what_is_wrong_is_named(maker, stage, file, text, message):
    path = maker(stage) / file
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(ArtifactError, match=message):
        render(maker.recipe / stage)


def test_a_column_that_is_not_there_is_named(maker):
    folder = maker("clean")
    maker.write_parquet(folder / "documents/part-00000.parquet", [{"id": "a", "text": "글"}])
    with pytest.raises(ArtifactError, match=r"part-00000.parquet: no column source"):
        render(folder)


def test_importing_the_package_draws_nothing():
    code = "import sys, pipelines.reports; assert not {'matplotlib', 'jinja2', 'pyarrow', 'numpy'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
