from typing import Any

import pytest
import torch

from korbert.errors import ModelError
from korbert.modeling.config import EncoderConfig
from korbert.modeling.models import (
    ChoiceModel,
    ClassificationModel,
    PretrainingModel,
    ReadingModel,
    TaggingModel,
    init_encoder_from,
)


def small(architecture: str = "modern", **others: Any) -> EncoderConfig:
    sizes = {
        "architecture": architecture,
        "vocab_size": 100,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "max_position_embeddings": 64,
    }
    return EncoderConfig.model_validate(sizes | others)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


IDS = torch.randint(5, 100, (3, 12), generator=seeded(0))
ARCHITECTURES = ["bert", "modern"]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@torch.inference_mode()
def test_pretraining_heads_agree(architecture):
    model = PretrainingModel(small(architecture), seeded(1)).eval()
    mlm, nsp = model(IDS)
    hidden = model.encoder(IDS)
    rows = hidden[IDS > 50]
    assert mlm.shape == (3, 12, 100)
    assert nsp.shape == (3, 2)
    torch.testing.assert_close(model.mlm_head(rows), mlm[IDS > 50])
    torch.testing.assert_close(
        model.mlm_hidden(rows) @ model.decoder_weight.T + model.decoder_bias, model.mlm_head(rows)
    )
    torch.testing.assert_close(model.nsp_head(hidden[:, 0]), nsp)


def test_the_vocabulary_has_one_matrix():
    model = PretrainingModel(small())
    assert model.decoder_weight is model.encoder.embeddings.token.weight
    assert [name for name, tensor in model.state_dict().items() if tensor.shape[0] == 100] == [
        "encoder.embeddings.token.weight",
        "mlm.bias",
    ]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_weights_come_from_the_generator_alone(architecture):
    models = []
    for noise, seed in ((0, 5), (1, 5), (0, 6)):
        torch.manual_seed(noise)
        models.append(PretrainingModel(small(architecture), seeded(seed)).state_dict())
    first, same, other = models
    assert all(torch.equal(first[name], same[name]) for name in first)
    assert not torch.equal(first["encoder.embeddings.token.weight"], other["encoder.embeddings.token.weight"])


def test_weights_come_from_torch_without_a_generator():
    drawn = []
    for _ in range(2):
        torch.manual_seed(7)
        drawn.append(ReadingModel(small()).state_dict())
    assert all(torch.equal(drawn[0][name], drawn[1][name]) for name in drawn[0])


@pytest.mark.parametrize(("architecture", "residual"), [("bert", 0.02), ("modern", 0.01)])
def test_fresh_weights_have_the_deviations_of_the_papers(architecture, residual):
    config = small(architecture, hidden_size=256, intermediate_size=256, num_attention_heads=4)
    weights = PretrainingModel(config, seeded(2)).state_dict()
    cut = 0.8796  # deviation of a normal cut at two of its own
    for name, deviation in (("embeddings.token", 0.02), ("layers.1.attention.qkv", 0.02), ("layers.1.down", residual)):
        drawn = weights[f"encoder.{name}.weight"]
        assert float(drawn.std()) == pytest.approx(cut * deviation, rel=0.03)
        assert float(drawn.abs().max()) <= 2 * deviation
    assert not any(tensor.any() for name, tensor in weights.items() if name.endswith("bias"))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@torch.inference_mode()
def test_pooling(architecture):
    mask = torch.tensor([[1] * 12, [1] * 7 + [0] * 5, [1] + [0] * 11])
    for pooling, pooled in (
        ("mean", lambda hidden: torch.stack([hidden[0].mean(0), hidden[1, :7].mean(0), hidden[2, 0]])),
        ("first", lambda hidden: hidden[:, 0]),
    ):
        model = ClassificationModel(small(architecture), 3, pooling, generator=seeded(1)).eval()
        expected = model.classifier(model.head(pooled(model.encoder(IDS, mask))))
        torch.testing.assert_close(model(IDS, mask), expected)
        torch.testing.assert_close(model(IDS), model(IDS, torch.ones_like(IDS)))


@pytest.mark.parametrize(
    ("num_labels", "problem_type", "message"),
    [
        (2, "regression", "regression with 2 labels: set num_labels to 1"),
        (1, "single_label_classification", r"single_label_classification with 1 label: give at least two, or another"),
    ],
)
def test_labels_fit_the_problem(num_labels, problem_type, message):
    with pytest.raises(ModelError, match=message):
        ClassificationModel(small(), num_labels, problem_type=problem_type)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@torch.inference_mode()
