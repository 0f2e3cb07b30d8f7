import pytest
import torch

from korbert.modeling.attention import SelfAttention, global_mask, local_mask, rotation
from korbert.modeling.config import EncoderConfig

CPU = torch.device("cpu")


def test_without_padding_there_is_no_mask():
    assert global_mask(None) is None
    assert global_mask(torch.ones(2, 5, dtype=torch.long)) is None
    assert local_mask(None, 5, 64, CPU) is None


def test_a_mask_that_is_known_is_not_looked_at():
    mask = torch.ones(2, 5, dtype=torch.long, device="meta")
    assert global_mask(mask, padded=False) is None
    assert global_mask(mask, padded=True).shape == (2, 1, 1, 5)
    with pytest.raises((RuntimeError, NotImplementedError)):
        global_mask(mask)  # asks the device


def test_global_mask_hides_padding():
    mask = global_mask(torch.tensor([[1, 1, 0], [1, 1, 1]]))
    assert mask is not None
    assert mask.shape == (2, 1, 1, 3)
    assert mask[:, 0, 0].tolist() == [[True, True, False], [True, True, True]]


def test_local_mask_reaches_to_both_sides_and_padding_sees_itself():
    visible = global_mask(torch.tensor([[1, 1, 1, 0, 0]]))
    mask = local_mask(visible, 5, 1, CPU)
    assert mask is not None
    assert mask[0, 0].int().tolist() == [
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [0, 1, 1, 0, 0],
        [0, 0, 1, 1, 0],
        [0, 0, 0, 0, 1],
    ]


@pytest.mark.parametrize(("length", "masked"), [(65, False), (66, True)])
def test_rows_within_the_reach_need_no_local_mask(length, masked):
    assert (local_mask(None, length, 64, CPU) is not None) == masked


def test_rotation_by_hand():
    cosines, sines = rotation(3, 4, 100.0, CPU)
    angles = torch.tensor([[0.0, 0.0], [1.0, 0.1], [2.0, 0.2]])  # place x 100 ** (0, -1/2)
    torch.testing.assert_close(cosines, torch.cat([angles, angles], 1).cos())
    torch.testing.assert_close(sines, torch.cat([angles, angles], 1).sin())


def test_rotary_attention_sees_distance_alone():
    """The same pieces, moved along the row together, attend to each other as before."""
    config = EncoderConfig(
        vocab_size=9, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    torch.manual_seed(1)
    attention = SelfAttention(config).eval()
    hidden = torch.randn(1, 6, 16)
    cosines, sines = rotation(50, config.head_size, 10_000.0, CPU)
    first = attention(hidden, None, (cosines[:6], sines[:6]))
    moved = attention(hidden, None, (cosines[40:46], sines[40:46]))
    torch.testing.assert_close(first, moved, atol=1e-5, rtol=0)


def test_dropout_is_for_training_alone():
    config = EncoderConfig(
        vocab_size=9,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        attention_probs_dropout_prob=0.5,
    )
    attention = SelfAttention(config)
    hidden = torch.randn(1, 6, 16)
    assert not torch.equal(attention(hidden, None, None), attention(hidden, None, None))
    attention.eval()
    assert torch.equal(attention(hidden, None, None), attention(hidden, None, None))
