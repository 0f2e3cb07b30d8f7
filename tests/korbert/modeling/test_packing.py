"""Packed folders: half or a quarter of the bytes, nearly the same numbers, and what a base has is not there twice."""

import json
import shutil

import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import korbert
from korbert import folders
from korbert.errors import ModelError, SettingsError
from korbert.modeling import ClassificationModel, PretrainingModel, init_encoder_from, load_model, save_model
from korbert.modeling.files import packing
from korbert.modeling.files.packing import pack, pack_tensors
from korbert.modeling.files.storage import read_config, unpack_tensors, write_files
from tests.korbert.tiny import same_weights, tiny_config


@pytest.fixture(autouse=True)
def _small_is_large(monkeypatch):
    """Embeddings of the toys are kept in 8 bits, as those of 102,400 entries."""
    monkeypatch.setattr(packing, "_LARGE", 10_000)


@pytest.fixture
def models(tiny_tokenizer, tmp_path):
    """Folders of a pretrained model, and of a classifier that changed all but the embeddings."""
    config = tiny_config(vocab_size=tiny_tokenizer.vocab_size)
    pretrained = PretrainingModel(config, torch.Generator().manual_seed(0))
    classifier = ClassificationModel(config, generator=torch.Generator().manual_seed(1))
    init_encoder_from(classifier, pretrained)
    for name, parameter in classifier.named_parameters():
        if "embeddings" not in name:
            parameter.data.mul_(1.01)
    for name, model in (("pretrained", pretrained), ("classifier", classifier)):
        save_model(tmp_path / name, model, tiny_tokenizer)
    return tmp_path / "pretrained", tmp_path / "classifier"


def size(folder):
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


@settings(max_examples=30)
@given(st.integers(0, 2**31), st.floats(1e-3, 1e3))
def test_numbers_stay_within_their_error(seed, width):
    matrix = width * torch.randn(400, 32, generator=torch.Generator().manual_seed(seed))
    tensors = unpack_tensors(pack_tensors({"a": matrix, "b": matrix[0], "c": torch.zeros(400, 32)}))
    most = matrix.abs().amax(dim=1, keepdim=True)
    assert ((tensors["a"] - matrix).abs() <= most / 254 * 1.001).all()  # half a step
    torch.testing.assert_close(tensors["b"], matrix[0], rtol=1e-3, atol=1e-7)
    assert not tensors["c"].any()


def test_narrow_matrices_have_a_scale_per_column():
    matrix = torch.tensor([1.0, 100.0]) * torch.randn(10_000, 2, generator=torch.Generator().manual_seed(0))
    packed = pack_tensors({"a": matrix})
    assert packed["a"].dtype == torch.int8
    assert packed["a:scale"].shape == (1, 2)
    most = matrix.abs().amax(dim=0)
    assert ((unpack_tensors(packed)["a"] - matrix).abs() <= most / 254 * 1.001).all()


def test_a_packed_model_gives_nearly_the_same_outputs(models, tmp_path):
    source, _ = models
    assert pack(source, tmp_path / "packed") == size(tmp_path / "packed") < 0.6 * size(source)
    (ours, tokenizer), (theirs, same) = (load_model(one, "pretraining") for one in (source, tmp_path / "packed"))
    assert same.digest == tokenizer.digest
    assert {parameter.dtype for parameter in theirs.parameters()} == {torch.float32}
    ids = torch.randint(400, tokenizer.vocab_size, (4, 20))
    with torch.inference_mode():
        torch.testing.assert_close(theirs.encoder(ids), ours.encoder(ids), rtol=0.05, atol=0.05)
    assert len(korbert.load(tmp_path / "packed").fill("오늘 [MASK] 좋다")[0]) == 5


def test_tensors_of_the_base_are_not_stored_twice(models, tmp_path):
    pretrained, classifier = models
    pack(pretrained, tmp_path / "base")
    alone, beside = pack(classifier, tmp_path / "alone"), pack(classifier, tmp_path / "beside", tmp_path / "base")
    assert beside < 0.3 * alone
    assert not (tmp_path / "beside" / "tokenizer").exists()
    two, tokenizer = load_model(tmp_path / "beside", "classification")
    assert same_weights(load_model(tmp_path / "alone", "classification")[0], two)
    assert tokenizer.digest == load_model(pretrained)[1].digest

    # Another base is no base.
    weights = tmp_path / "base" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\0")
    with pytest.raises(ModelError, match=r"base.*the file was changed or is damaged"):
        load_model(tmp_path / "beside")
    shutil.rmtree(tmp_path / "base")
    with pytest.raises(ModelError, match=r"base.*No such file"):
        load_model(tmp_path / "beside")


def test_a_base_elsewhere_is_refused(models, tmp_path):
    pretrained, classifier = models
    pack(pretrained, tmp_path / "other" / "base")
    for target, base, error, said in (
        (tmp_path / "packed", tmp_path / "other" / "base", ModelError, "a base must be a packed folder"),
        (tmp_path / "packed", pretrained, ModelError, "a base must be a packed folder"),
        (tmp_path / "other" / "base", None, SettingsError, "already exists"),
        (classifier / "packed", None, SettingsError, "which is read"),
    ):
        with pytest.raises(error, match=said):
            pack(classifier, target, base)
    pack(classifier, tmp_path / "packed")
    config = read_config(tmp_path / "packed") | {"packed": {"base": "../other/base", "base_sha256": "0"}}
    write_files(tmp_path / "packed", config, safetensors.torch.load_file(tmp_path / "packed" / "model.safetensors"))
    with pytest.raises(ModelError, match=r"packed\.base '../other/base' is not the name"):
        load_model(tmp_path / "packed")


def test_a_base_of_the_box_is_named(models, tmp_path, monkeypatch):
    pretrained, classifier = models
    pack(pretrained, tmp_path / "box" / "toy-mini")
    monkeypatch.setattr(folders, "_BOX", tmp_path / "box")
    packed = tmp_path / "mine" / "packed"
    pack(classifier, packed, "toy-mini")
    assert not (packed / "tokenizer").exists()
    assert json.loads((packed / "config.json").read_text())["packed"]["base"] == "toy-mini"
    assert load_model(packed, "classification")[1].digest == load_model(pretrained)[1].digest
    with pytest.raises(ModelError, match="toy-mimi: no such folder: did you mean toy-mini"):
        pack(classifier, tmp_path / "other", "toy-mimi")
    pack(pretrained, tmp_path / "mine" / "toy-mini")  # a sibling goes before
    with pytest.raises(ModelError, match="a base must be a packed folder"):
        pack(classifier, tmp_path / "mine" / "again", tmp_path / "box" / "toy-mini")
