import copy
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from korbert.modeling import EncoderConfig, PretrainingModel
from korbert.pretraining import (
    MaskingSettings,
    PairSettings,
    PretrainingRows,
    evaluate,
    heldout_batches,
    pretraining_loss,
)
from korbert.pretraining.batches import located
from korbert.pretraining.objective import _groups, unigram_log_probabilities


def model_of(architecture, ids):
    config = EncoderConfig(
        architecture=architecture,
        vocab_size=ids.vocab_size,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=96,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        boundary_embedding=True,
    )
    return PretrainingModel(config, torch.Generator().manual_seed(0))


def changed(batch, **tensors):
    """The batch with other tensors, and what is known of it worked out again."""
    new = {**batch, **tensors}
    return {**new, **located(new["labels"], new["attention_mask"])}


@pytest.fixture(scope="module")
def rows(corpus, ids):
    return PretrainingRows(corpus.files, ids, 64, MaskingSettings(), PairSettings(), seed=3)


def plainly(model, batch):
    """The same losses, every row with its padding, every piece scored."""
    inputs = (batch[name] for name in ("input_ids", "attention_mask", "token_type_ids", "boundaries"))
    scores, pair_scores = model(*inputs)
    mlm = F.cross_entropy(scores.flatten(0, 1), batch["labels"].flatten())
    return mlm, F.cross_entropy(pair_scores, batch["next_sentence_label"])


