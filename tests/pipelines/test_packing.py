"""korbert pack."""

import torch

from korbert.modeling import PretrainingModel, save_model
from tests.korbert.tiny import tiny_config


def test_pack_command(tiny_tokenizer, tmp_path, command):
    config = tiny_config(vocab_size=tiny_tokenizer.vocab_size)
    save_model(tmp_path / "model", PretrainingModel(config, torch.Generator().manual_seed(0)), tiny_tokenizer)
    for output, base in (("base", ()), ("own", ("--base", tmp_path / "base"))):
        assert command("pack", tmp_path / "model", tmp_path / output, *base).out.endswith(" MB\n")
    command("fill", tmp_path / "own", "오늘 [MASK] 좋다")
    said = command("pack", tmp_path / "model", tmp_path / "base", code=1).err
    assert "already exists: name a new folder" in said
