"""Every head as `transformers` computes it, and on encoders of its own."""

import pytest
import torch
import transformers
from exported import FAMILIES, TOLERANCE, compared, exported, small, tokenizer_of

from korbert.errors import ModelError
from korbert.huggingface import export
from korbert.modeling import TERMS_VERSION, ClassificationModel, LinearModel, MultipleChoiceModel, save_model
from korbert.tokenization import pad_batch
from tests.korbert.tiny import HEADS as ALL_HEADS
from tests.korbert.tiny import model_with

HEADS = [head for head in ALL_HEADS if head != "embedding"]  # that one has files of its own

TEXTS = ("아버지가 방에 들어가신다.", "나는 어제 친구를 만났다.", "서울")
PAIRS = ("불을 켜신다.", "정말 반가웠어! 다음에 또 보자.", "인구는 약 940만 명이다.")


def rows_of(tokenizer, texts, pairs):
    arrays = pad_batch(tokenizer.encode_batch(list(texts), list(pairs)), tokenizer.pad_id)
    names = ("input_ids", "attention_mask", "token_type_ids", "boundaries")
    return {name: torch.from_numpy(arrays[name]) for name in names}


@pytest.mark.parametrize(
    ("family", "head"),
    [  # quickly each head once and each family once
        pytest.param(family, head, marks=() if head == "labels" or family == "bert" else pytest.mark.slow)
        for family in FAMILIES
        for head in HEADS
    ],
)
def test_an_exported_model_computes_the_same(tiny_tokenizer, tmp_path, family, head):
    model = model_with(head, small(tiny_tokenizer, family))
    differences = compared(tmp_path, model, tiny_tokenizer)
    names = {"pretraining": {"mlm_logits"}, "question-answering": {"start_logits", "end_logits"}}
    second = {"nsp_logits"} if head == "pretraining" and not family.endswith("modernbert") else set()
    assert differences.keys() == names.get(head, {"logits"}) | second
    theirs = transformers.AutoConfig.from_pretrained(tmp_path / "theirs", trust_remote_code=True)
    assert theirs.model_type == family
    if head not in ("pretraining", "multiple-choice", "question-answering"):
        assert theirs.id2label == dict(enumerate(model.labels))
        assert theirs.label2id == {label: place for place, label in enumerate(model.labels)}


@pytest.mark.parametrize("family", FAMILIES)
@torch.inference_mode()
def test_token_types_and_boundaries_of_the_exported_tokenizer_matter(tiny_tokenizer, tmp_path, family):
    """tokenizer(a, b) has the token types of B where the encoder has them."""
    model = model_with("one label", small(tiny_tokenizer, family))
    folder = exported(tmp_path, model, tiny_tokenizer)
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(folder, trust_remote_code=True).eval()
    rows = tokenizer_of(folder)(list(TEXTS), list(PAIRS), padding=True, return_tensors="pt")
    ours = rows_of(tiny_tokenizer, TEXTS, PAIRS)
    assert torch.equal(rows["input_ids"], ours["input_ids"])
    expected = model(**ours)
    torch.testing.assert_close(theirs(**rows).logits, expected, atol=TOLERANCE, rtol=0)
    assert ("token_type_ids" in rows) == (family != "modernbert")
    assert ("boundaries" in rows) == (family == "korbert-modernbert")
    for name in ("token_type_ids", "boundaries"):
        if name in rows:
            assert torch.equal(rows[name], ours[name])
            rows[name].zero_()
            assert (theirs(**rows).logits - expected).abs().max() > 1e-3
    if "boundaries" in rows:
        del rows["boundaries"]
        with pytest.raises(ValueError, match="pass those that its tokenizer returns"):
            theirs(**rows)


@pytest.mark.parametrize("family", FAMILIES)
@torch.inference_mode()
def test_choices_are_scored_as_rows_of_choices(tiny_tokenizer, tmp_path, family):
    """Each text with each continuation, as scripts for SWAG give them: (texts, choices, pieces)."""
    model = MultipleChoiceModel(small(tiny_tokenizer, family), "first")
    folder = exported(tmp_path, model, tiny_tokenizer)
    theirs = transformers.AutoModelForMultipleChoice.from_pretrained(folder, trust_remote_code=True).eval()
    texts, choices = [text for text in TEXTS for _ in PAIRS], list(PAIRS) * len(TEXTS)
    rows = tokenizer_of(folder)(texts, choices, padding=True, return_tensors="pt")
    logits = theirs(**{name: column.view(len(TEXTS), len(PAIRS), -1) for name, column in rows.items()}).logits
    expected = model(**rows_of(tiny_tokenizer, texts, choices))
    torch.testing.assert_close(logits, expected.view(3, 3), atol=TOLERANCE, rtol=0)
    assert logits.std(dim=1).min() > 1e-3


