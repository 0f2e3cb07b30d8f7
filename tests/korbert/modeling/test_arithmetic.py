"""Counts of parameters and operations, against built models and against PyTorch's own counter."""

from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from korbert.modeling import EncoderConfig, PretrainingModel
from korbert.modeling.arithmetic import HEADS, activation_numbers, encoder_parameters, flop_a_piece, parameters, visible
from korbert.pretraining import pretraining_loss

PAPER = {"architecture": "bert", "vocab_size": 30_522}
BASE = {**PAPER, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072}
LARGE = {**PAPER, "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
TINY = {"vocab_size": 500, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}


def _config(values: dict[str, Any], **changes: Any) -> EncoderConfig:
    return EncoderConfig(**{**values, **changes})


@pytest.mark.parametrize("architecture", ["bert", "modern"])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"boundary_embedding": True, "overlap_embedding": True},
        {"type_vocab_size": 0},
        {"type_vocab_size": 2},
        {"num_hidden_layers": 1, "max_position_embeddings": 40},
        {"num_hidden_layers": 6, "layer_groups": 2, "embedding_size": 8},
        {"num_hidden_layers": 4, "layer_groups": 1},
        {"hidden_size": 24, "num_hidden_layers": 5, "num_attention_heads": 3, "intermediate_size": 100},
    ],
)
def test_parameters_are_those_of_the_built_model(architecture: str, changes: dict[str, Any]) -> None:
    config = _config(TINY, architecture=architecture, **changes)
    model = PretrainingModel(config)
    assert sum(parameters(config).values()) == sum(parameter.numel() for parameter in model.parameters())
    heads = {"MLM transform": model.mlm.transform, "pooler": model.nsp.pooler, "NSP classifier": model.nsp.classifier}
    for name, module in {**heads, "token embedding": model.encoder.embeddings.token}.items():
        assert parameters(config)[name] == sum(parameter.numel() for parameter in module.parameters()), name


@pytest.mark.parametrize(("sizes", "count"), [(BASE, 109_482_240), (LARGE, 335_141_888)])
def test_the_papers_sizes_have_the_papers_counts(sizes: dict[str, Any], count: int) -> None:
    config = EncoderConfig(**sizes)
    assert encoder_parameters(parameters(config)) == count
    assert sum(parameters(config).values()) == count + sum(parameters(config)[name] for name in HEADS)


@pytest.mark.parametrize("length", [1, 5, 9, 10, 31])
def test_local_layers_see_what_lies_in_reach(length: int) -> None:
    places = torch.arange(length)
    near = ((places[:, None] - places[None, :]).abs() <= 4).float().sum(dim=1).mean()
    seen = visible(_config(TINY, local_attention=8), length)
    assert seen == {True: length, False: pytest.approx(float(near))}


def test_shared_layers_have_the_papers_count() -> None:
    """Lan et al. 2020, table 1: ALBERT base and large have 12 and 18 million parameters."""
    shared = {"vocab_size": 30_000, "embedding_size": 128, "layer_groups": 1}
    assert [round(encoder_parameters(parameters(_config(size, **shared))) / 1e6) for size in (BASE, LARGE)] == [12, 18]


@pytest.mark.parametrize("architecture", ["bert", "modern"])
@pytest.mark.parametrize("changes", [{}, {"num_hidden_layers": 4, "layer_groups": 2}], ids=["own", "shared"])
def test_products_are_those_that_pytorch_counts(architecture: str, changes: dict[str, Any]) -> None:
    """Rows of 12 pieces, two of each predicted; local layers reach all, and attention is computed by products."""
    config = _config(TINY, architecture=architecture, **changes)
    model = PretrainingModel(config).eval()
    batch = {
        **{name: torch.zeros(36, dtype=torch.int64) for name in ("input_ids", "token_type_ids", "boundaries")},
        "lengths": (12, 12, 12),
        "label_places": torch.tensor([3, 4, 15, 20, 30, 35]),
        "labels": torch.arange(6),
        "mlm_count": torch.tensor(6),
        "pair_label": torch.tensor([0, 1, 0]),
        "nsp_count": torch.tensor(3),
    }
    with FlopCounterMode(display=False) as counter, torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        pretraining_loss(model, batch)["loss"].backward()
    work = flop_a_piece(config, length=12, label_share=1 / 6, scored=500, pieces_a_step=36)
    counted = sum(part.both for name, part in work.items() if name not in ("embedding", "optimizer"))
    assert counter.get_total_flops() == pytest.approx(36 * counted, rel=1e-6)
    assert work["optimizer"].both == 16 * sum(parameters(config).values()) / 36


def test_a_sampled_head_costs_its_negatives() -> None:
    config = _config(TINY)
    full, sampled = (
        flop_a_piece(config, length=12, label_share=0.15, scored=scored, pieces_a_step=36) for scored in (500, 50)
    )
    assert full["vocabulary"].both == pytest.approx(10 * sampled["vocabulary"].both)
    assert {name for name in full if full[name] != sampled[name]} == {"vocabulary"}


def test_what_layers_keep_grows_with_them() -> None:
    bert = _config(TINY, architecture="bert")
    assert activation_numbers(bert) > activation_numbers(bert.model_copy(update={"num_hidden_layers": 1}))
    plain = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    assert activation_numbers(bert) > activation_numbers(bert.model_copy(update=plain))
