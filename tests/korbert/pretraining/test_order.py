"""Sentence order (sop), and pieces from left to right (clm)."""

import numpy as np
import pytest
import torch
import transformers

from korbert.modeling import EncoderConfig, PretrainingModel
from korbert.modeling.attention import attend
from korbert.modeling.rows import Rows
from korbert.pretraining import MaskingSettings, PairSettings, PretrainingLoss, PretrainingRows, heldout_rows
from korbert.pretraining.objectives.pairs import IN_ORDER, SWAPPED


def rows_of(corpus, ids, *objectives):
    return PretrainingRows(corpus.files, ids, 64, MaskingSettings(), PairSettings(), 3, objectives=objectives)


def test_half_of_the_pairs_are_swapped(corpus, ids):
    ordered, swapped = rows_of(corpus, ids, "mlm", "nsp"), rows_of(corpus, ids, "mlm", "sop")
    labels = []
    for number in range(400):
        row = swapped.row(0, number)
        label = row["pair_label"][0]
        labels.append(label)
        original = row["input_ids"].copy()
        original[row["label_places"]] = row["labels"]
        first, second = (original[1:][row["token_type_ids"][1:] == segment][:-1] for segment in (0, 1))
        start, end = ordered._pairs.single(number).first
        text, levels = ordered._shards.pieces(start, end)
        if label == -100:
            assert original[1:-1].tolist() == text.tolist()
            continue
        together = [second, first] if label == SWAPPED else [first, second]
        assert np.concatenate(together).tolist() == text.tolist()
        assert levels[len(together[0])] == 3  # cut between two sentences
    pairs = [label for label in labels if label >= 0]
    assert set(pairs) == {IN_ORDER, SWAPPED}
    assert 0.4 < np.mean(pairs) < 0.6


def test_clm_predicts_each_next_piece(corpus, ids):
    row = rows_of(corpus, ids, "clm").row(0, 5)
    shown = row["input_ids"]
    assert row["labels"].tolist() == shown[1:-1].tolist()
    assert row["label_places"].tolist() == list(range(len(shown) - 2))
    assert ids.mask not in shown
    (batch,) = rows_of(corpus, ids, "clm").batch(0, 8)
    assert batch["clm_count"] == len(batch["labels"])
    torch.testing.assert_close(batch["input_ids"][batch["label_places"] + 1], batch["labels"])
    same = heldout_rows(corpus.files, ids, 64, MaskingSettings(), PairSettings(), 3, objectives=("clm",))
    assert same.row(0, 5)["input_ids"].tolist() == shown.tolist()


def config_of(architecture, **more):
    sizes = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 48}
    return EncoderConfig(
        architecture=architecture,
        vocab_size=2000,
        max_position_embeddings=600,
        causal=True,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        **sizes,
        **more,
    )


@pytest.mark.parametrize("architecture", ["bert", "modern"])
@pytest.mark.parametrize("length", [5, 40, 300])  # all at once, a local layer that is cut, windows
@torch.inference_mode()
def test_no_piece_sees_those_behind_it(architecture, length):
    more = {"local_attention": 32} if architecture == "modern" else {}
    model = PretrainingModel(config_of(architecture, **more), torch.Generator().manual_seed(0), ("clm",)).eval()
    ids = torch.randint(400, 2000, (3, length), generator=torch.Generator().manual_seed(1))
    lengths = (length, length - 2, length - 1)
    place = length // 2
    other = ids.clone()
    other[:, place:] = torch.randint(400, 2000, (3, length - place), generator=torch.Generator().manual_seed(2))
    one, two = (model.encoder(rows, lengths=lengths) for rows in (ids, other))
    torch.testing.assert_close(one[:, :place], two[:, :place])
    assert not torch.allclose(one[0, place:], two[0, place:])
    earlier = ids.clone()
    earlier[:, 0] += 1
    assert not torch.allclose(model.encoder(earlier, lengths=lengths)[0, length - 1], one[0, length - 1])


@torch.inference_mode()
def test_causal_attention_equals_transformers():
    ours = PretrainingModel(config_of("bert"), torch.Generator().manual_seed(0), ("clm",)).eval()
    theirs = transformers.BertModel(
        transformers.BertConfig(
            vocab_size=2000,
            hidden_size=32,
            num_hidden_layers=3,
            num_attention_heads=2,
            intermediate_size=48,
            max_position_embeddings=600,
            is_decoder=True,
        ),
        add_pooling_layer=False,
    ).eval()
    from korbert.huggingface.conversion import to_transformers

    tensors = to_transformers(ours.state_dict(), ours.config, "pretraining")
    kept = {name.removeprefix("bert."): tensor for name, tensor in tensors.items() if name.startswith("bert.")}
    theirs.load_state_dict({name: tensor for name, tensor in kept.items() if not name.startswith("pooler")})
    ids = torch.randint(400, 2000, (2, 30), generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(ours.encoder(ids), theirs(ids).last_hidden_state, atol=1e-5, rtol=1e-4)


def test_causal_gradients_are_those_of_plain_attention():
    """The short rows' own backward pass against PyTorch's, with padding in the block."""
    lengths = (7, 5, 6)
    generator = torch.Generator().manual_seed(0)
    qkv = torch.randn(sum(lengths), 3, 2, 8, generator=generator, requires_grad=True)
    found = attend(qkv, Rows(lengths, torch.device("cpu")), causal=True)
    parts = []
    for part in qkv.split(lengths):
        query, key, value = part.permute(1, 2, 0, 3)[:, None]
        mixed = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        parts.append(mixed[0].transpose(0, 1))
    expected = torch.cat(parts)
    torch.testing.assert_close(found, expected)
    weights = torch.randn(expected.shape, generator=generator)
    ours, theirs = (torch.autograd.grad((one * weights).sum(), qkv)[0] for one in (found, expected))
    torch.testing.assert_close(ours, theirs)


def test_clm_learns_what_follows(ids, shards, train):
    """The same few documents again and again: their pieces are known from those before."""
    written = shards([("wiki", [6, 6])] * 4, files=1)
    rows = PretrainingRows(written.files, ids, 32, MaskingSettings(), PairSettings(), 0, objectives=("clm",))
    model = PretrainingModel(config_of("modern"), torch.Generator().manual_seed(0), ("clm",))
    loss = PretrainingLoss(("clm",))
    (batch,) = rows.batch(0, 4)
    losses = train(model, loss, batch, 60, 5e-3)
    assert losses[0]["clm_loss"] > 6
    assert losses[-1]["loss"] < 1
