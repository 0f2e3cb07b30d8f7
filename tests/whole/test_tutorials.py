"""Tutorials and docs/search.md, run as they stand: what a page tells a reader to type works, in a clone."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from korbert.pipelines.cli import run_command
from tests.test_readme import ROOT, blocks, parts_of

PAGES = [
    "docs/tutorials/labelling.md", "docs/tutorials/classifier.md", "docs/tutorials/documents.md",
    "docs/tutorials/entities.md", "docs/how-to/slots.md",
    pytest.param("docs/how-to/topics.md", marks=pytest.mark.filterwarnings("ignore")),  # those of UMAP
]  # fmt: skip


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch):
    """Tests run beside each other: no stage takes the two threads of its settings."""
    monkeypatch.setattr(torch, "set_num_threads", lambda count: None)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_tutorial_run(page, tmp_path, monkeypatch, capsys):
    """Fine-tunings take one epoch: what they reach is no matter here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "corpus").symlink_to(ROOT / "corpus")
    ran = []
    scope = {"__name__": "page"}
    for language, body in parts_of(page):
        if language == "python":
            exec(compile(body, page, "exec"), scope)
            ran.append(body)
        for line in body.replace("\\\n", "").splitlines() if language == "sh" else ():
            if line.startswith("korbert serve"):
                continue  # does not end
            if line.startswith("korbert "):
                quick = re.sub(r"--epochs \d+", "--epochs 1", line)
                assert run_command(shlex.split(quick, comments=True)[1:]) == 0, f"{line}\n{capsys.readouterr().err}"
            else:
                subprocess.run(["bash", "-o", "pipefail", "-c", line], check=True)
            ran.append(line)
    assert len(ran) > 3


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_from_raw_text_to_search(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus").symlink_to(ROOT / "corpus")
    (recipe,) = blocks("docs/search.md", "toml")
    (tmp_path / "law.toml").write_text(recipe, encoding="utf-8")
    said = {}
    for line in "".join(blocks("docs/search.md", "sh")).replace("\\\n", "").splitlines():
        _, command, *arguments = shlex.split(line)
        assert run_command([command, *arguments]) == 0, capsys.readouterr().err
        said[command] = capsys.readouterr().out
    scores = json.loads(Path("artifacts/law/pretrain/scores.json").read_text(encoding="utf-8"))
    assert scores["mlm_loss"] < scores["unigram_loss"]
    rows = json.loads(Path("models/law/scores.json").read_text(encoding="utf-8"))["rows"]
    learned, untuned, words = (row["scores"]["mrr"] for row in rows)
    assert learned > untuned > 0.7
    assert words > 0.9
    assert all(len(json.loads(line)["negatives"]) for line in Path("mined.jsonl").read_text("utf-8").splitlines()[:3])
    head, *hits = said["similar"].splitlines()
    assert "score" in head
    assert len(hits) == 3
    facts, head, *rows = said["search-eval"].splitlines()
    assert facts == "100 queries, 100 texts"
    assert head.split() == ["words", "vectors", "both"]
    assert [row.split()[0] for row in rows] == ["recall@1", "recall@10", "recall@100", "MRR", "nDCG@10"]
