"""An exported folder in the hands of others: collators, pipelines, Trainer, datasets."""

import json

import datasets
import pytest
import torch
import transformers
from exported import exported, small, tokenizer_of

from korbert.model import Model
from korbert.modeling.models import PretrainingModel, QuestionAnsweringModel
from korbert.tasks import korquad
from korbert.tasks.kinds.token_classification import TokenClassification
from tests.korbert.tiny import model_with

TEXT = "어제 이걸 학교에서 봤다!"
TRAINING = {
    "per_device_train_batch_size": 8,
    "save_strategy": "no",
    "report_to": [],
    "use_cpu": True,
    "disable_tqdm": True,
}


def pipeline(task, folder):
    return transformers.pipeline(task, model=str(folder), trust_remote_code=True, device="cpu")


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "boundaries"])
def reader(tmp_path_factory, tiny_tokenizer, request):
    config = small(tiny_tokenizer, "modernbert", boundary_embedding=request.param, num_hidden_layers=1, hidden_size=32)
    model = QuestionAnsweringModel(config, torch.Generator().manual_seed(0))
    return exported(tmp_path_factory.mktemp("reader"), model, tiny_tokenizer)


def test_a_collator_masks_what_is_no_special_token(tmp_path, tiny_tokenizer, sample):
    model = PretrainingModel(small(tiny_tokenizer, "modernbert"))
    tokenizer = tokenizer_of(exported(tmp_path, model, tiny_tokenizer))
    lines = (sample / "reviews.jsonl").read_text(encoding="utf-8").splitlines()[:40]
    rows = [tokenizer(json.loads(line)["text"], return_special_tokens_mask=True) for line in lines]
    special = {tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id}
    batch = transformers.DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.5, seed=1)(rows)
    chosen = batch["labels"] != -100
    assert 0.4 < chosen.sum() / (batch["attention_mask"].sum() - 2 * len(rows)) < 0.6
    assert not special & set(batch["labels"][chosen].tolist())
    assert (batch["input_ids"][chosen] == tokenizer.mask_token_id).float().mean() > 0.6


@pytest.fixture(scope="module", params=["modernbert", "korbert-modernbert"])
def tagger(tmp_path_factory, tiny_tokenizer, request):
    """The pipeline of an export, and our model."""
    tags = ("ADJ", "NOUN", "VERB")  # no BIO
    kind = TokenClassification(metrics=("accuracy",), max_length=320, tags=tags, units="words", stride=80)
    model = kind.model(small(tiny_tokenizer, request.param))
    folder = exported(tmp_path_factory.mktemp("tagger"), model, tiny_tokenizer)
    return pipeline("token-classification", folder), Model(model, tiny_tokenizer, kind)


def test_the_token_classification_pipeline_labels_as_ours_does(tagger):
    pipe, ours = tagger
    found, spans = pipe(TEXT), pipe.tokenizer(TEXT, return_offsets_mapping=True)["offset_mapping"]
    assert [(one["start"], one["end"]) for one in found] == spans[1:-1]
    labels = {one["start"]: (one["entity"], one["score"]) for one in reversed(found)}  # the first piece of each place
    for word in ours.tag(TEXT):
        label, score = labels[word.start]
        assert (word.label, word.score) == (label, pytest.approx(float(score), abs=1e-5))


@pytest.mark.filterwarnings("ignore:Tokenizer does not support real words:UserWarning")
@pytest.mark.parametrize("strategy", ["simple", "first", "average", "max"])
def test_the_token_classification_pipeline_joins_pieces(tagger, strategy):
    """By words, which it takes for what stands between spaces."""
    pipe, _ = tagger
    groups = pipe(TEXT, aggregation_strategy=strategy)
    assert all(TEXT[group["start"] : group["end"]].strip() for group in groups)
    assert (groups[0]["start"], groups[-1]["end"]) == (0, len(TEXT))
    if strategy == "first":
        begins = {place for place in range(len(TEXT)) if place == 0 or TEXT[place - 1] == " "}
        assert {group["start"] for group in groups} <= begins
    long = " ".join([TEXT] * 60)
    parts = pipe(long, aggregation_strategy=strategy, stride=8)
    assert parts[-1]["end"] > len(long) - len(TEXT) > pipe.tokenizer.model_max_length
    (words,) = pipe(TEXT.split(), aggregation_strategy=strategy, is_split_into_words=True)
    assert [(word["start"], word["end"]) for word in words] == [(group["start"], group["end"]) for group in groups]


