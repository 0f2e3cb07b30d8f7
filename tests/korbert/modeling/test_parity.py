"""Our encoders against those of transformers with the same weights. tests/korbert/huggingface has the other heads."""

import pytest
import torch
import transformers

from korbert.huggingface.conversion import config_to_transformers, to_transformers
from korbert.modeling import EncoderConfig, models
from tests.korbert.tiny import stirred

VOCABULARY = 300
LENGTHS = (8, 64, 65, 66, 130, 300)  # around half the window of local attention, and beyond the whole
SIZES = {"vocab_size": VOCABULARY, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 160}
BERT = EncoderConfig(architecture="bert", num_hidden_layers=4, **SIZES)
MODERN = EncoderConfig(num_hidden_layers=5, **SIZES)


def theirs_of(ours, name):
    """The class of transformers with our weights."""
    values = config_to_transformers(ours.config, ours.kind)
    assert values["architectures"] == [name]
    kind = getattr(transformers, name)
    theirs = kind(kind.config_class(**values, attn_implementation="eager")).eval()
    weights = to_transformers(ours.state_dict(), ours.config, ours.kind)
    missing, unexpected = theirs.load_state_dict(weights, strict=False)
    assert not unexpected
    assert set(missing) <= set(theirs._tied_weights_keys or ())
    return theirs


def padded_batch(length):
    """Three rows: full, two thirds, and 5 pieces of real ones; two segments."""
    generator = torch.Generator().manual_seed(length)
    ids = torch.randint(5, VOCABULARY, (3, length), generator=generator)
    kept = torch.tensor([length, 2 * length // 3, 5])
    mask, segments = (torch.arange(length) < kept[:, None]).long(), torch.arange(length) > kept[:, None] // 2
    return {"input_ids": ids * mask, "attention_mask": mask, "token_type_ids": segments * mask}


def batches():
    """Every length padded, and without padding with and without a mask."""
    made = [padded_batch(length) for length in LENGTHS]
    plain = [{"input_ids": batch["input_ids"][:1], "token_type_ids": batch["token_type_ids"][:1]} for batch in made]
    return made + plain + [row | {"attention_mask": torch.ones_like(row["input_ids"])} for row in plain]


def assert_equal(ours, theirs, mask):
    if mask is not None and theirs.shape[:2] == mask.shape:
        ours, theirs = ours[mask.bool()], theirs[mask.bool()]
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "changes",
    [{}, {"layer_groups": 1}, {"layer_groups": 2, "embedding_size": 24}, {"embedding_size": 24}],
    ids=["bert", "albert", "two groups, narrow", "narrow, no shared layers"],
)
@torch.inference_mode()
def test_bert_equals_the_classes_for_pretraining(changes):
    """With narrow embeddings it is ALBERT, which shares layers (Lan et al. 2020, 3.1) or not."""
    ours = stirred(models.PretrainingModel(BERT.model_copy(update=changes)), 0.05)
    theirs = theirs_of(ours, "AlbertForPreTraining" if changes else "BertForPreTraining")
    for batch in batches():
        mask = batch.get("attention_mask")
        expected = theirs(**batch, output_hidden_states=True)
        mlm, nsp = ours(**batch)
        assert_equal(ours.encoder(**batch), expected.hidden_states[-1], mask)
        assert_equal(mlm, expected.prediction_logits, mask)
        assert_equal(nsp, expected["sop_logits" if changes else "seq_relationship_logits"], None)


@pytest.mark.parametrize("width", [24, 64], ids=["narrow", "as-wide-as-the-encoder"])
@torch.inference_mode()
def test_bert_with_narrow_embeddings_equals_electra(width):
    ours = stirred(models.DetectionModel(BERT.model_copy(update={"embedding_size": width})), 0.05)
    theirs = theirs_of(ours, "ElectraForPreTraining")
    for batch in batches():
        expected = theirs(**batch, output_hidden_states=True)
        assert_equal(ours.encoder(**batch), expected.hidden_states[-1], batch.get("attention_mask"))
        assert_equal(ours(**batch), expected.logits, batch.get("attention_mask"))


@pytest.mark.parametrize("every", [3, 1, 2], ids=["default", "all-global", "every-second"])
@torch.inference_mode()
def test_modern_equals_modernbert(every):
    config = MODERN.model_copy(update={"global_attn_every_n_layers": every})
    ours = stirred(models.PretrainingModel(config), 0.05)
    narrow = stirred(models.EmbeddingModel(config.model_copy(update={"local_attention": 32})), 0.05)
    theirs, encoder = theirs_of(ours, "ModernBertForMaskedLM"), theirs_of(narrow, "ModernBertModel")
    for batch in batches():
        del batch["token_type_ids"]
        mask = batch.get("attention_mask")
        assert_equal(ours(**batch)[0], theirs(**batch).logits, mask)
        assert_equal(narrow.encoder(**batch), encoder(**batch).last_hidden_state, mask)
