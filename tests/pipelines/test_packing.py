"""korbert pack."""

import torch

from korbert.modeling import PretrainingModel, save_model
from pipelines.cli import run_command
from tests.korbert.tiny import tiny_config


def test_pack_command(tiny_tokenizer, tmp_path, capsys):
    config = tiny_config(vocab_size=tiny_tokenizer.vocab_size)
    save_model(tmp_path / "model", PretrainingModel(config, torch.Generator().manual_seed(0)), tiny_tokenizer)
    assert run_command(["pack", str(tmp_path / "model"), str(tmp_path / "base")]) == 0
    assert run_command(["pack", str(tmp_path / "model"), str(tmp_path / "own"), "--base", str(tmp_path / "base")]) == 0
    assert [line.split(": ")[1][-3:] for line in capsys.readouterr().out.splitlines()] == [" MB"] * 2
    assert run_command(["fill", str(tmp_path / "own"), "오늘 [MASK] 좋다"]) == 0
    assert run_command(["pack", str(tmp_path / "model"), str(tmp_path / "base")]) != 0
    assert "already exists: name a new folder" in capsys.readouterr().err
