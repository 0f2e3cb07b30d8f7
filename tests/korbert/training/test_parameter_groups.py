import pytest
from torch import nn

from korbert.errors import SettingsError
from korbert.modeling import PretrainingModel
from korbert.training.optimizers import parameter_groups
from korbert.training.settings import OptimizerSettings
from tests.korbert.tiny import tiny_config


@pytest.fixture(scope="module", params=["bert", "modern"])
def model(request):
    return PretrainingModel(tiny_config(request.param))


def grouped(model, **changes):
    """(kind, name) -> (peak, weight decay, pattern)."""
    names = {parameter: name for name, parameter in model.named_parameters()}
    settings = OptimizerSettings(**{"learning_rate": 0.01, "weight_decay": 0.1, **changes})
    return {
        names[parameter]: (kind, group["peak"], group["weight_decay"], group["pattern"])
        for kind, groups in parameter_groups(model, settings).items()
        for group in groups
        for parameter in group["params"]
    }


def test_matrices_decay_and_vectors_do_not(model):
    expected = {
        name: ("adamw", 0.01, 0.1 if parameter.ndim == 2 else 0.0, None) for name, parameter in model.named_parameters()
    }
    assert grouped(model, kind="adamw") == expected


def test_muon_takes_the_matrices_of_the_layers_alone(model):
    by_name = grouped(model, kind="muon")
    assert by_name.keys() == {name for name, _ in model.named_parameters()}
    parts = ("attention.qkv", "attention.output", "up", "down")
    matrices = {f"encoder.layers.{layer}.{part}.weight" for layer in (0, 1) for part in parts}
    assert {name for name, (kind, *_) in by_name.items() if kind == "muon"} == matrices
    assert {kind for kind, *_ in by_name.values()} == {"muon", "adamw"}


def test_the_first_group_whose_pattern_matches_holds(model):
    token, first, last = "encoder.embeddings.token.*", "encoder.layers.1.*", "encoder.*"
    groups = [
        {"pattern": token, "rate_factor": 5.0, "weight_decay": 0.0},
        {"pattern": first, "kind": "adamw"},
        {"pattern": last, "rate_factor": 0.5},
    ]
    by_name = grouped(model, kind="muon", groups=groups)
    assert by_name["encoder.embeddings.token.weight"] == ("adamw", 0.05, 0.0, token)
    assert by_name["encoder.layers.1.up.weight"] == ("adamw", 0.01, 0.1, first)
    assert by_name["encoder.layers.1.feed_forward_norm.weight"] == ("adamw", 0.01, 0.0, first)
    assert by_name["encoder.layers.0.up.weight"] == ("muon", 0.005, 0.1, last)
    assert by_name["encoder.embeddings.norm.weight"] == ("adamw", 0.005, 0.0, last)
    assert by_name["mlm.transform.dense.weight"] == ("adamw", 0.01, 0.1, None)


def test_frozen_parameters_are_in_no_group():
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    model[0].weight.requires_grad_(False)
    assert grouped(model, groups=[{"pattern": "0.weight"}]).keys() == {"0.bias", "1.weight", "1.bias"}


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([{"pattern": "encoder.*"}, {"pattern": "encoder.embedings.token.*"}],
         r"optimizer\.groups\.1: .* matches no parameter; the nearest of \d+ are encoder\.embeddings\.token\."),
        ([{"pattern": "encoder.*"}, {"pattern": "encoder.layers.*"}],
         r"groups\.1: .* matches only parameters that groups before it match: remove it or move it up"),
        ([{"pattern": "*embeddings.token.*", "kind": "muon"}],
         r"groups\.0: muon can train no .* \(encoder\.embeddings\.token\.weight is one of 1\): choose another kind"),
    ],
)  # fmt: skip
def test_a_group_that_changes_nothing_is_refused(model, groups, message):
    with pytest.raises(SettingsError, match=message):
        grouped(model, groups=groups)
