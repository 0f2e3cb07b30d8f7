"""Pages are whole, safe, self-contained, and the same for the same artifact."""

import contextlib
import errno
import html
import json
import os
import re
import shutil
from pathlib import Path

import pytest

from korbert.errors import ArtifactError
from korbert.pipelines.artifacts import store
from korbert.pipelines.reports import index, render
from korbert.pipelines.reports.drawing.page import is_page
from korbert.pipelines.stages.table import STAGES
from korbert.system.durable import is_aside
from tests.pipelines.reports.conftest import MAKERS, Reader, change, plain, write_json, write_parquet
from tests.pipelines.reports.task_artifacts import KINDS, write_task

HANGUL = re.compile("[가-힣]")


def _page(folder):
    return render(folder).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [*MAKERS, *KINDS])
def test_page_is_well_formed_self_contained_and_the_same_elsewhere(maker, tmp_path, name):
    folder = maker(name) if name in MAKERS else write_task(maker.recipe, name, KINDS[name]())
    page = _page(folder)
    read = Reader(page)
    assert read.tags["h1"] == 1
    assert not read.tags.keys() & {"script", "link", "img", "iframe"}
    assert re.findall(r"https?:|url\((?!#)|@import", page) == []
    assert "<b>&amp;" not in page
    assert max(read.ids.values(), default=1) == 1
    elsewhere = tmp_path / "elsewhere" / "/".join(folder.parts[-3:])  # what the page says of the place
    shutil.copytree(folder, elsewhere)
    assert _page(elsewhere) == page
    assert [path.name for path in folder.iterdir() if is_aside(path.name)] == []


NAMES = {
    "Linux x86_64, a processor", "korbert run demo",
    "train.csv: 100 rows", "10 rows are held out", "share kept",  # not as stages say it
}  # fmt: skip


def test_pages_are_whole_in_korean(maker, monkeypatch):
    monkeypatch.setenv("KORBERT_LANG", "ko")
    pages = [_page(maker(stage)) for stage in MAKERS]
    pages += [_page(write_task(maker.recipe, name, kit())) for name, kit in KINDS.items()]
    pages.append(index(maker.recipe, STAGES).read_text(encoding="utf-8"))
    for page in pages:
        shown = re.sub(r"(?s)<(style|pre|code).*?</\1>", "", page)
        lines = {html.unescape(line).strip() for line in re.split(r"<[^>]+>|\n", shown)} - NAMES
        english = [line for line in lines if re.search(r"[A-Za-z]{2,} [A-Za-z]{2,}", line)]
        assert [line for line in english if not HANGUL.search(line)] == []


def test_page_ends_with_the_record(maker):
    record = maker("pretrain") / "stage.json"
    inputs = json.loads(record.read_text(encoding="utf-8"))["inputs"]
    inputs["files"]["web"] = [{"name": "s3://bucket/말뭉치.jsonl", "size": 12_000, "version": "ef" * 32}]
    change(record, inputs=inputs)
    text = plain(Reader(_page(maker("pretrain"))).text)
    for shown in ("262,144", "filters.min_chars", "sources[0].name", "위키", "kiwipiepy", "0.24.1", "1 min 23 s"):
        assert shown in text
    assert "734.0 MB" in text
    assert all(words in text for words in ("cdcdcdcdcdcd", "s3://bucket/말뭉치.jsonl", "efefefefefef"))
    assert "/somewhere" not in text  # run.json's memory of source files, with a machine's paths


def test_surrogates_and_invisible_characters_are_shown_as_escapes(maker):
    folder = maker("korquad")
    scores = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
    scores["details"]["misses"][0]["question"] = "누가\ud83d\u202e 했나\x1b[31m\x00?\u200b"
    (folder / "scores.json").write_text(json.dumps(scores))
    page = _page(folder)
    assert "누가\\ud83d\\u202e 했나\\x1b[31m\\x00?\\u200b" in page
    assert not set(page) & set("\ud83d\u202e\x1b\x00\u200b")


def test_failed_write_leaves_the_old_page_and_nothing_else(maker, monkeypatch):
    folder = maker("korquad")
    old = _page(folder)
    record = json.loads((folder / "stage.json").read_text(encoding="utf-8"))
    before = set(maker.recipe.rglob("*"))

    def full(_handle):
        assert store.damage(folder, record) is None  # while the page is half written, too
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        render(folder)
    assert (folder / "report.html").read_text(encoding="utf-8") == old
    assert set(maker.recipe.rglob("*")) == before


