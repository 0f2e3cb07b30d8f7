"""Folders of transformers as model folders of ours: imported, trained on, saved, loaded, refused."""

import json
import re
import shutil
import sys
from pathlib import Path

import pytest
import torch
import transformers

from korbert.errors import ModelError
from korbert.huggingface.exporting import export
from korbert.huggingface.importing import import_folder, load_encoder, read_folder
from korbert.modeling import TransformersConfig, load_model, read_config, save_model
from korbert.modeling.adapters.transformers_config import CLASSES
from korbert.tokenization import TransformersTokenizer
from tests.korbert.tiny import same_weights

LENGTH = r"tokenizer_config\.json: model_max_length: .* is not a number of pieces"


@pytest.mark.parametrize("model_type", CLASSES)
def test_an_imported_folder_is_loaded_and_saved_again(foreign, model_type, tmp_path):
    target = tmp_path / "model"
    imported, _ = import_folder(foreign(model_type), target)
    model, tokenizer = load_model(target, "encoder")
    assert isinstance(tokenizer, TransformersTokenizer)
    assert isinstance(model.config, TransformersConfig)
    assert (model.config, read_config(target)["kind"]) == (imported.config, "encoder")
    assert not model.training
    assert same_weights(model.encoder, load_encoder(foreign(model_type), read_folder(foreign(model_type))))
    assert all(weight.requires_grad for weight in model.parameters())
    save_model(tmp_path / "again", model, tokenizer)
    for path in target.rglob("*"):
        assert path.is_dir() or path.read_bytes() == (tmp_path / "again" / path.relative_to(target)).read_bytes()


def test_weights_of_heads_are_ignored(foreign, tmp_path):
    """And those in several files are read."""
    folder = Path(shutil.copytree(foreign("bert"), tmp_path / "mlm"))
    (folder / "model.safetensors").unlink()
    whole = transformers.BertForMaskedLM(transformers.AutoConfig.from_pretrained(folder))
    whole.save_pretrained(folder, max_shard_size="5KB")
    assert (folder / "model.safetensors.index.json").is_file()
    import_folder(folder, tmp_path / "model")
    assert same_weights(load_model(tmp_path / "model", "encoder")[0].encoder.model, whole.bert)


@pytest.fixture
def copy(foreign, tmp_path):
    """A folder to be spoilt."""
    return Path(shutil.copytree(foreign("bert"), tmp_path / "copy"))


def test_an_id_beyond_any_vocabulary_is_refused(copy, tmp_path):
    path = copy / "tokenizer.json"
    tokenizer = json.loads(path.read_text(encoding="utf-8"))
    tokenizer["model"]["vocab"]["[MASK]"] = 10**9
    path.write_text(json.dumps(tokenizer), encoding="utf-8")
    with pytest.raises(ModelError, match=r"tokenizer\.json: id 1000000000 is beyond any vocabulary"):
        import_folder(copy, tmp_path / "model")