def gradients(model, losses):
    model.zero_grad()
    losses.backward()
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("architecture", ["bert", "modern"])
def test_loss_and_gradient_are_those_of_scoring_everything(rows, ids, architecture):
    model = model_of(architecture, ids)
    (batch,) = rows.batch(0, 32)
    values = pretraining_loss(model, batch)
    mlm, nsp = plainly(model, batch)
    torch.testing.assert_close(values["mlm_loss"], mlm)
    torch.testing.assert_close(values["nsp_loss"], nsp)
    torch.testing.assert_close(gradients(model, values["loss"]), gradients(model, mlm + nsp), atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("architecture", ["bert", "modern"])
def test_added_padding_changes_nothing(rows, ids, architecture):
    model = model_of(architecture, ids)
    (batch,) = rows.batch(1, 16)
    fillers = {"input_ids": ids.pad, "labels": -100, "attention_mask": 0, "token_type_ids": 0, "boundaries": 0}
    padded = {name: F.pad(batch[name], (0, 17), value=filler) for name, filler in fillers.items()}
    assert padded["input_ids"].shape[1] == batch["input_ids"].shape[1] + 17
    before, after = (pretraining_loss(model, one) for one in (batch, changed(batch, **padded)))
    for name in before:
        torch.testing.assert_close(after[name], before[name])


def test_micro_batches_add_up_to_the_step(rows, ids):
    model = model_of("modern", ids)
    (whole,) = rows.batch(2, 24)
    wanted = pretraining_loss(model, whole)
    expected = gradients(model, wanted["loss"])
    parts = [pretraining_loss(model, part) for part in rows.batch(2, 24, micro_batches=5)]
    for name in wanted:
        torch.testing.assert_close(sum(part[name] for part in parts), wanted[name])
    torch.testing.assert_close(gradients(model, sum(part["loss"] for part in parts)), expected, atol=1e-6, rtol=1e-4)


def test_without_counts_the_batch_counts_itself(rows, ids):
    model = model_of("modern", ids)
    (batch,) = rows.batch(0, 8)
    bare = {name: tensor for name, tensor in batch.items() if not name.endswith("_count")}
    assert pretraining_loss(model, bare)["loss"] == pretraining_loss(model, batch)["loss"]


def test_no_label_at_all_is_a_loss_of_zero(rows, ids):
    model = model_of("modern", ids)
    (batch,) = rows.batch(0, 4)
    none = changed(batch, labels=batch["labels"] * 0 - 100, next_sentence_label=batch["next_sentence_label"] * 0 - 100)
    none |= {"mlm_count": torch.tensor(0), "nsp_count": torch.tensor(0)}
    values = pretraining_loss(model, none)
    assert {name: value.item() for name, value in values.items()} == {"loss": 0, "mlm_loss": 0, "nsp_loss": 0}
    assert all(not gradient.any() for gradient in gradients(model, values["loss"]).values())


def test_bf16_gives_about_the_same(rows, ids):
    model = model_of("modern", ids)
    (batch,) = rows.batch(0, 8)
    wanted = pretraining_loss(model, batch)["loss"]
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(pretraining_loss(model, batch)["loss"], wanted, atol=0.05, rtol=0.01)


@pytest.mark.parametrize(
    ("lengths", "groups"),
    [
        ([9], [(0, 1, 9)]),
        ([20, 20, 20], [(0, 3, 20)]),
        ([10] * 8 + [100] * 2, [(0, 8, 10), (8, 10, 100)]),  # 8 x 90 saved
        ([50] * 2 + [100] * 8, [(0, 10, 100)]),  # 2 x 50 would be saved: not worth a group
        ([100] * 8 + [10] * 2, [(0, 10, 100)]),  # not sorted: nothing saved, nothing lost
    ],
)
def test_groups_by_hand(lengths, groups):
    assert [(rows.start, rows.stop, length) for rows, length in _groups(lengths, "cpu")] == groups
    assert len(list(_groups(lengths, "cuda"))) == 1  # where a group costs more than all of this


def test_evaluation_is_what_plain_scoring_says(corpus, ids):
    model = model_of("modern", ids).eval()
    counts = np.random.default_rng(0).integers(0, 50, ids.vocab_size)
    settings = (MaskingSettings(), PairSettings())
    batches = heldout_batches(corpus.files, ids, 64, *settings, seed=3, limit_rows=90, batch_size=32)
    whole = heldout_batches(corpus.files, ids, 64, *settings, seed=3, limit_rows=90, batch_size=90)
    with torch.no_grad():
        found = evaluate(model, batches, counts)
        mlm, nsp = plainly(model, whole[0])
    labels = whole[0]["labels"][whole[0]["labels"] != -100].numpy()
    smoothed = counts + 1
    assert found["mlm_count"] == len(labels)
    assert found["nsp_count"] == int((whole[0]["next_sentence_label"] != -100).sum())
    assert found["mlm_loss"] == pytest.approx(float(mlm), rel=1e-5)
    assert found["nsp_loss"] == pytest.approx(float(nsp), rel=1e-5)
    assert found["unigram_loss"] == pytest.approx(-np.log(smoothed[labels] / smoothed.sum()).mean(), rel=1e-9)
    assert 0 <= found["mlm_accuracy"] < 0.05
    assert 0.2 < found["nsp_accuracy"] < 0.8


def test_evaluation_without_labels_says_nan(rows, ids):
    (batch,) = rows.batch(0, 4)
    none = {**batch, "next_sentence_label": batch["next_sentence_label"] * 0 - 100}
    with torch.no_grad():
        found = evaluate(model_of("modern", ids), [none], np.ones(ids.vocab_size, dtype=np.int64))
    assert math.isnan(found["nsp_loss"])
    assert math.isnan(found["nsp_accuracy"])
    assert found["nsp_count"] == 0
    assert found["unigram_loss"] == pytest.approx(math.log(ids.vocab_size))


def test_unigram_probabilities_add_up_to_one():
    assert np.exp(unigram_log_probabilities(np.array([5, 0, 2]))).tolist() == pytest.approx([0.6, 0.1, 0.3])


def test_the_pieces_that_are_read_decide_the_loss(rows, ids):
    """A change anywhere in a row moves its loss: no input is left out."""
    model = model_of("bert", ids)
    (batch,) = rows.batch(0, 8)
    before = pretraining_loss(model, batch)["loss"]
    for name in ("input_ids", "token_type_ids", "boundaries"):
        changed = copy.copy(batch)
        changed[name] = batch[name].clone()
        changed[name][:, 3] = 1 - changed[name][:, 3].clamp(0, 1)
        assert pretraining_loss(model, changed)["loss"] != before
