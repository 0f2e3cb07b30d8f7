"""Vectors of a frozen encoder: equal to calling it, computed once, found again, and never those of other weights."""

import numpy as np
import pytest
import torch

from korbert.errors import ModelError
from korbert.modeling import Encoder
from korbert.modeling.heads import mean_pooling
from korbert.tasks.finetuning.vectors import keep_vectors
from korbert.training.examples import Examples
from korbert.training.scoring import model_inputs
from tests.korbert.tiny import tiny_config

CPU = torch.device("cpu")


class Counting(Encoder):
    """Counts the rows that it computes."""

    rows = 0

    def all_layers(self, input_ids, *args, **more):
        self.rows += len(input_ids)
        return super().all_layers(input_ids, *args, **more)


def _encoder(architecture="modern"):
    sizes = {"vocab_size": 500, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2}
    encoder = Counting(tiny_config(architecture, **sizes, type_vocab_size=2, boundary_embedding=True))
    generator = torch.Generator().manual_seed(1)
    for weight in encoder.parameters():
        torch.nn.init.normal_(weight, 0.0, 0.3, generator)
    return encoder.eval()


def _examples(count=40, pairs=True, seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(3, 30, count)
    rows = [(rng.integers(5, 500, length), rng.integers(0, 3, length)) for length in lengths]
    return Examples.of_rows(rows, np.zeros(count), 0, lengths // 2 if pairs else None)


def _kept(encoder, examples, folder, layers=(0, 2, 3), pooling=None, **more):
    return keep_vectors(encoder, examples, layers, folder=folder, pooling=pooling, device=CPU, **more)


@pytest.mark.parametrize("architecture", ["bert", "modern"])
@pytest.mark.parametrize("pairs", [True, False])
@pytest.mark.parametrize(("numbers", "close"), [("float32", 1e-5), ("float16", 2e-2)])
def test_kept_vectors_are_those_of_the_encoder(tmp_path, architecture, pairs, numbers, close):
    encoder, examples = _encoder(architecture), _examples(pairs=pairs)
    kept = _kept(encoder, [examples], tmp_path, numbers=numbers)
    batch = examples.batch(np.array([7, 3, 31]))
    for only in ((0, 2, 3), (3,), (2, 0)):
        with torch.no_grad():
            direct = encoder.all_layers(**model_inputs(batch))[list(only)]
        assert torch.allclose(kept.all_layers(**model_inputs(batch), only=only), direct, atol=close)


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_pooled_ones_are_the_mean_or_the_first(tmp_path, pooling):
    encoder, examples = _encoder(), _examples()
    kept = _kept(encoder, [examples], tmp_path, pooling=pooling, numbers="float32")
    batch = examples.batch(np.array([5, 30]))
    with torch.no_grad():
        direct = encoder.all_layers(**model_inputs(batch))[2]
    wanted = direct[:, 0] if pooling == "first" else mean_pooling(direct, batch["attention_mask"])
    found = kept.all_layers(**model_inputs(batch), only=(2,))
    torch.testing.assert_close(found, wanted[None, :, None], atol=1e-5, rtol=1e-5)


def test_they_are_found_again_and_a_changed_weight_is_noticed(tmp_path):
    encoder, examples = _encoder(), _examples()

    def computed(given=(examples,), **more):
        before = encoder.rows
        _kept(encoder, given, tmp_path, **more)
        return encoder.rows - before

    assert computed([examples, examples]) == 40  # equal rows once
    assert computed(layers=(2,)) == 0
    assert computed(layers=(1, 2)) == 40  # a layer that is not there yet
    assert (computed(pooling="mean"), computed(numbers="float32")) == (40, 40)
    with torch.no_grad():
        encoder.layers[0].up.weight[0, 0] += 1e-3
    assert computed() == 40
    # A damaged file is computed anew.
    path = sorted(tmp_path.glob("*-layer-2-*.npy"), key=lambda path: path.stat().st_mtime_ns)[-1]
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    files = sorted(tmp_path.iterdir())
    assert (computed(), computed(), sorted(tmp_path.iterdir())) == (40, 0, files)


def test_rows_and_layers_that_are_not_kept_are_refused(tmp_path):
    kept = _kept(_encoder(), [_examples()], tmp_path)
    other = _examples(3, seed=9).batch(np.arange(3))
    for batch, layer in ((other, 0), (_examples().batch(np.arange(3)), 1)):
        with pytest.raises(KeyError):
            kept.all_layers(**model_inputs(batch), only=(layer,))
    assert list(kept.state_dict()) == []  # nothing of the encoder is saved with a head


def test_numbers_beyond_float16_are_refused_and_kept_as_float32(tmp_path):
    encoder = _encoder("bert")
    with torch.no_grad():
        encoder.embeddings.norm.weight[:] = 1e5
    with pytest.raises(ModelError, match=r'float16 cannot hold: features\.keep = "float32"'):
        _kept(encoder, [_examples()], tmp_path)
    _kept(encoder, [_examples()], tmp_path, numbers="float32")


@pytest.mark.parametrize("pooling", [None, "mean"])
def test_mean_and_deviation_are_numpys(tmp_path, pooling):
    encoder, examples = _encoder(), _examples()
    kept = _kept(encoder, [examples], tmp_path, pooling=pooling, numbers="float32")
    mean, deviation = kept.spread(examples, (0, 3))
    batch = examples.batch(np.arange(40))
    with torch.no_grad():
        layer = encoder.all_layers(**model_inputs(batch))[3]
    flat = layer[batch["attention_mask"].bool()] if pooling is None else mean_pooling(layer, batch["attention_mask"])
    assert np.allclose(mean[1], flat.numpy().mean(axis=0), atol=1e-5)
    assert np.allclose(deviation[1], flat.numpy().std(axis=0), atol=1e-5)
