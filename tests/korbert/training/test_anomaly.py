import numpy as np
import pytest
import torch

from korbert.errors import ModelError
from korbert.modeling import PretrainingModel
from korbert.pretraining import pretraining_loss
from korbert.pretraining.objectives.vocabulary import Negatives
from tests.korbert.pretraining.conftest import IDS, like_a_corpus, rows_of, write_shards
from tests.korbert.tiny import same_weights, tiny_config
from tests.korbert.training.test_loop import acting, fitted, lines, toy


def broken_in(layer, step):
    """A loss that breaks a layer of the network at its call `step`."""

    @torch.no_grad()
    def breaks(model):
        model[layer].weight[:] = torch.inf

    return acting(step, breaks)


@pytest.mark.parametrize(("layer", "kind"), [(0, "Embedding"), (2, "Linear"), (3, "LayerNorm")])
def test_the_module_with_a_non_finite_output_is_named(layer, kind):
    network = toy.network()
    with pytest.raises(ModelError, match=rf"^step 5: the output of {layer} \({kind}\) is the first that is not finite"):
        fitted(network, loss=broken_in(layer, 5), anomaly=True)
    assert not any(module._forward_hooks for module in network.modules())
    assert not torch.is_anomaly_enabled()


def test_only_the_first_20_steps_are_watched():
    with pytest.raises(ModelError, match="step 20: the output of"):
        fitted(toy.network(), loss=broken_in(2, 20), anomaly=True, steps=30)
    with pytest.raises(ModelError, match="step 21: the loss or its gradient is not a finite number"):
        fitted(toy.network(), loss=broken_in(2, 21), anomaly=True, steps=30)


def test_the_function_of_a_nan_gradient_is_named():
    def rootless(model, batch):
        loss = toy.loss(model, batch)["loss"]
        return {"loss": loss + (loss * 0.0).sqrt()}  # the slope of a root at 0 is infinite, and 0 x infinite is NaN

    message = r"^step 1: all outputs are finite, a gradient is not: Function 'MulBackward0' returned nan values"
    with pytest.warns(UserWarning, match="Error detected in MulBackward0"), pytest.raises(ModelError, match=message):
        fitted(toy.network(), loss=rootless, anomaly=True)


@pytest.mark.parametrize("head", ["full", "sampled"])
@pytest.mark.parametrize("architecture", ["bert", "modern"])
def test_anomaly_mode_changes_no_bit_of_a_pretraining(tmp_path, architecture, head):
    negatives = Negatives(np.ones(IDS.vocab_size, dtype=np.int64), 20) if head == "sampled" else None
    rows = rows_of(write_shards(tmp_path, like_a_corpus(20, np.random.default_rng(1))).files, negatives=negatives)
    layers = {"num_hidden_layers": 4, "local_attention": 16}  # global and local
    config = tiny_config(architecture, vocab_size=IDS.vocab_size, **layers)
    models = []
    for anomaly in (False, True):
        models.append(PretrainingModel(config, torch.Generator().manual_seed(1)))
        options = {"batches": lambda step: rows.batch(step, 8, micro_batches=2), "loss": pretraining_loss, "steps": 3}
        fitted(models[-1], anomaly=anomaly, metrics=tmp_path / f"{anomaly}.jsonl", **options)
    assert same_weights(*models)
    assert lines(tmp_path / "True.jsonl") == lines(tmp_path / "False.jsonl")
