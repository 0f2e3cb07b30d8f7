"""Distillation: a student that is the teacher has nothing to learn, and another comes nearer."""

import copy

import pytest
import torch
import torch.nn.functional as F

from korbert.errors import ModelError
from korbert.modeling import PretrainingModel
from korbert.modeling.rows import Rows
from korbert.pretraining import PretrainingLoss
from korbert.pretraining.objective_settings import DistillationSettings
from korbert.pretraining.objectives.distillation import Distillation, take_layers
from tests.korbert.pretraining.conftest import rows_of
from tests.korbert.tiny import stirred, tiny_config

SETTINGS = DistillationSettings(teacher="a")
OBJECTIVES = ("mlm", "distill")


def model_of(layers, seed, width=32):
    config = tiny_config(vocab_size=2000, hidden_size=width, num_hidden_layers=layers)
    return PretrainingModel(config, torch.Generator().manual_seed(seed))


def batch_of(corpus):
    return rows_of(corpus.files, objectives=OBJECTIVES).batch(0, 8)


@pytest.fixture
def teacher():
    """With large weights: initial ones give all pieces nearly the same probability."""
    return stirred(model_of(4, 0))


def test_the_loss_by_hand(teacher, corpus):
    (batch,) = batch_of(corpus)
    student = model_of(2, 1)
    loss = PretrainingLoss(OBJECTIVES, distillation=Distillation(teacher, SETTINGS))(student, batch)
    rows = Rows(batch["lengths"], torch.device("cpu"))
    inputs = batch["input_ids"], rows, batch["token_type_ids"], batch["boundaries"]
    own, theirs = student.encoder.forward_flat(*inputs), teacher.encoder.forward_flat(*inputs)
    ours, expected = (
        model.mlm_head(vectors[batch["label_places"]]) for model, vectors in ((student, own), (teacher, theirs))
    )
    shares = (expected / 2).softmax(1)
    divergence = (shares * (shares.log() - (ours / 2).log_softmax(1))).sum(1).mean() * 4
    cosine = (1 - F.cosine_similarity(own, theirs)).mean()
    torch.testing.assert_close(loss["distill_loss"], 2.5 * divergence + 0.5 * cosine, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(loss["mlm_loss"], F.cross_entropy(ours, batch["labels"]))
    loss["loss"].backward()
    assert all(parameter.grad is None for parameter in teacher.parameters())


def test_the_loss_is_0_for_the_teacher_itself(teacher, corpus):
    (batch,) = batch_of(corpus)
    loss = PretrainingLoss(OBJECTIVES, distillation=Distillation(copy.deepcopy(teacher), SETTINGS))
    assert loss(teacher, batch)["distill_loss"].item() == pytest.approx(0, abs=1e-5)
    assert loss(model_of(4, 5), batch)["distill_loss"].item() > 0.1
    with torch.no_grad():
        sums = loss.scores(teacher, batch)["distill"]
    assert sums.tolist() == pytest.approx([0, len(batch["labels"]), len(batch["labels"])], abs=1e-3)


def test_a_student_begins_with_every_second_layer(teacher):
    """And where the teacher has no head for spans, the student keeps its own."""
    student = PretrainingModel(model_of(2, 1).config, torch.Generator().manual_seed(1), ("mlm", "spans", "distill"))
    drawn = student.reader.classifier.weight.clone()
    take_layers(student, teacher)
    own, theirs = student.state_dict(), teacher.state_dict()
    assert own["encoder.layers.1.up.weight"].equal(theirs["encoder.layers.2.up.weight"])
    assert own["encoder.layers.0.up.weight"].equal(theirs["encoder.layers.0.up.weight"])
    assert own["mlm.bias"].equal(theirs["mlm.bias"])
    assert student.reader.classifier.weight.equal(drawn)
    with pytest.raises(ModelError, match=r"set pretrain\.distill\.begin = false"):
        take_layers(model_of(2, 1, width=16), teacher)