def test_a_choice_is_scored_as_regression_would(architecture):
    model = ChoiceModel(small(architecture), "first", seeded(1)).eval()
    other = ClassificationModel(small(architecture), 1, "first", None, seeded(1), "regression").eval()
    assert model(IDS).shape == (3, 1)
    torch.testing.assert_close(model(IDS), other(IDS), atol=0, rtol=0)
    assert model.head_settings() == {"pooling": "first"}
    assert (model.kind, other.kind) == ("choice", "classification")


@torch.inference_mode()
def test_reading_scores_each_piece_twice():
    start, end = ReadingModel(small(), seeded(1)).eval()(IDS)
    assert start.shape == end.shape == IDS.shape
    assert not torch.allclose(start, end)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@torch.inference_mode()
def test_tagging_scores_each_piece_for_each_label(architecture):
    model = TaggingModel(small(architecture), ["O", "B-PS", "I-PS"], seeded(1)).eval()
    hidden = model.encoder(IDS)
    expected = model.classifier(model.head(hidden) if architecture == "modern" else hidden)
    torch.testing.assert_close(model(IDS), expected)
    assert expected.shape == (*IDS.shape, 3)
    assert model.head_settings() == {"labels": ["O", "B-PS", "I-PS"]}


@pytest.mark.parametrize("labels", [[], ["O", "B-PS", "O"]])
def test_labels_of_pieces_are_told_apart(labels):
    with pytest.raises(ModelError, match=r"labels \[.*\]: give at least one, without duplicates"):
        TaggingModel(small(), labels)


def test_labels_are_named_once_each():
    assert ClassificationModel(small(), 2).labels == ("0", "1")
    with pytest.raises(ModelError, match="1 names for 2 labels: give one name per label"):
        ClassificationModel(small(), 2, labels=["좋음"])


@pytest.mark.parametrize("kind", [ClassificationModel, ChoiceModel])
@pytest.mark.parametrize(("architecture", "source"), [("bert", "nsp.pooler."), ("modern", "mlm.transform.")])
def test_take_encoder(architecture, source, kind):
    pretrained = PretrainingModel(small(architecture), seeded(1))
    before = {name: tensor.clone() for name, tensor in pretrained.state_dict().items()}
    model = kind(small(architecture, hidden_dropout_prob=0.3), generator=seeded(2))
    fresh = model.classifier.weight.clone()
    init_encoder_from(model, pretrained)
    for name, tensor in model.state_dict().items():
        if not name.startswith("classifier"):
            assert torch.equal(tensor, before[name.replace("head.", source)]), name
    assert torch.equal(model.classifier.weight, fresh)
    torch.nn.init.ones_(model.encoder.embeddings.token.weight)
    assert torch.equal(pretrained.decoder_weight, before["encoder.embeddings.token.weight"]), "weights are copies"


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_take_encoder_of_a_model_that_is_no_pretraining_one(architecture):
    source = ClassificationModel(small(architecture), 2, generator=seeded(1))
    model = ReadingModel(small(architecture), seeded(2))
    init_encoder_from(model, source)
    assert torch.equal(model.encoder.embeddings.token.weight, source.encoder.embeddings.token.weight)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_reader_goes_on_with_its_head(architecture):
    source, model = (ReadingModel(small(architecture), seeded(seed)) for seed in (1, 2))
    init_encoder_from(model, source)
    ours, theirs = model.state_dict(), source.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vocab_size": 90}, r"embeddings\.token\.weight: 90x32 in the model, 100x32 in the pretrained one"),
        ({"type_vocab_size": 2}, r"embeddings\.token_type\.weight: 2x32 in the model, absent in the pretrained one"),
        ({"boundary_embedding": True}, r"embeddings\.boundary\.weight: 4x32 in the model, absent in the pretrained"),
        ({"num_hidden_layers": 1}, r"layers\.1\.attention\.output\.weight: absent in the model, 32x32 in"),
    ],
)
def test_take_encoder_refuses_another_encoder(change, message):
    with pytest.raises(ModelError, match=message):
        init_encoder_from(ReadingModel(small(**change)), PretrainingModel(small()))
