import hashlib
import json
import math
import random
import shutil
from copy import deepcopy
from pathlib import Path

import pytest
import safetensors.torch
import torch

from korbert.errors import ModelError
from korbert.modeling.config import EncoderConfig
from korbert.modeling.files.storage import _own_digest, load_model, read_config, save_model
from tests.korbert.tiny import HEADS, LABELS, model_with, tiny_config

IDS = torch.tensor([[2, 400, 401, 402, 3]])
NOT_FINITE = r"classifier\.bias has non-finite numbers, so the"
ONE_LABEL = "single_label_classification"
HEAD = {"num_labels": 3, "pooling": "first", "labels": [*LABELS], "problem_type": ONE_LABEL}
ODD = [None, [], {}, "x", "\ud800", -1, 0, 1.5, True, 10**30]


@pytest.fixture(scope="module")
def written(tmp_path_factory, tiny_tokenizer):
    """A classification model's folder."""
    folder = tmp_path_factory.mktemp("written")
    model = model_with("one label", tiny_config(vocab_size=tiny_tokenizer.vocab_size))
    save_model(folder, model, tiny_tokenizer, {"max_length": 64})
    return folder


@pytest.fixture
def copy(written, tmp_path):
    """The same, to be spoilt."""
    return Path(shutil.copytree(written, tmp_path / "model"))


def change_config(folder, **changes):
    """As if the model had been saved so."""
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8")) | changes
    path.write_text(json.dumps(config | {"config_sha256": _own_digest(config)}), encoding="utf-8")


@pytest.mark.parametrize("architecture", ["bert", "modern"])
@torch.inference_mode()
def test_a_saved_model_loads_with_the_same_outputs(tiny_tokenizer, tmp_path, architecture):
    """Also where another model was."""
    for head in HEADS:
        model = model_with(head, tiny_config(architecture, vocab_size=tiny_tokenizer.vocab_size))
        save_model(tmp_path, model.eval(), tiny_tokenizer, overwrite=True)
        again, tokenizer = load_model(tmp_path)
        assert type(again) is type(model)
        assert not again.training
        assert again.config == model.config
        assert again.head_settings() == model.head_settings()
        assert tokenizer.digest == tiny_tokenizer.digest
        again = deepcopy(again)  # a copy: where a mapped file's weights lie decides how some processors round
        torch.testing.assert_close(again(IDS), model(IDS), atol=0, rtol=0)


def test_config_json_holds_all_settings_and_the_same_model_has_the_same_bytes(written, tiny_tokenizer, tmp_path):
    config = read_config(written)
    expected = {"korbert_format": 1, "kind": "classification", "head": HEAD, "task": {"max_length": 64}}
    assert config == config | expected | {"tokenizer_digest": tiny_tokenizer.digest}
    assert EncoderConfig.model_validate(config["encoder"]) == tiny_config(vocab_size=tiny_tokenizer.vocab_size)
    assert "분노" in (written / "config.json").read_text(encoding="utf-8")
    found = []
    for name in ("one", "two"):
        model = model_with("pretraining", tiny_config(vocab_size=tiny_tokenizer.vocab_size))
        save_model(tmp_path / name, model, tiny_tokenizer, {"steps": 3})
        files = [path for path in (tmp_path / name).rglob("*") if path.is_file()]
        found.append({path.relative_to(tmp_path / name): path.read_bytes() for path in files})
    assert Path("model.safetensors") in found[0]
    assert found[0] == found[1]


def test_another_kind_and_another_tokenizer_are_refused(tiny_tokenizer, copy, tmp_path):
    """And a vocabulary that is larger than the model."""
    with pytest.raises(ModelError, match=rf"the tokenizer has {tiny_tokenizer.vocab_size} entries, the model 1000"):
        save_model(tmp_path / "new", model_with("pretraining", tiny_config(vocab_size=1000)), tiny_tokenizer)
    with pytest.raises(ModelError, match="a classification model, but a question-answering model is needed: name"):
        load_model(copy, "question-answering")
    change_config(copy, tokenizer_digest="0123456789abcdef" * 4)
    with pytest.raises(ModelError, match=r"tokenizer: digest \w{12}, the model was trained with 0123456789ab: restore"):
        load_model(copy)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("config.json", None, r"config\.json: no such file: name a model folder written by korbert"),
        ("config.json", "{", r"config\.json: cannot be read \(.*\): write the model again"),
        ("config.json", '{"model_type": "bert"}', r"`korbert_format` is missing, so this is not a korbert model"),
        ("config.json", '{"korbert_format": 9}', r"korbert_format 9, this version reads 1: use the version"),
        ("config.json", '{"korbert_format": true}', r"korbert_format True, this version reads 1"),
        ("config.json", '{"korbert_format": 1}', r"config\.json: was changed since the model was saved: restore it"),
        ("config.json", "[1, 2]", r"config\.json: `korbert_format` is missing"),
        ("config.json", '{"korbert_format": "\udcff"}', r"config\.json: cannot be read \(.*utf-8.*\): write the model"),
        (
            "model.safetensors",
            None,
            r"model\.safetensors: cannot be read \(No such .*: the model folder is incomplete",
        ),
    ],
)
def test_broken_files_are_refused(copy, file, content, message):
    (copy / file).unlink()
    if content is not None:
        (copy / file).write_text(content, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(ModelError, match=message):
        load_model(copy)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classifier.bias": torch.zeros(4)}, r"classifier\.bias is 4, config\.json asks for 3: the two files do not"),
        ({"extra.weight": torch.zeros(3, 4)}, r"extra\.weight is 3x4, config\.json asks for absent"),
        ({"classifier.bias": None}, r"classifier\.bias is absent, config\.json asks for 3"),
        ({"classifier.bias": torch.zeros(3).double()}, r"classifier\.bias is 3 float64, config\.json asks for 3: the"),
        *(({"classifier.bias": torch.tensor([0, bad, 0])}, NOT_FINITE) for bad in (math.nan, math.inf, -math.inf)),
    ],
)
def test_weights_that_do_not_fit_are_refused(copy, change, message):
    path = copy / "model.safetensors"
    tensors = (safetensors.torch.load_file(path) | change).items()
    write_weights(copy, safetensors.torch.save({name: tensor for name, tensor in tensors if tensor is not None}))
    with pytest.raises(ModelError, match=message):
        load_model(copy)


