"""Our encoders against those of transformers with the same weights."""

from functools import partial

import pytest
import torch
import transformers

from korbert.errors import ModelError
from korbert.huggingface.importing import load_transformers
from korbert.modeling import models

VOCABULARY = 300
LENGTHS = (8, 64, 65, 66, 130, 300)  # around half the window of local attention, and beyond the whole
TOLERANCE = 1e-5
SIZES = {"vocab_size": VOCABULARY, "hidden_size": 64, "num_attention_heads": 4, "pad_token_id": 0}
LABELS = {0: "O", 1: "B-인물", 2: "I-인물"}
NAMED = {"labels": tuple(LABELS.values())}
THREE, TWO, ONE = ({"labels": tuple(f"LABEL_{label}" for label in range(number))} for number in (3, 2, 1))


def bert_config(**others):
    return transformers.BertConfig(num_hidden_layers=4, intermediate_size=160, **SIZES, **others)


def modern_config(every, **others):
    types = ["sliding_attention" if layer % every else "full_attention" for layer in range(5)]
    ids = dict.fromkeys(("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"))
    layers = {"num_hidden_layers": 5, "intermediate_size": 96, "layer_types": types}
    return transformers.ModernBertConfig(**layers, **SIZES, **ids, **others)


def stir(model):
    """Moves all weights, so that no bias is 0 and no norm 1 and a wrong name cannot hide."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=generator))
    return model.eval()


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
    torch.testing.assert_close(ours, theirs, rtol=0, atol=TOLERANCE)


def albert_config(**others):
    """Embeddings narrower than the encoder; if not told otherwise a group a layer, so that no layers share weights."""
    sizes = {"embedding_size": 24, "num_hidden_layers": 4, "num_hidden_groups": 4, "intermediate_size": 160}
    return transformers.AlbertConfig(hidden_act="gelu", **{**sizes, **SIZES, **others})


def electra_config(**others):
    sizes = {"embedding_size": 24, "num_hidden_layers": 4, "intermediate_size": 160}
    return transformers.ElectraConfig(**{**sizes, **SIZES, **others})


@pytest.mark.parametrize("groups", [None, 4, 1, 2], ids=["bert", "no shared layers", "albert", "two groups"])
@torch.inference_mode()
def test_bert_equals_the_classes_for_pretraining(tmp_path, groups):
    """With narrow embeddings it is ALBERT, which shares layers (Lan et al. 2020, 3.1) or not."""
    if groups is None:
        name, config, second = "Bert", bert_config(), "seq_relationship_logits"
    else:
        name, config, second = "Albert", albert_config(num_hidden_groups=groups), "sop_logits"
    theirs = stir(getattr(transformers, f"{name}ForPreTraining")(config))
    theirs.save_pretrained(tmp_path)
    ours = load_transformers(tmp_path)
    assert type(ours) is models.PretrainingModel
    assert ours.decoder_weight.shape == (VOCABULARY, 24 if groups else 64)
    for batch in batches():
        mask = batch.get("attention_mask")
        expected = theirs(**batch, output_hidden_states=True)
        mlm, nsp = ours(**batch)
        assert_equal(ours.encoder(**batch), expected.hidden_states[-1], mask)
        assert_equal(mlm, expected.prediction_logits, mask)
        assert_equal(nsp, expected[second], None)


@pytest.mark.parametrize("width", [24, 64], ids=["narrow", "as-wide-as-the-encoder"])
@torch.inference_mode()
def test_bert_with_narrow_embeddings_equals_electra(tmp_path, width):
    config = electra_config(embedding_size=width)
    for name in ("ElectraForMaskedLM", "ElectraModel", "ElectraForPreTraining"):
        theirs = stir(getattr(transformers, name)(config))
        theirs.save_pretrained(tmp_path / name)
        ours = load_transformers(tmp_path / name)
        for batch in batches():
            mask = batch.get("attention_mask")
            expected = theirs(**batch, output_hidden_states=True)
            assert_equal(ours.encoder(**batch), expected.hidden_states[-1], mask)
            if name != "ElectraModel":
                scores = ours(**batch)
                assert_equal(scores[0] if isinstance(scores, tuple) else scores, expected.logits, mask)


@pytest.mark.parametrize("every", [3, 1, 2], ids=["default", "all-global", "every-second"])
@torch.inference_mode()
def test_modern_equals_modernbert(tmp_path, every):
    theirs = stir(transformers.ModernBertForMaskedLM(modern_config(every)))
    narrow = stir(transformers.ModernBertModel(modern_config(every, local_attention=32)))
    theirs.save_pretrained(tmp_path / "masked-lm")
    narrow.save_pretrained(tmp_path / "model")
    ours, encoder = load_transformers(tmp_path / "masked-lm"), load_transformers(tmp_path / "model").encoder
    assert type(ours) is models.PretrainingModel
    for batch in batches():
        del batch["token_type_ids"]
        mask = batch.get("attention_mask")
        assert_equal(ours(**batch)[0], theirs(**batch).logits, mask)
        assert_equal(encoder(**batch), narrow(**batch).last_hidden_state, mask)


MODERN = partial(modern_config, 3)
FAMILIES = {"Bert": bert_config, "Albert": albert_config, "Electra": electra_config, "ModernBert": MODERN}
PROBLEMS = ("single_label_classification", "multi_label_classification", "regression")
SINGLE, MULTI, REGRESSION = ({"problem_type": name} for name in PROBLEMS)
HEADS = [
    ("ForSequenceClassification", {"id2label": LABELS, **SINGLE}, models.ClassificationModel, {**NAMED, **SINGLE}),
    ("ForSequenceClassification", {"num_labels": 3, **MULTI}, models.ClassificationModel, {**THREE, **MULTI}),
    ("ForSequenceClassification", {"num_labels": 1, **REGRESSION}, models.ClassificationModel, {**ONE, **REGRESSION}),
    ("ForSequenceClassification", {}, models.ClassificationModel, {**TWO, **SINGLE}),
    ("ForSequenceClassification", {"num_labels": 1}, models.ClassificationModel, REGRESSION),
    ("ForMultipleChoice", {}, models.MultipleChoiceModel, {"pooling": "first"}),
    ("ForQuestionAnswering", {}, models.QuestionAnsweringModel, {}),
    ("ForTokenClassification", {"id2label": LABELS}, models.TokenClassificationModel, NAMED),
]
MEAN = {"classifier_pooling": "mean"}, {"pooling": "mean"}  # of ModernBERT alone
CASES = [(family, *head) for family in FAMILIES for head in HEADS]
CASES += [("ModernBert", name, MEAN[0], kind, MEAN[1]) for name, _, kind, _ in (HEADS[0], HEADS[5])]


@pytest.mark.parametrize(("family", "name", "settings", "kind", "read"), CASES)
@torch.inference_mode()
def test_heads_equal_those_of_transformers(tmp_path, family, name, settings, kind, read):
    theirs = stir(getattr(transformers, family + name)(FAMILIES[family](**settings)))
    theirs.save_pretrained(tmp_path)
    if family == "Electra" and issubclass(kind, models.ClassificationModel):
        with pytest.raises(ModelError, match=rf"{family}{name}'\]: its head has GELU.* with `korbert import`"):
            load_transformers(tmp_path)
        return
    ours = load_transformers(tmp_path)
    assert (type(ours), {key: getattr(ours, key) for key in read}) == (kind, read)
    for batch in batches():
        compare(ours, theirs, batch)


def compare(ours, theirs, batch):
    """Scores of both for the same rows. Multiple choice gets them as the choices of one text."""
    given, expected = dict(batch), ours(**batch)
    if theirs.config.model_type == "modernbert":
        del given["token_type_ids"]
    if isinstance(ours, models.MultipleChoiceModel):
        given.setdefault("attention_mask", torch.ones_like(batch["input_ids"]))  # ModernBERT's mean asks for it
        assert_equal(expected[:, 0], theirs(**{key: rows[None] for key, rows in given.items()}).logits[0], None)
    elif isinstance(ours, models.QuestionAnsweringModel):
        got = theirs(**given)
        assert_equal(expected[0], got.start_logits, batch.get("attention_mask"))
        assert_equal(expected[1], got.end_logits, batch.get("attention_mask"))
    else:
        mask = batch.get("attention_mask") if isinstance(ours, models.TokenClassificationModel) else None
        assert_equal(expected, theirs(**given).logits, mask)
