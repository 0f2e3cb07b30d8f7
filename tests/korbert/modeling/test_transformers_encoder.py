"""Encoders of transformers behind our interface, against transformers itself."""

import pytest
import torch
import transformers

from korbert.errors import ModelError
from korbert.huggingface.importing import load_encoder, read_folder
from korbert.modeling import ClassificationModel, Encoder, TransformersConfig, TransformersEncoder
from korbert.modeling.adapters.transformers_config import CLASSES
from korbert.modeling.rows import Rows
from tests.korbert.tiny import same_weights, tiny_config

TEXTS = ["나는 어제 학교에 갔다가 친구를 만났는데", "서울", "학교에 간다. 👍🏻 뷁"]
PAIRS = ["정말 반가웠어!", "수도는 서울이다. 인구는", "친구"]


def batch_of(folder, pairs=False):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return dict(tokenizer(TEXTS, PAIRS if pairs else None, padding=True, return_tensors="pt"))


def transformers_output(folder, batch, **kwargs):
    """The output of the model of transformers for this batch, without token types if it does not take them."""
    model = transformers.AutoModel.from_pretrained(folder).eval()
    inputs = dict(batch)
    if model.config.model_type in ("xlm", "flaubert", "distilbert", "modernbert"):
        inputs.pop("token_type_ids", None)
    if model.config.model_type == "longformer":
        kwargs["global_attention_mask"] = torch.eye(1, inputs["input_ids"].shape[1]).long().expand(len(TEXTS), -1)
    return model(**inputs, **kwargs)


@pytest.mark.parametrize("model_type", CLASSES)
@pytest.mark.parametrize("pairs", [False, True], ids=["texts", "pairs"])
@torch.inference_mode()
def test_vectors_are_those_of_transformers(foreign, model_type, pairs):
    folder = foreign(model_type)
    encoder, batch = load_encoder(folder, read_folder(folder)), batch_of(folder, pairs)
    mask = batch["attention_mask"]
    expected = transformers_output(folder, batch).last_hidden_state * mask[:, :, None]
    types = batch.get("token_type_ids")
    if types is not None and model_type == "funnel":
        types = types.masked_fill(types == 2, 0)  # as our tasks give them
    got = encoder(batch["input_ids"], mask, types)
    torch.testing.assert_close(got, expected, atol=1e-5, rtol=0)
    lengths = mask.sum(dim=1).tolist()
    torch.testing.assert_close(encoder(batch["input_ids"], None, types, lengths=lengths), got, atol=0, rtol=0)
    assert not got[~mask.bool()].any()
    assert mask.sum() < mask.numel()


@pytest.mark.parametrize("model_type", CLASSES)
@torch.inference_mode()
def test_all_layers_are_those_of_transformers(foreign, model_type):
    folder = foreign(model_type)
    encoder, batch = load_encoder(folder, read_folder(folder)), batch_of(folder)
    ids, mask = batch["input_ids"], batch["attention_mask"]
    if model_type == "funnel":
        with pytest.raises(ModelError, match="funnel: its layers differ in pieces: take the last one"):
            encoder.all_layers(ids, mask)
        return
    layers = encoder.all_layers(ids, mask)
    hidden = torch.stack(list(transformers_output(folder, batch, output_hidden_states=True).hidden_states))
    assert layers.shape == (encoder.config.num_hidden_layers + 1, *ids.shape, encoder.config.hidden_size)
    torch.testing.assert_close(layers, hidden * mask[:, :, None], atol=1e-5, rtol=0)
    torch.testing.assert_close(layers[-1], encoder(ids, mask), atol=1e-6, rtol=0)


@pytest.mark.parametrize("model_type", CLASSES)
@torch.inference_mode()
def test_padding_changes_no_vector(foreign, model_type):
    """Nor does its id: RoBERTa counts positions over ids that are not padding."""
    folder = foreign(model_type)
    encoder, batch = load_encoder(folder, read_folder(folder)), batch_of(folder)
    ids, mask = batch["input_ids"], batch["attention_mask"].bool()
    together, lengths = encoder(ids, mask), mask.sum(dim=1).tolist()
    torch.testing.assert_close(encoder(ids.masked_fill(~mask, 7), mask), together, atol=0, rtol=0)
    if model_type not in ("convbert", "funnel"):
        for row, length in enumerate(lengths):
            alone = encoder(ids[row : row + 1, :length])
            torch.testing.assert_close(together[row, :length], alone[0], atol=1e-5, rtol=0)


def test_initial_weights_come_from_the_generator_alone_and_odd_configs_are_refused(foreign):
    config = read_folder(foreign("bert"))
    before = torch.get_rng_state()
    first = TransformersEncoder(config, torch.Generator().manual_seed(1))
    assert torch.equal(torch.get_rng_state(), before)
    other = TransformersEncoder(config, torch.Generator().manual_seed(2))
    assert not torch.equal(first.token_weight, other.token_weight)
    model = ClassificationModel(config, 2, generator=torch.Generator().manual_seed(1))
    assert same_weights(model.encoder, first)
    config = read_folder(foreign("roberta"))
    assert config.max_position_embeddings == 64
    with pytest.raises(ModelError, match="a row of 65 pieces is longer than the 64 positions of this encoder"):
        TransformersEncoder(config)(torch.ones((1, 65), dtype=torch.int64))
    unknown = TransformersConfig.model_validate(config.model_dump() | {"transformers": {"model_type": "x"}})
    with pytest.raises(ModelError, match="model_type 'x' is not supported"):
        TransformersEncoder(unknown)


@pytest.mark.parametrize("architecture", ["bert", "modern"])
@torch.inference_mode()
def test_our_own_encoder_gives_all_layers(architecture):
    encoder = Encoder(tiny_config(architecture, num_hidden_layers=3)).eval()
    ids, mask = torch.arange(5, 17).view(2, 6), torch.tensor([[1] * 6, [1] * 4 + [0] * 2])
    layers = encoder.all_layers(ids, mask)
    assert layers.shape == (4, 2, 6, 32)
    torch.testing.assert_close(layers[-1], encoder(ids, mask), atol=0, rtol=0)
    assert not layers[:, 1, 4:].any()
    embedded = encoder.embeddings(ids[mask.bool()], Rows([6, 4], ids.device))
    torch.testing.assert_close(layers[0][mask.bool()], embedded, atol=0, rtol=0)
