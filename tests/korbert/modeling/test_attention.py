import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from korbert.modeling.attention import Rotated, View, attend, rotation
from korbert.modeling.encoder import BertLayer
from korbert.modeling.rows import Rows
from tests.korbert.tiny import tiny_config

CPU = torch.device("cpu")
HEADS, SIZE = 2, 4


def by_definition(qkv, lengths, radius=None):
    """Softmax of the scores of all pairs of a row's pieces that see each other, row by row, in float64."""
    mixed = []
    for row in qkv.double().split(lengths):
        query, key, value = row.permute(1, 2, 0, 3)  # (H, T, D/H)
        scores = query @ key.transpose(1, 2) / math.sqrt(SIZE)
        positions = torch.arange(len(row))
        if radius is not None:
            scores = scores.masked_fill((positions[:, None] - positions).abs() > radius, -math.inf)
        mixed.append((scores.softmax(-1) @ value).transpose(0, 1))
    return torch.cat(mixed).float()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 70), min_size=1, max_size=12), st.sampled_from([None, 1, 3, 8, 64]), st.integers(0, 99))
def test_attention_follows_its_definition_for_any_row_lengths(lengths, radius, seed):
    qkv = torch.randn(sum(lengths), 3, HEADS, SIZE, generator=torch.Generator().manual_seed(seed), requires_grad=True)
    weights = torch.randn(sum(lengths), HEADS, SIZE, generator=torch.Generator().manual_seed(seed + 1))
    ours = attend(qkv, Rows(lengths, CPU), radius)
    wanted = by_definition(qkv, lengths, radius)
    torch.testing.assert_close(ours, wanted, atol=1e-5, rtol=1e-5)
    (slope,) = torch.autograd.grad((ours * weights).sum(), qkv)
    (wanted_slope,) = torch.autograd.grad((wanted * weights).sum(), qkv)
    torch.testing.assert_close(slope, wanted_slope, atol=1e-5, rtol=1e-5)


def test_local_attention_needs_memory_linear_in_the_row(monkeypatch):
    """8,192 pieces: no tensor of attention has more than a few hundred places for each of them."""
    largest = []
    original = F.scaled_dot_product_attention

    def watched(query, key, value, **others):
        largest.append(max(query.numel(), key.numel(), others["attn_mask"].numel()))
        return original(query, key, value, **others)

    monkeypatch.setattr(F, "scaled_dot_product_attention", watched)
    qkv = torch.randn(8_192, 3, HEADS, SIZE)
    mixed = attend(qkv, Rows([8_192], CPU), radius=64)
    assert max(largest) <= 8_192 * 3 * 64
    near = by_definition(qkv[5_000 - 64 : 5_000 + 65], [129], 64)
    torch.testing.assert_close(mixed[5_000], near[64], atol=1e-5, rtol=1e-5)


def test_rotation_rotates_queries_and_keys_but_not_values():
    qkv = torch.randn(5, 3, HEADS, SIZE, dtype=torch.float64, requires_grad=True)
    turn = rotation(torch.tensor([0, 1, 2, 30, 31]), SIZE, 100.0)
    turned = Rotated.apply(qkv, *turn)
    pairs = torch.complex(qkv[:, :2, :, :2].float(), qkv[:, :2, :, 2:].float())
    wanted = pairs * torch.complex(*turn)[:, None, None]
    torch.testing.assert_close(turned[:, :2, :, :2], wanted.real.double(), atol=1e-6, rtol=0)
    torch.testing.assert_close(turned[:, :2, :, 2:], wanted.imag.double(), atol=1e-6, rtol=0)
    assert torch.equal(turned[:, 2], qkv[:, 2])
    assert torch.autograd.gradcheck(lambda states: Rotated.apply(states, *turn), qkv, eps=1e-2, atol=1e-4)


@pytest.mark.parametrize("radius", [None, 2])
def test_dropout_is_for_training_alone(radius):
    layer = BertLayer(tiny_config(attention_probs_dropout_prob=0.5, hidden_dropout_prob=0.0))
    given = torch.randn(12, 32), Rows([8, 4], CPU), View(None, radius)
    assert not torch.equal(layer(*given), layer(*given))
    layer.eval()
    assert torch.equal(layer(*given), layer(*given))
