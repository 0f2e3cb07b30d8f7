"""Counts of pretraining models, against built ones and a training step; of papers: tests/whole/test_mission.py."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from korbert.modeling import EncoderConfig, PretrainingModel
from korbert.modeling.counting import count_operations, flops_per_piece, parameters
from korbert.pretraining import PretrainingLoss

SHARED = {"num_hidden_layers": 4, "layer_groups": 2}
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}


@pytest.mark.parametrize("architecture", ["bert", "modern"])
@pytest.mark.parametrize("changes", [{}, SHARED, {"boundary_embedding": True, "overlap_embedding": True}])
def test_counted_operations_equal_those_of_a_training_step(architecture, changes):
    """Rows of 12 pieces, two of each predicted beside the first; local layers reach all."""
    config = EncoderConfig(**{**SIZES, "architecture": architecture, "vocab_size": 500, **changes})
    model = PretrainingModel(config).eval()
    state = torch.get_rng_state()
    assert sum(parameters(config).values()) == sum(weight.numel() for weight in model.parameters())
    assert count_operations(config, 24)[1] > 10 * 16
    assert torch.equal(torch.get_rng_state(), state)
    batch = {
        **{name: torch.zeros(36, dtype=torch.int64) for name in ("input_ids", "token_type_ids", "boundaries")},
        "lengths": (12, 12, 12),
        "label_places": torch.tensor([3, 4, 15, 20, 30, 35]),
    }
    batch |= {"labels": torch.arange(6), "mlm_count": torch.tensor(6)}
    batch |= {"pair_label": torch.tensor([0, 1, 0]), "nsp_count": torch.tensor(3)}
    with FlopCounterMode(display=False) as counter, torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        PretrainingLoss()(model, batch)["loss"].backward()
    full = flops_per_piece(config, length=12, label_share=1 / 6, scored=500)
    assert counter.get_total_flops() == pytest.approx(36 * sum(full.values()), rel=1e-6)
    sampled = flops_per_piece(config, length=12, label_share=1 / 6, scored=50)
    assert sampled["encoder"] == full["encoder"]
    assert sampled["heads"] < full["heads"]
