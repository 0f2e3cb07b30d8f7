"""Every head to `transformers` and back, in its pipelines, and on encoders of its own."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import Tensor

from korbert.errors import ModelError
from korbert.huggingface.check import TOLERANCE
from korbert.huggingface.exporting import export
from korbert.huggingface.importing import import_folder
from korbert.huggingface.loading import load_transformers
from korbert.modeling.config import AnyConfig, EncoderConfig
from korbert.modeling.models import (
    ChoiceModel,
    ClassificationModel,
    Model,
    PretrainingModel,
    ReadingModel,
    TaggingModel,
    init_encoder_from,
)
from korbert.modeling.storage import load_model, save_model
from korbert.tokenization import AnyTokenizer, Tokenizer, pad_batch

TEXTS = ("아버지가 방에 들어가신다.", "나는 어제 친구를 만났다.", "서울")
PAIRS = ("불을 켜신다.", "정말 반가웠어! 다음에 또 보자.", "인구는 약 940만 명이다.")
LABELS = ("분노", "기쁨", "슬픔")

HEADS: dict[str, tuple[Callable[[AnyConfig], Model], set[str]]] = {
    # head -> how it is made, names of its scores in `transformers`
    "pretraining": (PretrainingModel, {"mlm_logits"}),
    "one label": (lambda config: ClassificationModel(config, 3, "first", LABELS), {"logits"}),
    "labels": (
        lambda config: ClassificationModel(config, 3, "first", LABELS, problem_type="multi_label_classification"),
        {"logits"},
    ),
    "number": (
        lambda config: ClassificationModel(config, 1, "first", ["비슷함"], problem_type="regression"),
        {"logits"},
    ),
    "choice": (lambda config: ChoiceModel(config, "first"), {"logits"}),
    "reading": (ReadingModel, {"start_logits", "end_logits"}),
    "tagging": (lambda config: TaggingModel(config, ["O", "B-인물", "I-인물"]), {"logits"}),
}
FAMILIES: dict[str, dict[str, Any]] = {
    "bert": {"architecture": "bert"},
    "albert": {"architecture": "bert", "embedding_size": 12, "layer_groups": 1},
    "modernbert": {"architecture": "modern"},
    "korbert-modernbert": {"architecture": "modern", "boundary_embedding": True, "overlap_embedding": True},
}


def small(tokenizer: Tokenizer, family: str = "bert") -> EncoderConfig:
    sizes = {"hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2, "intermediate_size": 24}
    return EncoderConfig.model_validate(
        {"vocab_size": tokenizer.vocab_size, "max_position_embeddings": 320, **sizes, **FAMILIES[family]}
    )


def stirred(model: Model) -> Model:
    """No bias 0 and no norm 1: a weight in the wrong place shows."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
    return model.eval()


def exported(folder: Path, model: Model, tokenizer: Tokenizer) -> Path:
    save_model(folder / "ours", stirred(model), tokenizer)
    export(folder / "ours", folder / "theirs")
    return folder / "theirs"


def rows_of(tokenizer: AnyTokenizer, texts: tuple[str, ...], pairs: tuple[str, ...]) -> dict[str, Tensor]:
    arrays = pad_batch(tokenizer.encode_batch(list(texts), list(pairs)), tokenizer.pad_id)
    names = ("input_ids", "attention_mask", "token_type_ids", "boundaries")
    return {name: torch.from_numpy(arrays[name]) for name in names}


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("family", FAMILIES)
def test_there_and_back(tiny_tokenizer: Tokenizer, tmp_path: Path, family: str, head: str) -> None:
    """The check compares what `transformers` computes; what is loaded again is the same model, to the bit."""
    build, scores = HEADS[head]
    model = stirred(build(small(tiny_tokenizer, family)))
    save_model(tmp_path / "ours", model, tiny_tokenizer)
    differences = export(tmp_path / "ours", tmp_path / "theirs", check=True)
    second = {"nsp_logits"} if head == "pretraining" and not family.endswith("modernbert") else set()
    assert differences.keys() == scores | second
    assert max(differences.values()) <= TOLERANCE
    theirs = transformers.AutoConfig.from_pretrained(tmp_path / "theirs", trust_remote_code=True)
    assert theirs.model_type == family
    if isinstance(model, ClassificationModel | TaggingModel) and not isinstance(model, ChoiceModel):
        assert theirs.id2label == dict(enumerate(model.labels))
        assert theirs.label2id == {label: place for place, label in enumerate(model.labels)}
    again = load_transformers(tmp_path / "theirs")
    assert type(again) is type(model)
    assert again.config == model.config
    assert again.head_settings() == model.head_settings()
    for name, tensor in model.state_dict().items():
        if not (family.endswith("modernbert") and name.startswith("nsp.")):  # which it has no class for
            assert torch.equal(tensor, again.state_dict()[name]), name


@pytest.mark.parametrize(
    ("head", "share"),
    [
        ("one label", lambda logits: np.exp(logits) / np.exp(logits).sum()),
        ("labels", lambda logits: 1 / (1 + np.exp(-logits))),
        ("number", lambda logits: logits),
    ],
)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_text_classification_pipeline(
    tiny_tokenizer: Tokenizer, tmp_path: Path, family: str, head: str, share: Callable[[Any], Any]
) -> None:
    model = HEADS[head][0](small(tiny_tokenizer, family))
    assert isinstance(model, ClassificationModel)
    folder = exported(tmp_path, model, tiny_tokenizer)
    pipe = transformers.pipeline("text-classification", model=str(folder), trust_remote_code=True, device="cpu")
    with torch.inference_mode():
        logits = model(**rows_of(tiny_tokenizer, TEXTS, PAIRS)).numpy().astype(np.float64)
    assert abs(logits - logits.mean(axis=0)).max() > 1e-3  # the texts matter
    for text, pair, row in zip(TEXTS, PAIRS, logits, strict=True):
        found = {one["label"]: one["score"] for one in pipe({"text": text, "text_pair": pair}, top_k=None)}
        assert found == pytest.approx(dict(zip(model.labels, share(row), strict=True)), abs=1e-5)