def change_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | changes), encoding="utf-8")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "gpt2"}, "model_type 'gpt2' is not supported: use one of albert, bert, convbert"),
        ({"model_type": ["bert"]}, "is not supported: use one of albert"),
        ({"is_decoder": True}, "is a decoder, which sees no later pieces"),
        ({"korbert_format": 1}, "is a model of korbert: use it as it is"),
        ({"num_hidden_layers": 3}, r"missing keys: encoder\.layer\.2\..*: weights of another encoder"),
        ({"num_hidden_layers": "two"}, r"config\.json: is not a valid config of bert \(.*'num_hidden_layers'"),
        ({"pad_token_id": -1}, r"config\.json: invalid encoder config: pad_token_id: Input should be greater than"),
        ({"quantization_config": {"quant_method": "bnb"}}, "quantization_config: 'bnb': import the model with its"),
        ({"auto_map": {"AutoModel": "code.Model"}}, "auto_map: the model needs code of its folder, which is never run"),
        ({"vocab_size": 77}, "encoder cannot be loaded|mismatched keys"),
    ],
)
def test_other_configs_are_refused(copy, tmp_path, changes, message):
    change_config(copy, **changes)
    with pytest.raises(ModelError, match=message):
        import_folder(copy, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_an_index_may_name_only_safetensors(copy, tmp_path):
    """A pickle behind it would run its code."""
    for index, said in (
        ({"weight_map": {"a": "m.safetensors", "b": "pytorch_model.bin"}}, "'pytorch_model.bin' is not a safetensors"),
        ({"weight_map": {"a": "../other/model.safetensors"}}, "'../other/model.safetensors' is not a safetensors"),
        ({"weight_map": []}, "cannot be read"),
        ([], "cannot be read"),
    ):
        path = copy / "model.safetensors.index.json"
        path.write_text(json.dumps(index), encoding="utf-8")
        with pytest.raises(ModelError, match=rf"{path}: weight_map: {said}"):
            import_folder(copy, tmp_path / "model")


def test_pickles_are_refused_with_the_command_that_converts_them(copy, tmp_path):
    weights = transformers.AutoModel.from_pretrained(copy).state_dict()
    (copy / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"has no model\.safetensors: name a folder"):
        import_folder(copy, tmp_path / "model")
    torch.save(weights, copy / "pytorch_model.bin")
    with pytest.raises(ModelError, match=r"has only pytorch_model\.bin, and loading a pickle can run code") as caught:
        import_folder(copy, tmp_path / "model")
    exec(str(caught.value).split('python -c "')[1].rstrip('"'))
    import_folder(copy, tmp_path / "model")
    model, _ = load_model(tmp_path / "model", "encoder")
    assert torch.equal(model.encoder.token_weight, weights["embeddings.word_embeddings.weight"])


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        *(
            ("tokenizer_config.json", json.dumps({"model_max_length": one}), LENGTH)
            for one in ("long", [], True, 0, -1)
        ),
        ("model.safetensors", None, "its encoder cannot be loaded"),  # cut off
        ("config.json", "[]", "is not a JSON object"),
        ("config.json", "{", "cannot be read"),
    ],
)
def test_broken_files_are_refused(copy, tmp_path, file, content, said):
    (copy / file).write_bytes((copy / file).read_bytes()[:200] if content is None else content.encode())
    for folder, fault in ((copy, said), (tmp_path / "absent", "cannot be read")):
        with pytest.raises(ModelError, match=fault):
            import_folder(folder, tmp_path / "model")


def test_a_model_folder_that_was_changed_is_refused(foreign, tmp_path, monkeypatch):
    target = tmp_path / "model"
    import_folder(foreign("bert"), target)
    shutil.copytree(target, tmp_path / "whole")
    with pytest.raises(ModelError, match="is of transformers already: export writes only"):
        export(target, tmp_path / "exported")
    change_config(target, encoder=read_config(target)["encoder"] | {"hidden_size": 32})
    with pytest.raises(ModelError, match=r"config.json: was changed since the model was saved"):
        load_model(target)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ModelError, match=r"config.json: an encoder of architecture bert needs transformers: pip"):
        load_model(tmp_path / "whole")


def test_the_command_says_what_it_imported(foreign, tmp_path, command):
    target = tmp_path / "model"
    said = command("import", foreign("electra"), target).out.splitlines()
    number = sum(weight.numel() for weight in load_model(target)[0].parameters())
    assert said[:2] == ["architecture: electra, 2 layers of 16", f"parameters: {number:,}"]
    assert said[2].endswith("entries; BertTokenizer")
    assert said[4].startswith("text: 나는 어제 학교에")
    assert re.fullmatch(r"pieces: 나는 어제 학교에.*unknown\)", said[5])
    assert (said[3], said[6:]) == ("maximum length: 64 pieces", [str(target)])
    assert "model: already exists: name a new folder" in command("import", foreign("electra"), target, code=2).err
    assert "학교" in command("tokenize", target, "학교에 간다").out
