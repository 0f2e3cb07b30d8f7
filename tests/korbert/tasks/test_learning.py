"""Fine-tuning on another device; and scoring many rows, where memory goes back to the system now and then."""

from contextlib import contextmanager, nullcontext
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from korbert.modeling import ClassificationModel
from korbert.tasks.finetuning.learning import finetune, seconds_per_epoch
from korbert.tasks.finetuning.learning_settings import LearningSettings, Way
from korbert.tasks.kinds.classification import Classification
from korbert.tasks.kinds.kind import Prepared
from korbert.training import devices, scoring
from korbert.training.examples import Examples
from korbert.training.scoring import outputs
from tests.korbert.tasks import second_device
from tests.korbert.tiny import tiny_config

CPU = torch.device("cpu")
GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")]


@pytest.mark.parametrize(
    ("rows", "events"), [(1, []), (2, ["kept", "over"]), (33, ["kept", "release", "release", "over"])]
)
def test_memory_is_kept_over_several_batches(monkeypatch, rows, events):
    seen = []

    @contextmanager
    def noted(device):
        assert device == CPU
        seen.append("kept")
        try:
            yield lambda: seen.append("release")
        finally:
            seen.append("over")

    monkeypatch.setattr(scoring, "memory_kept", noted)
    given = [(np.arange(1 + row % 5), np.zeros(1 + row % 5)) for row in range(rows)]
    examples = Examples.of_rows(given, [0] * rows, pad_id=0)
    found = outputs(
        torch.nn.Identity(),
        examples,
        lambda model, batch: model(batch["attention_mask"].float().sum(dim=1, keepdim=True)),
        batch_size=1,
        device=CPU,
    )
    assert (found[:, 0].tolist(), seen) == (examples.lengths.tolist(), events)


@pytest.mark.filterwarnings("ignore:.* to a meta parameter in the current model, which is a no-op")  # here it is none
@pytest.mark.parametrize("device", [second_device.DEVICE, pytest.param(torch.device("cuda"), marks=GPU)], ids=str)
@pytest.mark.parametrize("frozen", [False, True])
def test_another_device_learns_what_the_processor_learns(tmp_path, monkeypatch, device, frozen):
    if device == second_device.DEVICE:  # which has no fused kernel
        plain = partial(torch.optim.AdamW, foreach=False)
        monkeypatch.setattr(torch.optim, "AdamW", lambda groups, **settings: plain(groups))
    rng = np.random.default_rng(1)
    rows = [(rng.integers(5, 400, length), np.zeros(length)) for length in rng.integers(3, 12, 32)]
    examples, config = Examples.of_rows(rows, rng.integers(0, 2, 32), 0), tiny_config(vocab_size=900, embedding_size=16)
    settings = LearningSettings(frozen_embeddings=frozen, precision="fp32")
    kind = Classification(metrics=("accuracy",), max_length=32, labels=("0", "1"))
    rows = [{"text": "", "label": str(label)} for label in examples.labels]
    found = []
    for where in (CPU, device):
        folder, model = tmp_path / where.type, ClassificationModel(config, generator=torch.Generator().manual_seed(3))
        with second_device.SecondDevice() if where == second_device.DEVICE else nullcontext():

            def measure(model, where=where):
                predictions = kind.predict(model, Prepared(rows, examples), device=where)
                return kind.scores(rows, predictions)["accuracy"], {}

            best = finetune(
                model, examples, kind.loss, measure, settings, Way(1e-3, 8, 2), seed=0, work=folder,
                metrics=folder / "curve", device=where,
            )  # fmt: skip
            assert {tensor.device.type for tensor in model.state_dict().values()} == {where.type}
            predictions = kind.predict(model, Prepared(rows, examples), device=where)
            found.append((best, [list(one["probabilities"].values()) for one in predictions]))
    assert found[0][0] == found[1][0]
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-2)


@pytest.fixture
def learner(monkeypatch):
    """A model, its examples, a function that notes if a pass is in bf16 and if the first layer learns; its notes."""
    monkeypatch.setattr(devices, "has_bf16", lambda device: True)
    rows = [(np.arange(5, 9), np.zeros(4))] * 8
    model, seen = ClassificationModel(tiny_config(vocab_size=20)), []

    def noted(model, batch):
        learns = {name for name, parameter in model.encoder.named_parameters() if parameter.requires_grad}
        seen.append((torch.is_autocast_enabled("cpu"), any(name.startswith("layers.0") for name in learns)))
        return model(batch["input_ids"], batch["attention_mask"])

    return model, Examples.of_rows(rows, [0, 1] * 4, pad_id=0), noted, seen


def loss_of(noted):
    return lambda model, batch: {"loss": F.cross_entropy(noted(model, batch).float(), batch["labels"])}


def test_scores_are_computed_in_fp32_whatever_the_precision_of_training(tmp_path, learner):
    model, examples, noted, seen = learner

    def measure(model):
        seen.clear()  # of training
        return float(outputs(model, examples, noted, device=CPU).mean()), {}

    settings = LearningSettings(precision="bf16")
    finetune(
        model, examples, loss_of(noted), measure, settings, Way(1e-3, 4, 1), seed=0, work=tmp_path,
        metrics=tmp_path / "curve", device=CPU,
    )  # fmt: skip
    assert seen == [(False, True)]


@pytest.mark.parametrize(("precision", "frozen"), [("bf16", 0), ("fp32", 1)])
def test_the_seconds_are_those_of_what_will_be_done(learner, precision, frozen):
    model, examples, noted, seen = learner
    settings = LearningSettings(precision=precision, frozen_layers=frozen, piece_dropout=0.25)
    assert seconds_per_epoch(model, examples, loss_of(noted), 4, CPU, settings) > 0
    assert set(seen) == {(precision == "bf16", not frozen)}
    assert model.encoder.embeddings.piece_dropout == 0.25