@pytest.mark.parametrize("head", ["one label", "number"])
@pytest.mark.parametrize("family", FAMILIES)
@torch.inference_mode()
def test_pairs_through_the_exported_tokenizer(
    tiny_tokenizer: Tokenizer, tmp_path: Path, family: str, head: str
) -> None:
    """tokenizer(a, b) has the token types of B where the encoder has them, and they matter."""
    model = HEADS[head][0](small(tiny_tokenizer, family))
    folder = exported(tmp_path, model, tiny_tokenizer)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    theirs = transformers.AutoModelForSequenceClassification.from_pretrained(folder, trust_remote_code=True).eval()
    rows = tokenizer(list(TEXTS), list(PAIRS), padding=True, return_tensors="pt")
    ours = rows_of(tiny_tokenizer, TEXTS, PAIRS)
    assert torch.equal(rows["input_ids"], ours["input_ids"])
    expected = model(**ours)
    torch.testing.assert_close(theirs(**rows).logits, expected, atol=TOLERANCE, rtol=0)
    assert ("token_type_ids" in rows) == (family != "modernbert")
    assert ("boundaries" in rows) == (family == "korbert-modernbert")
    if "token_type_ids" in rows:
        assert torch.equal(rows["token_type_ids"], ours["token_type_ids"])
        rows["token_type_ids"].zero_()
        assert (theirs(**rows).logits - expected).abs().max() > 1e-3
    if "boundaries" in rows:
        assert torch.equal(rows["boundaries"], ours["boundaries"])
        rows["boundaries"].zero_()
        assert (theirs(**rows).logits - expected).abs().max() > 1e-3
        del rows["boundaries"]
        with pytest.raises(ValueError, match="pass those that its tokenizer returns"):
            theirs(**rows)


@pytest.mark.parametrize("family", FAMILIES)
@torch.inference_mode()
def test_choices_through_the_exported_tokenizer(tiny_tokenizer: Tokenizer, tmp_path: Path, family: str) -> None:
    """Each text with each continuation, as scripts for SWAG give them: (texts, choices, pieces)."""
    model = ChoiceModel(small(tiny_tokenizer, family), "first")
    folder = exported(tmp_path, model, tiny_tokenizer)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    theirs = transformers.AutoModelForMultipleChoice.from_pretrained(folder, trust_remote_code=True).eval()
    texts, choices = [text for text in TEXTS for _ in PAIRS], list(PAIRS) * len(TEXTS)
    rows = tokenizer(texts, choices, padding=True, return_tensors="pt")
    found = theirs(**{name: column.view(len(TEXTS), len(PAIRS), -1) for name, column in rows.items()}).logits
    expected = model(**rows_of(tiny_tokenizer, tuple(texts), tuple(choices)))
    assert expected.shape == (9, 1)
    torch.testing.assert_close(found, expected.view(3, 3), atol=TOLERANCE, rtol=0)
    assert found.std(dim=1).min() > 1e-3


@pytest.mark.parametrize("kind", [ClassificationModel, ChoiceModel])
def test_the_mean_over_pieces(tiny_tokenizer: Tokenizer, tmp_path: Path, kind: Any) -> None:
    """ModernBERT has it, the others are refused."""
    save_model(tmp_path / "modern", stirred(kind(small(tiny_tokenizer, "modernbert"), pooling="mean")), tiny_tokenizer)
    differences = export(tmp_path / "modern", tmp_path / "theirs", check=True)
    assert differences["logits"] <= TOLERANCE
    again = load_transformers(tmp_path / "theirs")
    assert isinstance(again, kind)
    assert again.pooling == "mean"
    name = "ForMultipleChoice" if kind is ChoiceModel else "ForSequenceClassification"
    for family, theirs in (("bert", "Bert"), ("albert", "Albert")):
        save_model(tmp_path / family, kind(small(tiny_tokenizer, family), pooling="mean"), tiny_tokenizer)
        said = rf'takes the mean over pieces, {theirs}{name} the first: train it with pooling = "first"'
        with pytest.raises(ModelError, match=said):
            export(tmp_path / family, tmp_path / "refused")
        assert not (tmp_path / "refused").exists()


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("model_type", ["electra", "roberta", "deberta-v2"])
@torch.inference_mode()
def test_on_an_imported_encoder(foreign: Callable[[str], Path], tmp_path: Path, model_type: str, head: str) -> None:
    import_folder(foreign(model_type), tmp_path / "encoder")
    pretrained, tokenizer = load_model(tmp_path / "encoder", "encoder")
    model = HEADS[head][0](pretrained.config)
    init_encoder_from(model, pretrained)
    assert torch.equal(model.encoder.token_weight, pretrained.encoder.token_weight)
    save_model(tmp_path / "model", model.eval(), tokenizer)
    again, same = load_model(tmp_path / "model", model.kind)
    assert type(again) is type(model)
    assert again.head_settings() == model.head_settings()
    rows = rows_of(tokenizer, TEXTS, PAIRS)
    for name, column in rows_of(same, TEXTS, PAIRS).items():
        assert torch.equal(column, rows[name]), name
    again = deepcopy(again)  # a copy: where a mapped file's weights lie decides how some processors round
    torch.testing.assert_close(again(**rows), model(**rows), atol=0, rtol=0)
