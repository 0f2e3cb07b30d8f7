import copy
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from korbert.errors import ModelError
from korbert.modeling.encoder import Encoder
from korbert.modeling.rows import Rows
from tests.korbert.tiny import tiny_config

small = partial(tiny_config, num_hidden_layers=4, max_position_embeddings=128, local_attention=16)


def encoder_of(config):
    torch.manual_seed(3)
    return Encoder(config).eval()


MARKED = {"type_vocab_size": 2, "boundary_embedding": True}
OTHERS = [{"layer_groups": 2}, {}, {"global_attn_every_n_layers": 1}, MARKED]
ENCODERS = [("bert", {}), *(("modern", others) for others in OTHERS)]


@pytest.mark.parametrize(("architecture", "others"), ENCODERS)
@settings(max_examples=15, deadline=None)
@given(length=st.integers(1, 60), padding=st.integers(0, 60), seed=st.integers(0, 99))
@torch.inference_mode()
def test_padding_changes_nothing(architecture, others, length, padding, seed):
    encoder = encoder_of(small(architecture, **others))
    drawn = partial(torch.randint, size=(2, length), generator=torch.Generator().manual_seed(seed))
    ids = drawn(5, 100)
    extra = {"token_type_ids": drawn(0, 2), "boundaries": drawn(0, 4, dtype=torch.uint8)}
    plain = encoder(ids, **extra)
    given = {"input_ids": ids, "attention_mask": torch.ones_like(ids), **extra}
    padded = encoder(**{name: F.pad(row, (0, padding)) for name, row in given.items()})
    torch.testing.assert_close(padded[:, :length], plain, atol=1e-5, rtol=0)
    assert padded.isfinite().all()


@pytest.mark.parametrize(("architecture", "others"), ENCODERS[:3])
def test_rows_of_padding_alone_are_finite_in_both_directions(architecture, others):
    encoder = encoder_of(small(architecture, **others)).train()
    mask = torch.tensor([[1] * 40, [0] * 40])
    encoder(torch.zeros_like(mask), mask)[0].sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in encoder.parameters())


@pytest.mark.parametrize(("architecture", "others"), ENCODERS)
def test_wanted_pieces_have_the_vectors_and_gradients_of_all(architecture, others):
    encoder = encoder_of(small(architecture, **others))
    rows = Rows([5, 40, 1, 9], torch.device("cpu"))
    ids, flags = torch.randint(5, 100, (rows.pieces,)), torch.zeros(rows.pieces, dtype=torch.int64)
    wanted = torch.tensor([54, 3, 0, 20])
    weights = torch.randn(4, 32)
    every = encoder.forward_flat(ids, rows, flags, flags)[wanted]
    some = encoder.forward_flat(ids, rows, flags, flags, vectors=encoder.embeddings.token(ids), wanted=wanted)
    torch.testing.assert_close(some, every)
    names, parameters = zip(*encoder.named_parameters(), strict=True)
    slopes = [torch.autograd.grad((vectors * weights).sum(), parameters) for vectors in (some, every)]
    for name, one, other in zip(names, *slopes, strict=True):
        torch.testing.assert_close(one, other, msg=name)


@torch.inference_mode()
def test_token_types_and_boundaries_are_seen_where_configured():
    ids, ones = torch.full((1, 6), 7), torch.ones(1, 6, dtype=torch.long)
    plain = encoder_of(small())
    assert torch.equal(plain(ids), plain(ids, token_type_ids=ones, boundaries=ones))
    typed = encoder_of(small(type_vocab_size=2))
    assert torch.equal(typed(ids), typed(ids, token_type_ids=0 * ones))
    assert not torch.allclose(typed(ids), typed(ids, token_type_ids=ones))
    bounded = encoder_of(small(boundary_embedding=True))
    assert not torch.allclose(bounded(ids, boundaries=0 * ones), bounded(ids, boundaries=ones))
    with pytest.raises(ModelError, match=r"embeds boundaries, but the batch has none: pass boundaries="):
        bounded(ids)
    with pytest.raises(ModelError, match=r"a row of 129 pieces is longer than the 128 positions .* lower max_length"):
        encoder_of(small("bert"))(torch.zeros(1, 129, dtype=torch.long))


@pytest.mark.parametrize("architecture", ["bert", "modern"])
@pytest.mark.parametrize("groups", [1, 2])
def test_shared_layers_are_layers_with_the_same_weights(architecture, groups):
    """Also of global and local layers."""
    shared = encoder_of(small(architecture, layer_groups=groups))
    apart = encoder_of(small(architecture))
    if architecture == "modern":  # the first layer is others, too, which need the norm
        apart.layers[0].attention_norm = copy.deepcopy(apart.layers[1].attention_norm)
    weights = {name: tensor for name, tensor in shared.state_dict().items() if not name.startswith("layers.")}
    for number in range(4):
        own = shared.layers[number * groups // 4].state_dict()
        weights |= {f"layers.{number}.{name}": tensor for name, tensor in own.items()}
    apart.load_state_dict(weights)
    ids = torch.arange(5, 85).view(2, 40)
    torch.testing.assert_close(shared(ids), apart(ids), atol=0, rtol=0)
    torch.testing.assert_close(shared.all_layers(ids), apart.all_layers(ids), atol=0, rtol=0)


def test_with_piece_weights_a_mean_is_a_weighted_one():
    encoder = Encoder(tiny_config(piece_weights=True))
    torch.nn.init.normal_(encoder.piece_weight.weight)
    ids = torch.arange(5, 14)[None]
    weighted, weigh = encoder(ids), encoder.piece_weight
    encoder.piece_weight = None
    plain = encoder(ids)
    weights = torch.sigmoid(weigh(plain))
    assert weights.std() > 0.05
    torch.testing.assert_close(F.normalize(weighted.mean(dim=1)), F.normalize((weights * plain).sum(dim=1)))
