"""What the commands make of the models of a run: answers, scores, exports."""

import json
from pathlib import Path

import pytest

from tests.running import run_here


def _said(*arguments):
    done = run_here([*map(str, arguments)], Path.cwd(), seconds=300)
    assert done.code == 0, done.out + done.err
    return done.out


def test_submit_and_score_agree_with_the_stage(whole, data, tmp_path):
    output = tmp_path / "predictions.json"
    _said("submit", whole.folder / "korquad" / "model", data / "valid.json", output)
    assert json.loads(output.read_text()) == json.loads((whole.folder / "korquad" / "predictions.json").read_text())
    score = json.loads(_said("score", data / "valid.json", output))
    recorded = json.loads((whole.folder / "korquad" / "scores.json").read_text())["rows"][0]["scores"]
    assert score == {key: pytest.approx(100 * recorded[key]) for key in ("exact_match", "f1")}


@pytest.mark.parametrize("stage", ["pretrain", pytest.param("korquad", marks=pytest.mark.slow)])
def test_export_has_the_same_logits(whole, tmp_path, stage):
    assert "largest difference" in _said("export", whole.folder / stage / "model", tmp_path / stage, "--check")
