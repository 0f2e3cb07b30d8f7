"""docs/search.md, run as it stands: from raw text to a measured search."""

import json
import shlex
from pathlib import Path

import pytest

from pipelines.cli import run_command
from tests.test_readme import blocks

ROOT = Path(__file__).resolve().parents[2]


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