@pytest.mark.parametrize("stage", ["analyze", "korquad"])
@pytest.mark.parametrize("damage", [{"counts": 1, "inputs": 1}, {"counts": [], "inputs": {"files": {"a": [{}]}}}, {}])
def test_odd_record_gives_a_page_or_a_named_error(maker, stage, damage):
    folder = maker(stage)
    record = json.loads((folder / "stage.json").read_text(encoding="utf-8"))
    for key in ("counts", "inputs", "settings", "files", "versions", "numerics", "digest"):
        write_json(folder / "stage.json", {name: value for name, value in record.items() if name != key} | damage)
        with contextlib.suppress(ArtifactError):  # any other error fails the test
            render(folder)
        index(maker.recipe, STAGES)


@pytest.mark.parametrize(("stage", "file", "text", "message"), [
    ("clean", "stage.json", None,
     r"clean: no stage.json in it, so there is nothing to report: run the stage first"),
    ("clean", "stage.json", "{}", r"stage.json: names no stage: .*move this folder away"),
    ("clean", "documents/part-00001.parquet", "?", r"part-00001.parquet: cannot be read \(.*\): rebuild this"),
    ("clean", "documents/part-00001.parquet", {"id": "a", "text": "글"}, "part-00001.parquet: no column source"),
    ("vocab", "coverage.json", "{", r"coverage.json: cannot be read"),
    ("vocab", "coverage.json", '{"all": {}}', r"coverage.json: no whole_morpheme_share in it: rebuild this"),
    ("shard", "train/part-00000.arrow", "다른 것", r"part-00000.arrow: cannot be read"),
    ("pretrain", "scores.json", "{}", r"scores.json: no mlm_loss in it: rebuild this artifact with --rebuild"),
    ("pretrain", "metrics.jsonl", '{"kind"\n', r"metrics.jsonl: line 1: cannot be read \("),
    ("pretrain", "metrics.jsonl", '{"step": 1}\n', r"metrics.jsonl: line 1: no kind in it: rebuild this artifact"),
    ("pretrain", "metrics.jsonl", "7\n", r"metrics.jsonl: line 1: is not an object: rebuild this artifact"),
    ("nsmc", "scores.json", None, r"scores.json: is missing"),
    ("nsmc", "predictions.jsonl", b'{"text": "\xb0\xa1"}\n', r"predictions\.jsonl: line 1: cannot be read \("),
    ("nsmc", "predictions.jsonl", "{\n", r"predictions\.jsonl: line 1: cannot be read \(.*rebuild this artifact"),
    ("nsmc", "scores.json", '{"rows": [{}]}', r"scores.json: no task in it: rebuild this artifact"),
    ("korquad", "scores.json", '{"f1": "?"}', r"korquad.*rebuild this artifact"),
])  # fmt: skip
def test_damaged_file_is_named(maker, stage, file, text, message):
    path = maker(stage) / file
    if text is None:
        path.unlink()
    elif isinstance(text, dict):
        write_parquet(path, [text])
    else:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ArtifactError, match=message):
        render(maker(stage))
    index(maker.recipe, STAGES)


def test_a_damaged_page_of_parquet_is_named(maker):
    path = maker("clean") / "documents/part-00001.parquet"
    data = path.read_bytes()
    path.write_bytes(data[:4] + bytes(len(data) // 2) + data[4 + len(data) // 2 :])
    with pytest.raises(ArtifactError, match=r"part-00001.parquet: cannot be read \(.*\): rebuild this"):
        render(maker("clean"))


def test_stage_without_a_page_module_or_a_run_shows_its_record(maker):
    folder = maker("analyze")
    (folder / "run.json").unlink()
    assert "duration unknown" in _page(folder)
    change(folder / "stage.json", stage="distill")
    text = Reader(_page(folder)).text
    assert "Run record" in text
    assert "filters.min_chars" in text


def test_each_class_of_a_page_has_a_style():
    folder = Path(__file__).resolve().parents[3] / "pipelines" / "reports" / "templates"
    texts = {path: path.read_text(encoding="utf-8") for path in folder.rglob("*.*")}
    styled = {
        name for path, text in texts.items() if path.suffix == ".css" for name in re.findall(r"\.([a-z][\w-]*)", text)
    }
    used = set()
    for path, text in texts.items():
        if path.suffix in (".html", ".js"):
            written = " ".join(re.findall(r"\bclass(?:=|: )[\"`]([^\"`]*)", text))
            used |= {*re.sub(r"\w*(\{\{.*?\}\}|\$\{.*?\})|\{%.*?%\}", " ", written).split()}
    assert "unit" in used
    assert {name for name in used - styled if re.fullmatch(r"[\w-]+", name)} <= {"to"}  # .units.to has that of .units


@pytest.mark.parametrize("text", ["", "<!doctype html>\n<html>\n<head>\n<title>korbert</title>", "\x00" * 100])
def test_a_page_of_another_program_is_not_ours(tmp_path, text):
    (tmp_path / "page.html").write_text(text)
    assert not is_page(tmp_path / "page.html")
