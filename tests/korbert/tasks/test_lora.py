"""Low-rank adapters: what learns, what is kept, and that nobody needs `peft` afterwards."""

import shutil
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from korbert.errors import SettingsError
from korbert.huggingface.importing import load_encoder, read_folder
from korbert.modeling import ClassificationModel
from korbert.modeling.models import EncoderModel
from korbert.modeling.transformers_config import CLASSES
from korbert.tasks.finetuning.learning import finetune
from korbert.tasks.finetuning.lora import add_adapters, merge, merged
from korbert.tasks.finetuning.settings import LearningSettings, Way
from korbert.tasks.kinds.classification import Classification
from korbert.training.examples import Examples
from korbert.training.scoring import outputs
from tests.korbert.tiny import tiny_config

CPU = torch.device("cpu")
KIND = Classification(metrics=("accuracy",), max_length=32, labels=("0", "1"))


def _model(architecture="bert"):
    config = tiny_config(architecture, vocab_size=60, hidden_size=16, num_attention_heads=2, intermediate_size=32)
    return ClassificationModel(config, generator=torch.Generator().manual_seed(0))


def _examples():
    """40 rows; one piece, 50 + label, tells the label."""
    generator = np.random.default_rng(4)
    labels = generator.integers(2, size=40)
    rows = [[2, *generator.integers(5, 40, size=generator.integers(3, 9)), 50 + label, 3] for label in labels]
    return Examples.of_rows([(row, [0] * len(row)) for row in rows], labels, pad_id=0)


def _scored(model, batch):
    return model(batch["input_ids"], batch["attention_mask"])


def _learned(folder, settings, model, loss=KIND.loss):
    """Trained with rows in which each epoch is better than the one before."""

    def measure(model):
        assert all("lora" not in name for name in model.state_dict())
        size = float(np.abs(outputs(model, _examples(), _scored, device=CPU)).sum())
        return size, {"size": size}

    torch.set_num_threads(1)
    files = {"work": folder / "work", "metrics": folder / "metrics.jsonl"}
    finetune(model, _examples(), loss, measure, settings, Way(1e-2, 8, 2), seed=3, **files, device=CPU)
    return model


@pytest.mark.parametrize("architecture", ["bert", "modern"])
def test_each_matrix_has_its_product_added_and_nothing_else_of_the_encoder_changes(tmp_path, architecture):
    before = _model(architecture).state_dict()
    settings = LearningSettings(lora=3, precision="fp32", checkpoint_every=10)
    after = _learned(tmp_path, settings, _model(architecture)).state_dict()
    assert list(after) == list(before)
    state = load_file(tmp_path / "work" / "checkpoints" / "step-00000010" / "state.safetensors")  # the last step
    adapted = [name.removesuffix(".lora_A.default.weight") for name in state if name.endswith(".lora_A.default.weight")]
    matrices = [name.removeprefix("model/") for name in adapted if name.startswith("model/")]
    assert len(matrices) == 2 * 4  # queries to values, output, up, down
    for name in matrices:
        a, b = (state[f"model/{name}.lora_{one}.default.weight"] for one in "AB")
        assert a.shape[0] == b.shape[1] == 3
        assert torch.equal(state[f"model/{name}.base_layer.weight"], before[f"{name}.weight"])
        change = after[f"{name}.weight"] - before[f"{name}.weight"]
        assert change.abs().max() > 1e-3
        torch.testing.assert_close(change, 2 * b @ a, atol=1e-6, rtol=1e-4)
    for name in before:
        same = torch.equal(before[name], after[name])
        assert same == (name.startswith("encoder.") and name.removesuffix(".weight") not in matrices), name


def test_an_interrupted_training_ends_in_the_same_bits(tmp_path):
    settings = LearningSettings(lora=2, precision="fp32", checkpoint_every=3)
    steps = 0

    def cut_off(model, batch):
        nonlocal steps
        if (steps := steps + 1) > 7:
            raise KeyboardInterrupt
        return KIND.loss(model, batch)

    with pytest.raises(KeyboardInterrupt):
        _learned(tmp_path / "cut", settings, _model(), cut_off)
    for name in ("cut", "whole"):
        _learned(tmp_path / name, settings, _model())
    assert steps == 8
    cut, whole = (load_file(tmp_path / name / "work" / "best.safetensors") for name in ("cut", "whole"))
    torch.testing.assert_close(cut, whole, rtol=0, atol=0)


def test_lower_layers_of_adapters_learn_less_or_not_at_all(tmp_path, monkeypatch):
    before = _model().state_dict()

    def moved(**more):
        shutil.rmtree(tmp_path / "work", ignore_errors=True)
        after = _learned(tmp_path, LearningSettings(lora=2, precision="fp32", **more), _model()).state_dict()
        names = [f"encoder.layers.{layer}.up.weight" for layer in (0, 1)]
        return [float((after[name] - before[name]).abs().max()) for name in names]

    low, high = moved(layer_decay=0.01)
    assert 0 < 10 * low < high
    low, high = moved(frozen_layers=1)
    assert low == 0 < high
    with pytest.raises(ValueError, match="lora 2 with frozen_layers -1: no adapter would learn"):
        LearningSettings(lora=2, frozen_layers=-1)
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(SettingsError, match=r"lora needs peft: pip install 'korbert\[lora\]'"):
        add_adapters(_model(), 4, 0)


@pytest.mark.parametrize("model_type", CLASSES)
def test_encoders_of_transformers_take_adapters(foreign, model_type):
    config = read_folder(foreign(model_type))
    model = EncoderModel(config, encoder=load_encoder(foreign(model_type), config)).eval()
    names = list(model.state_dict())
    ids = torch.arange(5, 17).view(2, 6)
    before = model(ids)
    add_adapters(model, 2, 1)
    torch.testing.assert_close(model(ids), before, rtol=0, atol=0)
    learning = [(name, one) for name, one in model.named_parameters() if one.requires_grad]
    assert len(learning) >= 8
    assert all("lora_" in name for name, _ in learning)
    generator = torch.Generator().manual_seed(1)
    for _, one in learning:
        nn.init.normal_(one, std=0.2, generator=generator)
    adapted = model(ids)
    assert bool(((adapted - before).abs() > 0.01).any())
    torch.testing.assert_close(merged(model)(ids), adapted, atol=1e-5, rtol=1e-4)
    merge(model)
    assert list(model.state_dict()) == names
    torch.testing.assert_close(model(ids), adapted, atol=1e-5, rtol=1e-4)