def write_weights(folder, data):
    """Others in place of a model's, with their digest."""
    (folder / "model.safetensors").write_bytes(data)
    change_config(folder, weights_sha256=hashlib.sha256(data).hexdigest())


def test_a_flipped_bit_in_the_weights_is_refused(copy):
    path, draw = copy / "model.safetensors", random.Random(3)
    whole = path.read_bytes()
    for place in (0, len(whole) - 1, *(draw.randrange(len(whole)) for _ in range(9))):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << draw.randrange(8)]) + whole[place + 1 :])
        with pytest.raises(ModelError, match=r"model\.safetensors: SHA-256 .*: restore it, or write the model again"):
            load_model(copy)
    path.write_bytes(whole)
    load_model(copy)
    # Weights in another format are refused, too.
    write_weights(copy, b"spoilt")
    with pytest.raises(ModelError, match=r"model\.safetensors: cannot be read \(.*\): the file is broken, write"):
        load_model(copy)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder": {}}, r"invalid encoder config: vocab_size: Field required"),
        ({"encoder": {"hiden_size": 3}}, r"invalid encoder config: hiden_size: Extra inputs"),
        ({"head": {"lables": ["O"]}}, r"config\.json: .* unexpected keyword argument 'lables'"),
        ({"head": HEAD | {"problem_type": "regression"}}, r"regression with 3 labels: set num_labels to 1"),
        ({"head": HEAD | {"labels": ["가"]}}, r"1 names for 3 labels: give one name per label"),
        ({"kind": "oracle"}, r"config\.json: kind 'oracle' is none of pretraining, detection, classification"),
        ({"encoder": {"hidden_size": 1e9}}, r"hidden_size: Input should be less than or equal to 65536"),
        ({"encoder": {"vocab_size": 1e9}}, r"vocab_size: Input should be less than or equal to 4194304"),
        ({"head": HEAD | {"labels": 3}}, r"config\.json: .*int"),
        ({"head": "x"}, r"config\.json: head: Input should be a valid dictionary"),
        ({"task": 3}, r"config\.json: task: Input should be a valid dictionary"),
        ({"weights_sha256": 3}, r"config\.json: weights_sha256: Input should be a valid string"),
        ({"tokenizer_digest": None}, r"config\.json: tokenizer_digest: Input should be a valid string"),
        ({"packed": [1]}, r"config\.json: packed: Input should be a valid dictionary"),
        ({"packed": {"base": 3}}, r"config\.json: packed\.base: Input should be a valid string"),
        ({"onnx": "x"}, r"config\.json: onnx: Input should be a valid dictionary"),
    ],
)
def test_entries_that_this_version_does_not_know_are_refused(copy, changes, message):
    if changes.get("encoder"):
        changes = {"encoder": read_config(copy)["encoder"] | changes["encoder"]}
    change_config(copy, **changes)
    with pytest.raises(ModelError, match=message) as refused:
        load_model(copy)
    assert f"{copy / 'config.json'}: " in str(refused.value)
    assert "\n" not in str(refused.value)


def leaves(value, place=()):
    """The keys that lead to each value in JSON that is neither an object nor a list."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*place, key))
    else:
        yield place


def altered(record, place, value):
    inner = changed = deepcopy(record)
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value(inner[place[-1]]) if callable(value) else value
    return changed


def near(value):
    """A value of the same type that no check of its form could tell from the right one."""
    if isinstance(value, str):
        return f"{value[:-1]}{'x' if value[-1:] != 'x' else 'y'}"
    numbers = {bool: lambda: not value, int: lambda: value + 1, float: lambda: value * 1.5 + 0.01}
    return numbers.get(type(value), lambda: "x")()


@pytest.mark.parametrize("file", ["config.json", "tokenizer/korbert_tokenizer.json"])
def test_every_altered_entry_is_refused(copy, tiny_tokenizer, monkeypatch, file):
    if file == "config.json":  # its tokenizer is as it was
        monkeypatch.setattr("korbert.modeling.files.storage.load_tokenizer", lambda folder: tiny_tokenizer)
    record = json.loads((copy / file).read_text(encoding="utf-8"))
    for number, place in enumerate(leaves(record)):
        for value in (near, ODD[number % len(ODD)]):
            changed = altered(record, place, value)
            if changed == record:
                continue
            (copy / file).write_text(json.dumps(changed), encoding="utf-8")
            with pytest.raises(ModelError) as refused:
                load_model(copy)
            assert "\n" not in str(refused.value), (place, changed)