@pytest.mark.parametrize("head", ["one label", "labels", "number"])
def test_the_text_classification_pipeline_has_our_numbers(tmp_path, tiny_tokenizer, head):
    model = model_with(head, small(tiny_tokenizer, "bert"))
    folder = exported(tmp_path, model, tiny_tokenizer)
    pipe = pipeline("text-classification", folder)
    row = tiny_tokenizer.encode(TEXT, "다시 보고 싶다.")
    with torch.inference_mode():
        logits = model(torch.tensor([row.input_ids]), None, torch.tensor([row.token_type_ids]))[0]
    numbers = {"one label": logits.softmax(dim=0), "labels": logits.sigmoid(), "number": logits}[head].tolist()
    answers = pipe({"text": TEXT, "text_pair": "다시 보고 싶다."}, top_k=None)
    scores = {answer["label"]: answer["score"] for answer in answers}
    assert scores == pytest.approx(dict(zip(model.labels, numbers, strict=True)), abs=1e-5)


@pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true:UserWarning")
@pytest.mark.parametrize("family", ["modernbert", "korbert-modernbert"])
def test_what_trainer_saves_opens_in_a_pipeline(tmp_path, tiny_tokenizer, sample, family):
    """An encoder as it was pretrained is fine-tuned, with markers that its vocabulary lacked."""
    folder = exported(tmp_path, PretrainingModel(small(tiny_tokenizer, family)), tiny_tokenizer)
    tokenizer = tokenizer_of(folder, split_special_tokens=True)
    tokenizer.add_special_tokens({"extra_special_tokens": ["[E1]", "[/E1]"]})
    how = {"trust_remote_code": True, "id2label": {0: "부정", 1: "긍정"}, "label2id": {"부정": 0, "긍정": 1}}
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, **how)
    model.resize_token_embeddings(len(tokenizer))
    lines = (sample / "reviews.jsonl").read_text(encoding="utf-8").splitlines()[:24]
    texts = [f"[E1]영화[/E1] {json.loads(line)['text'][:60]}" for line in lines]
    data = datasets.Dataset.from_dict({"text": texts, "label": [number % 2 for number in range(24)]})
    rows = data.map(lambda row: tokenizer(row["text"], truncation=True), batched=True)
    settings = transformers.TrainingArguments(str(tmp_path / "run"), max_steps=3, **TRAINING)
    trainer = transformers.Trainer(model=model, args=settings, train_dataset=rows, processing_class=tokenizer)
    trainer.train()
    assert 0 < trainer.evaluate(rows)["eval_loss"] < 2
    trainer.save_model(str(tmp_path / "saved"))
    pipe = pipeline("text-classification", tmp_path / "saved")
    with torch.inference_mode():
        expected = model.eval()(**tokenizer(texts[:1], return_tensors="pt")).logits[0].softmax(dim=0)
    (answers,) = pipe(texts[:1], top_k=None)
    for answer in answers:
        assert answer["score"] == pytest.approx(float(expected[model.config.label2id[answer["label"]]]), abs=1e-5)


def _windows(tokenizer, asked):
    """Windows with the first and last token of the answer, as question answering scripts make them from offsets."""
    rows = tokenizer(
        [row["question"] for row in asked], [row["context"] for row in asked], truncation="only_second",
        max_length=96, stride=16, padding="max_length", return_overflowing_tokens=True, return_offsets_mapping=True,
    )  # fmt: skip
    places = []
    for row, owner in enumerate(rows["overflow_to_sample_mapping"]):
        start, end = asked[owner]["answers"][0].span
        place = rows.char_to_token(row, start, 1), rows.char_to_token(row, end - 1, 1)
        places.append((0, 0) if None in place else place)
    assert sum(place != (0, 0) for place in places) >= len(asked) * 0.9
    columns = {name: rows[name] for name in tokenizer.model_input_names}
    starts, ends = zip(*places, strict=True)
    return datasets.Dataset.from_dict({**columns, "start_positions": starts, "end_positions": ends})


@pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true:UserWarning")
def test_trainer_learns_to_read(reader, sample, tmp_path):
    tokenizer = tokenizer_of(reader)
    model = transformers.AutoModelForQuestionAnswering.from_pretrained(reader, trust_remote_code=True)
    rows = _windows(tokenizer, korquad.read(sample / "korquad" / "valid.json").rows)
    more = {"learning_rate": 5e-3, "logging_steps": 1, "seed": 0}
    settings = transformers.TrainingArguments(str(tmp_path), max_steps=10, **TRAINING, **more)
    trainer = transformers.Trainer(model=model, args=settings, train_dataset=rows, processing_class=tokenizer)
    trainer.train()
    losses = [line["loss"] for line in trainer.state.log_history if "loss" in line]
    assert len(losses) == 10
    assert sum(losses[-3:]) < sum(losses[:3])
