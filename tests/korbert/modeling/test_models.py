import pytest
import torch

from korbert.errors import ModelError
from korbert.modeling import ClassificationModel, PretrainingModel, QuestionAnsweringModel, init_encoder_from, models
from tests.korbert.tiny import same_weights, tiny_config

ARCHITECTURES = ["bert", "modern"]


def seeded(seed):
    return torch.Generator().manual_seed(seed)


IDS = torch.randint(5, 100, (3, 12), generator=seeded(0))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_weights_come_from_the_generator_or_from_torch(architecture):
    def drawn(noise, generator=None):
        torch.manual_seed(noise)
        return PretrainingModel(tiny_config(architecture), generator)

    first = drawn(0, seeded(5))
    assert same_weights(first, drawn(1, seeded(5)))
    assert not torch.equal(first.encoder.token_weight, drawn(0, seeded(6)).encoder.token_weight)
    assert same_weights(drawn(7), drawn(7))


@pytest.mark.parametrize(("architecture", "residual"), [("bert", 0.02), ("modern", 0.01)])
def test_initial_weights_have_the_deviations_of_the_papers(architecture, residual):
    config = tiny_config(architecture, hidden_size=256, intermediate_size=256, num_attention_heads=4)
    weights = PretrainingModel(config, seeded(2)).state_dict()
    cut = 0.8796  # deviation of a normal cut at two of its own
    for name, deviation in (("embeddings.token", 0.02), ("layers.1.attention.qkv", 0.02), ("layers.1.down", residual)):
        drawn = weights[f"encoder.{name}.weight"]
        assert float(drawn.std()) == pytest.approx(cut * deviation, rel=0.03)
        assert float(drawn.abs().max()) <= 2 * deviation
    assert not any(tensor.any() for name, tensor in weights.items() if name.endswith("bias"))


def test_labels_that_do_not_fit_are_refused():
    for kind, arguments, message in (
        (ClassificationModel, {"problem_type": "regression"}, "regression with 2 labels: set num_labels to 1"),
        (ClassificationModel, {"num_labels": 1}, "single_label_classification with 1 label: give two or more"),
        (ClassificationModel, {"labels": ["좋음"]}, "1 names for 2 labels: give one name per label"),
        (models.TokenClassificationModel, {"labels": []}, r"labels \[\]: give at least one, without duplicates"),
        (
            models.TokenClassificationModel,
            {"labels": ["O", "B-PS", "O"]},
            r"labels \[.*\]: give at least one, without dupl",
        ),
    ):
        with pytest.raises(ModelError, match=message):
            kind(tiny_config(), **arguments)
        assert ClassificationModel(tiny_config(), 2).labels == ("0", "1")


@pytest.mark.parametrize("kind", [ClassificationModel, models.MultipleChoiceModel])
@pytest.mark.parametrize(("architecture", "source"), [("bert", "nsp.pooler."), ("modern", "mlm.transform.")])
def test_a_classifier_takes_encoder_and_matching_head(architecture, source, kind):
    pretrained = PretrainingModel(tiny_config(architecture), seeded(1))
    before = {name: tensor.clone() for name, tensor in pretrained.state_dict().items()}
    model = kind(tiny_config(architecture, hidden_dropout_prob=0.3), generator=seeded(2))
    fresh = model.classifier.weight.clone()
    init_encoder_from(model, pretrained)
    for name, tensor in model.state_dict().items():
        if not name.startswith("classifier"):
            assert torch.equal(tensor, before[name.replace("head.", source)]), name
    assert torch.equal(model.classifier.weight, fresh)
    torch.nn.init.ones_(model.encoder.embeddings.token.weight)
    assert torch.equal(pretrained.encoder.token_weight, before["encoder.embeddings.token.weight"]), "weights are copies"
    # A reader, and a model of slots, takes the head of another.
    for kind in (QuestionAnsweringModel, models.SlotsModel):
        source, model = (own(tiny_config(architecture), seeded(2)) for own in (QuestionAnsweringModel, kind))
        torch.nn.init.ones_(source.classifier.weight)
        init_encoder_from(model, source)
        assert same_weights(model, source)


def test_another_encoder_is_refused():
    for change, message in (
        ({"vocab_size": 90}, r"embeddings\.token\.weight: 90x32 in the model, 100x32 in the pretrained one"),
        ({"type_vocab_size": 2}, r"embeddings\.token_type\.weight: 2x32 in the model, absent in the pretrained one"),
        ({"boundary_embedding": True}, r"embeddings\.boundary\.weight: 4x32 in the model, absent in the pretrained"),
        ({"num_hidden_layers": 1}, r"layers\.1\.attention\.output\.weight: absent in the model, 32x32 in"),
    ):
        with pytest.raises(ModelError, match=message):
            init_encoder_from(QuestionAnsweringModel(tiny_config(**change)), PretrainingModel(tiny_config()))
