import functools
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence

from korbert.modeling import PretrainingModel, encoder
from korbert.pretraining import MaskingSettings, PretrainingLoss, evaluate, heldout_batches
from korbert.pretraining.objective_settings import DistillationSettings, ReplacementSettings
from korbert.pretraining.objectives import objective
from korbert.pretraining.objectives.distillation import Distillation
from korbert.pretraining.objectives.replacement import ReplacementLoss, ReplacementModel
from korbert.pretraining.objectives.vocabulary import Negatives
from tests.korbert.pretraining.conftest import rows_of
from tests.korbert.tiny import tiny_config


def model_of(architecture, ids, seed=0):
    config = tiny_config(
        architecture,
        vocab_size=ids.vocab_size,
        boundary_embedding=True,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return PretrainingModel(config, torch.Generator().manual_seed(seed))


def plainly(model, batch):
    """The same losses, every row with its padding, every piece scored."""
    lengths = list(batch["lengths"])
    labels = torch.full_like(batch["input_ids"], -100)
    labels[batch["label_places"]] = batch["labels"]
    names = ("input_ids", "token_type_ids", "boundaries")
    ids, segments, boundaries = (pad_sequence(batch[name].split(lengths), batch_first=True) for name in names)
    mask = pad_sequence([torch.ones(length, dtype=torch.int64) for length in lengths], batch_first=True)
    labels = pad_sequence(labels.split(lengths), batch_first=True, padding_value=-100)
    scores, pair_scores = model(ids, mask, segments, boundaries)
    return F.cross_entropy(scores.flatten(0, 1), labels.flatten()), F.cross_entropy(pair_scores, batch["pair_label"])


def gradients(model, losses):
    model.zero_grad()
    losses.backward()
    named = dict(model.named_parameters())
    return {name: weight.grad.clone() for name, weight in named.items() if weight.grad is not None}


@pytest.mark.parametrize("architecture", ["bert", "modern"])
def test_loss_and_gradient_are_those_of_scoring_everything(rows, ids, architecture):
    model = model_of(architecture, ids)
    (batch,) = rows.batch(0, 32)
    values = PretrainingLoss()(model, batch)
    mlm, nsp = plainly(model, batch)
    torch.testing.assert_close(values["mlm_loss"], mlm)
    torch.testing.assert_close(values["nsp_loss"], nsp)
    torch.testing.assert_close(gradients(model, values["loss"]), gradients(model, mlm + nsp), atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize(
    ("architecture", "backend"),
    [("bert", "aot_eager"), ("modern", "aot_eager"), pytest.param("modern", "inductor", marks=pytest.mark.slow)],
)
@pytest.mark.filterwarnings("ignore")  # of the compiler
def test_compiled_layers_have_the_loss_and_gradients_of_layers(corpus, ids, architecture, backend, monkeypatch):
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend=backend))
    monkeypatch.setattr(encoder, "_compiled_steps", functools.cache(encoder._compiled_steps.__wrapped__))
    monkeypatch.setattr(objective, "_compiled_loss", functools.cache(objective._compiled_loss.__wrapped__))
    rows = rows_of(corpus.files, negatives=Negatives(np.ones(ids.vocab_size, dtype=np.int64), 100))
    model, compiled = (model_of(architecture, ids).train() for _ in range(2))
    compiled.encoder.compile_layers()
    loss, compiled_loss = PretrainingLoss(), PretrainingLoss(compiled=True)
    for step in range(3):  # of other sizes
        (batch,) = rows.batch(step, 8 + 4 * step)
        expected, found = (own(its, batch)["loss"] for own, its in ((loss, model), (compiled_loss, compiled)))
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(gradients(compiled, found), gradients(model, expected), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("objectives", [("mlm", "nsp"), ("mlm", "distill"), ("rtd", "sop")])
def test_micro_batches_add_up_to_the_step(corpus, ids, objectives):
    rows, model = rows_of(corpus.files, objectives=objectives), model_of("modern", ids)
    if "rtd" in objectives:
        settings = ReplacementSettings(generator_share=0.5)
        model = ReplacementModel(model.config, settings, torch.Generator().manual_seed(0))
        loss = ReplacementLoss(settings, "sop")
    else:
        distillation = Distillation(model_of("modern", ids, seed=1), DistillationSettings(teacher="a"))
        loss = PretrainingLoss(objectives, distillation=distillation)
    (whole,) = rows.batch(2, 24)
    wanted = loss(model, whole)
    expected = gradients(model, wanted["loss"])
    parts = [loss(model, part) for part in rows.batch(2, 24, micro_batches=5)]
    for name in wanted:
        torch.testing.assert_close(sum(part[name] for part in parts), wanted[name], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(gradients(model, sum(part["loss"] for part in parts)), expected, atol=1e-6, rtol=1e-4)


def test_without_labels_the_loss_is_0(rows, ids):
    model = model_of("modern", ids)
    (batch,) = rows.batch(0, 4)
    no_pairs = batch["pair_label"] * 0 - 100
    none = {**batch, "labels": batch["labels"][:0], "label_places": batch["labels"][:0], "pair_label": no_pairs}
    none |= {"mlm_count": torch.tensor(0), "nsp_count": torch.tensor(0)}
    values = PretrainingLoss()(model, none)
    assert {name: value.item() for name, value in values.items()} == {"loss": 0, "mlm_loss": 0, "nsp_loss": 0}
    assert all(not gradient.any() for gradient in gradients(model, values["loss"]).values())


def test_evaluation_equals_plain_scoring(corpus, ids):
    model = model_of("modern", ids).eval()
    counts = np.random.default_rng(0).integers(0, 50, ids.vocab_size)
    rows = rows_of(corpus.files, masking=MaskingSettings().all_masked())
    batches, whole = heldout_batches(rows, 90, 32), heldout_batches(rows, 90, 90)
    with torch.no_grad():
        figures = evaluate(model, batches, counts, PretrainingLoss())
        mlm, nsp = plainly(model, whole[0])
    labels = whole[0]["labels"].numpy()
    smoothed = counts + 1
    assert figures["mlm_count"] == len(labels)
    assert figures["nsp_count"] == int((whole[0]["pair_label"] != -100).sum())
    assert figures["mlm_loss"] == pytest.approx(float(mlm), rel=1e-5)
    assert figures["nsp_loss"] == pytest.approx(float(nsp), rel=1e-5)
    assert figures["unigram_loss"] == pytest.approx(-np.log(smoothed[labels] / smoothed.sum()).mean(), rel=1e-9)
    assert 0 <= figures["mlm_accuracy"] < 0.05
    assert 0.2 < figures["nsp_accuracy"] < 0.8


def test_evaluation_without_labels_is_nan(rows, ids):
    (batch,) = rows.batch(0, 4)
    none = {**batch, "pair_label": batch["pair_label"] * 0 - 100}
    with torch.no_grad():
        figures = evaluate(model_of("modern", ids), [none], np.ones(ids.vocab_size, dtype=np.int64), PretrainingLoss())
    assert math.isnan(figures["nsp_loss"])
    assert math.isnan(figures["nsp_accuracy"])
    assert figures["nsp_count"] == 0
    assert figures["unigram_loss"] == pytest.approx(math.log(ids.vocab_size))
