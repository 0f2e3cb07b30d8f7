"""A stage is said once: one entry in the table, and every command, table and page knows it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOYS = Path(__file__).parent / "toys"
KORBERT = """
import sys
from korbert.pipelines.artifacts.stage import Help, Stage
from korbert.pipelines.stages.table import STAGES

STAGES["tally"] = Stage(
    "tally", 1, "tally:Settings", "tally:run",
    Help("Documents -> their number of words.", "the documents of clean", "words.json", "korbert tally mine.toml"),
    "How many words there are", reads=("clean",), optional=True, page="tally",
    count_labels={"words": "number of words"},
)

from korbert.pipelines.cli import run_command
sys.exit(run_command(sys.argv[1:]))
"""
RECIPE = """
[[clean.sources]]
name = "mine"
path = "mine.jsonl"
[clean]
part_bytes = 1024
[clean.filters]
min_chars = 2
[tally]
"""
SENTENCES = ["강을 건너는 다리가 둘 있다", "어제는 비가 왔고 오늘은 맑다", "그 영화는 정말 재미있었다고 한다"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("new_stage")
    rows = [{"id": str(n), "text": f"{n}번째 글이다. {SENTENCES[n % 3]} {n * n}번."} for n in range(60)]
    (path / "mine.jsonl").write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
    (path / "mine.toml").write_text(RECIPE, encoding="utf-8")
    return path


def korbert(folder, *arguments, **environment):
    path = os.pathsep.join([str(TOYS), *(entry for entry in sys.path if entry)])
    command = [sys.executable, "-c", KORBERT, *arguments]
    env = {**os.environ, "PYTHONPATH": path, "KORBERT_DATA": str(folder), **environment}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120)


@pytest.mark.slow
def test_a_new_stage_is_one_entry(folder):
    assert len((TOYS / "tally.py").read_text(encoding="utf-8").splitlines()) < 40
    assert "Documents -> their number of words." in korbert(folder, "--help").stdout
    shown = korbert(folder, "tally", "--help").stdout
    assert "Reads the documents of clean." in shown
    assert "--runner" in shown
    assert "tally" in korbert(folder, "run", "--help").stdout.partition("--from")[2]

    refused = korbert(folder, "tally", "mine.toml")
    assert refused.returncode == 2
    assert "clean: is absent, and tally builds on it" in refused.stderr
    wrong = korbert(folder, "tally", "mine.toml", "--set", "tally.min_char=2")
    assert "tally.min_char: no such key (did you mean min_chars?)" in wrong.stderr

    assert korbert(folder, "clean", "mine.toml").returncode == 0
    made = folder / "artifacts" / "mine"
    parts = sorted(path.stem for path in (made / "clean" / "documents").iterdir())
    assert len(parts) > 2
    assert korbert(folder, "tally", "mine.toml", DIES_AT=parts[2]).returncode == -9
    assert "tally    partial" in korbert(folder, "status", "mine.toml").stdout
    work = made / "tally.partial" / "work" / "count"
    before = {path.name: path.stat().st_mtime_ns for path in work.iterdir()}
    assert sorted(before) == [f"{part}.json" for part in parts[:2]]

    ended = korbert(folder, "run", "mine.toml", "--from", "tally", DIES_AT=parts[1])  # which is not done again
    assert ended.returncode == 0, ended.stderr
    assert "tally: resuming" in ended.stderr
    words = json.loads((made / "tally" / "words.json").read_text(encoding="utf-8"))["words"]
    texts = [json.loads(line)["text"] for line in (folder / "mine.jsonl").read_text(encoding="utf-8").splitlines()]
    assert words == sum(len(text.split()) for text in texts)

    assert f"{words:,} words" in ended.stdout  # in the closing table
    assert "tally: fresh, skipped" in korbert(folder, "run", "mine.toml", "--from", "tally").stderr
    drifted = korbert(folder, "tally", "mine.toml", "--set", "tally.min_chars=2")
    assert drifted.returncode == 2
    assert "min_chars: 2 here, 1 in the artifact" in drifted.stderr
    index = (made / "index.html").read_text(encoding="utf-8")
    for text in ("How many words there are", "words in the corpus", 'href="tally/report.html"'):
        assert text in index
    page = (folder / "artifacts/mine/tally/report.html").read_text(encoding="utf-8")
    assert "Words of the documents" in page
    assert "number of words" in page