@pytest.mark.parametrize("kind", [ClassificationModel, MultipleChoiceModel])
def test_mean_pooling_is_exported_with_modernbert_only(tiny_tokenizer, tmp_path, kind):
    """ModernBERT has it, the others are refused."""
    compared(tmp_path, kind(small(tiny_tokenizer, "modernbert"), pooling="mean"), tiny_tokenizer)
    name = "ForMultipleChoice" if kind is MultipleChoiceModel else "ForSequenceClassification"
    for family, theirs in (("bert", "Bert"), ("albert", "Albert")):
        save_model(tmp_path / family, kind(small(tiny_tokenizer, family), pooling="mean"), tiny_tokenizer)
        said = rf'takes the mean over pieces, {theirs}{name} the first: train it with pooling = "first"'
        with pytest.raises(ModelError, match=said):
            export(tmp_path / family, tmp_path / "refused")
        assert not (tmp_path / "refused").exists()


LINEAR = {
    "kind": "classification",
    "labels": ["가", "나", "다"],
    "several": True,
    "thresholds": [0.5],
    "max_length": 32,
}


@pytest.mark.parametrize("family", ["modernbert", "korbert-modernbert"])
@torch.inference_mode()
def test_the_vectors_of_a_linear_model_are_exported(tiny_tokenizer, tmp_path, family):
    torch.manual_seed(1)
    model = LinearModel(small(tiny_tokenizer, family), 3, num_terms=2, terms_version=TERMS_VERSION).eval()
    torch.nn.init.normal_(model.center, std=0.1)
    save_model(tmp_path / "ours", model, tiny_tokenizer, LINEAR)
    lines = export(tmp_path / "ours", tmp_path / "theirs")
    assert [line.template.split(" ")[0] for line in lines] == ["words", "the", "longer"]
    auto = transformers.AutoModelForSequenceClassification
    theirs = auto.from_pretrained(tmp_path / "theirs", trust_remote_code=True).eval()
    assert theirs.config.problem_type == "multi_label_classification"
    assert theirs.config.id2label == dict(enumerate(LINEAR["labels"]))
    ours = rows_of(tiny_tokenizer, TEXTS, [None] * len(TEXTS))
    vectors = model.text_vectors(
        *(ours[name] for name in ("input_ids", "attention_mask", "boundaries")), torch.arange(3)
    )
    expected = model.vectors(model.row_vectors(vectors))
    rows = tokenizer_of(tmp_path / "theirs")(list(TEXTS), padding=True, return_tensors="pt")
    torch.testing.assert_close(theirs(**rows).logits, expected, atol=TOLERANCE, rtol=0)


@torch.inference_mode()
def test_the_number_of_a_linear_model_is_exported(tiny_tokenizer, tmp_path):
    torch.manual_seed(1)
    model = LinearModel(small(tiny_tokenizer, "modernbert"), 1, num_terms=0).eval()
    task = {"kind": "regression", "metrics": ["pearson"], "mean": 3.0, "deviation": 1.0, "max_length": 32}
    save_model(tmp_path / "ours", model, tiny_tokenizer, task)
    export(tmp_path / "ours", tmp_path / "theirs")
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(
        tmp_path / "theirs", trust_remote_code=True
    ).eval()
    assert theirs.config.problem_type == "regression"
    rows = tokenizer_of(tmp_path / "theirs")(list(TEXTS), padding=True, return_tensors="pt")
    assert theirs(**rows).logits.shape == (len(TEXTS), 1)


@pytest.mark.parametrize(
    ("family", "settings"),
    [("bert", {}), ("modernbert", {"num_texts": 2}), ("modernbert", {"reads_vectors": False})],
    ids=["bert", "pairs", "words"],
)
def test_other_linear_models_are_refused(tiny_tokenizer, tmp_path, family, settings):
    model = LinearModel(small(tiny_tokenizer, family), 3, num_terms=0, **settings)
    save_model(tmp_path / "ours", model, tiny_tokenizer, LINEAR)
    with pytest.raises(ModelError, match="which nothing in transformers computes"):
        export(tmp_path / "ours", tmp_path / "theirs")
