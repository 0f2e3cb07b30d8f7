"""An update asks the device for nothing: on `meta`, where tensors have no values, asking is an error."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from korbert.modeling import ClassificationModel, PretrainingModel, QuestionAnsweringModel
from korbert.pretraining import PretrainingLoss
from korbert.system.ranks import World
from korbert.tasks.kinds.classification import Classification
from korbert.tasks.question_answering.window_settings import WindowSettings
from korbert.tasks.question_answering.windows import WindowExamples, cut_windows, reading_loss
from korbert.tokenization.encoding import Frame
from korbert.training import OptimizerSettings
from korbert.training.examples import Batches, Examples
from korbert.training.plan import TrainingPlan
from korbert.training.updates import Updates
from tests.korbert.pretraining.conftest import IDS, like_a_corpus, rows_of, write_shards
from tests.korbert.tasks.test_windows import letters
from tests.korbert.tiny import tiny_config

META = torch.device("meta")


def config(architecture):
    return tiny_config(
        architecture,
        vocab_size=IDS.vocab_size,
        num_hidden_layers=4,
        local_attention=16,  # global and local layers
        max_position_embeddings=160,
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
    )


def pretraining(architecture, folder):
    rows = rows_of(write_shards(folder, like_a_corpus(20, np.random.default_rng(1))).files, 128)
    return PretrainingModel(config(architecture)), PretrainingLoss(), rows.batch(0, 24, micro_batches=2)


def classification(architecture, folder):
    rows = [([2, *range(5, 5 + length), 3], [0] * (length + 2)) for length in (3, 9, 9, 30)]
    examples = Examples.of_rows(rows, [0, 1, 1, 0], pad_id=0)
    pooling = {"bert": "first", "modern": "mean"}[architecture]
    kind = Classification(metrics=("accuracy",), max_length=64, labels=("0", "1"))
    return ClassificationModel(config(architecture), 2, pooling), kind.loss, Batches(examples, 4, 0)(0)


def reading(architecture, folder):
    settings = WindowSettings(max_length=64, stride=9, max_query_pieces=9)
    windows = cut_windows(letters("누가"), letters("나" * 100), settings, answer=(2, 4), special=3)
    examples = WindowExamples.of(windows, SimpleNamespace(pad_id=0, frame=Frame(2, 3)), settings)
    return QuestionAnsweringModel(config(architecture)), reading_loss, Batches(examples, 4, 0)(0)


@pytest.mark.parametrize("task", [pretraining, classification, reading])
@pytest.mark.parametrize("architecture", ["bert", "modern"])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_an_update_waits_for_nothing_on_the_device(tmp_path, monkeypatch, task, architecture, precision):
    model, loss, micro_batches = task(architecture, tmp_path)
    plain = partial(torch.optim.AdamW, foreach=False)  # the fused kind is for devices that compute
    monkeypatch.setattr(torch.optim, "AdamW", lambda groups, **settings: plain(groups))
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda device: precision == "bf16")  # `meta` has no autocast
    monkeypatch.setattr(torch, "get_autocast_dtype", lambda device: torch.bfloat16)
    run = Updates(model.to(META), loss, TrainingPlan(9, OptimizerSettings(), 0, "fp32"), META, World())
    for step in range(2):
        run.update(step, micro_batches)
    assert run.pieces == 2 * sum(batch["pieces"] for batch in micro_batches)
    with pytest.raises((RuntimeError, NotImplementedError)):
        run.check_finite(0)  # the proof of the proof: this asks
