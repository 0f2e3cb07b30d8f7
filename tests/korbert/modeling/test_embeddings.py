"""Pieces that both texts of a pair have."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from korbert.modeling import PretrainingModel, QuestionAnsweringModel, init_encoder_from
from korbert.modeling.embeddings import Embeddings, occurs_in_both
from korbert.modeling.rows import Rows
from korbert.tokenization.vocabulary import FIRST_PIECE
from tests.korbert.tiny import tiny_config

CPU = torch.device("cpu")
_pieces = st.lists(st.integers(FIRST_PIECE - 3, FIRST_PIECE + 5), max_size=12)


@settings(max_examples=200, deadline=None)
@given(pairs=st.lists(st.tuples(_pieces, _pieces).filter(any), min_size=1, max_size=4))
def test_in_both_marks_pieces_of_both_segments(pairs):
    sides = [side for first, second in pairs for side in ((first, second), (second, first))]
    wanted = [piece in other and piece >= FIRST_PIECE for own, other in sides for piece in own]
    ids = torch.tensor([piece for first, second in pairs for piece in [*first, *second]])
    segments = torch.tensor([number for pair in pairs for number, pieces in enumerate(pair) for _ in pieces])
    rows = Rows([len(first) + len(second) for first, second in pairs], CPU)
    assert occurs_in_both(ids, rows, segments).tolist() == wanted


@pytest.mark.parametrize("architecture", ["modern", "bert"])
def test_piece_dropout_takes_vectors_away_in_training_alone(architecture):
    embeddings = Embeddings(tiny_config(architecture, vocab_size=FIRST_PIECE + 50, hidden_dropout_prob=0))
    ids = torch.arange(FIRST_PIECE, FIRST_PIECE + 50).repeat(40)
    rows = Rows([len(ids) // 50] * 50, CPU)
    without = embeddings.train()(ids, rows)
    embeddings.piece_dropout = 0.2
    assert torch.equal(embeddings.eval()(ids, rows), without)
    torch.manual_seed(7)
    dropped = embeddings.train()(ids, rows)
    changed = (dropped != without).any(dim=1)
    assert changed.float().mean().item() == pytest.approx(0.2, abs=0.04)
    nothing = torch.zeros(len(ids), embeddings.token.weight.shape[1])
    assert torch.equal(dropped[changed], embeddings(ids, rows, vectors=nothing)[changed])
    torch.manual_seed(7)
    assert torch.equal(embeddings(ids, rows), dropped), "a step that is repeated drops the same pieces"


def test_a_pretrained_encoder_is_given_an_overlap_embedding():
    config = tiny_config(vocab_size=FIRST_PIECE + 50)
    pretrained = PretrainingModel(config, torch.Generator().manual_seed(1)).eval()
    config = config.model_copy(update={"overlap_embedding": True})
    model = QuestionAnsweringModel(config, torch.Generator().manual_seed(2)).eval()
    init_encoder_from(model, pretrained)
    ids = torch.randint(FIRST_PIECE, FIRST_PIECE + 50, (2, 20), generator=torch.Generator().manual_seed(3))
    segments = (torch.arange(20) >= 8).long().expand(2, 20)
    before = pretrained.encoder(ids, token_type_ids=segments)
    embeddings = model.encoder.embeddings
    assert torch.allclose(embeddings.overlap.weight.norm(), embeddings.token.weight.norm(dim=1).mean())
    assert torch.equal(model.encoder(ids), pretrained.encoder(ids)), "a single text has nothing in common with another"
    marked = model.encoder(ids, token_type_ids=segments)
    assert not torch.allclose(marked, before)

    # Padding changes nothing: pieces of one row are not compared with those of another.
    padded = [F.pad(tensor, (0, 5)) for tensor in (ids, torch.ones_like(ids), segments)]
    assert torch.allclose(model.encoder(*padded)[:, :20], marked, atol=1e-5)
    for number in range(2):
        alone = model.encoder(ids[number, None], token_type_ids=segments[number, None])
        assert torch.allclose(alone, marked[number, None], atol=1e-5)
