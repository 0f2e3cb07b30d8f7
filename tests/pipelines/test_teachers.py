"""What an encoder learns from other models of its task: `finetune --teacher`, and texts without labels."""

import json

import numpy as np
import pytest
import torch
from scipy.special import log_softmax, softmax

import korbert
from korbert.errors import KorbertError, ModelError, SettingsError
from korbert.modeling import QuestionAnsweringModel, save_model
from korbert.pipelines.experiments import search, teaching
from korbert.pipelines.inference.input_records import MAX_CHARS
from korbert.tasks.kinds.classification import Classification
from korbert.tasks.kinds.question_answering import QuestionAnswering
from korbert.tasks.kinds.regression import Regression
from korbert.tasks.kinds.token_classification import TokenClassification
from korbert.tasks.passages import encode_passages
from korbert.tasks.token_classification import unit_starts
from korbert.tokenization import TransformersTokenizer
from tests.pipelines.test_rungs import ROWS, TEST
from tests.pipelines.test_tagging import ROWS as SENTENCES

TEXTS = ["재미있고 따뜻한 영화", "지루한 이야기", "아까운 시간", "훌륭한 배우"]
FAST = {"baselines": False, "epochs": 1, "learning_rates": 1e-4}
CPU = torch.device("cpu")
NUMBERS = Regression(metrics=("pearson",), max_length=32, mean=2.0, deviation=1.0)
READING = QuestionAnswering(metrics=("f1",), max_length=40, stride=8, max_query_pieces=8)
TAGGING = TokenClassification(
    metrics=("entity_f1",), max_length=16, stride=2, units="characters", tags=("O", "B-PS", "I-PS")
)


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    folder = tmp_path_factory.mktemp("teacher") / "mood"
    return korbert.finetune("korbert-mini", ROWS, quick=True, baselines=False, output=folder)


def prepared_by(kind, tokenizer, rows):
    texts = list(dict.fromkeys(text for row in rows for text in kind.texts(row)))
    passages = dict(zip(texts, encode_passages(tokenizer, texts), strict=True))
    return kind.prepare(rows, [[passages[text] for text in kind.texts(row)] for row in rows], tokenizer)


def test_targets_are_the_mean_of_labels_and_teachers_and_the_loss_is_that_of_scipy(tiny_tokenizer, tiny_config):
    kind = Classification(metrics=("accuracy",), max_length=32, labels=("부정", "긍정", "중립"))
    rows = [{"text": text, "label": label} for text, label in zip(TEXTS, ["긍정", "부정", None, None], strict=True)]
    shares = softmax(np.random.default_rng(0).normal(size=(4, 3)), axis=1).astype(np.float32)
    taught = kind.with_soft_targets(prepared_by(kind, tiny_tokenizer, rows), shares, labelled=2)
    expected = shares.copy()
    expected[0, 1] += 1
    expected[1, 0] += 1
    expected[:2] /= 2
    assert taught.examples.labels == pytest.approx(expected)
    model = kind.model(tiny_config(num_hidden_layers=1), torch.Generator().manual_seed(0)).eval()
    batch = taught.examples.batch(np.arange(4))
    logits = model(batch["input_ids"], batch["attention_mask"], boundaries=batch["boundaries"]).detach().numpy()
    loss = -(expected * log_softmax(logits, axis=1)).sum(axis=1).mean()
    assert kind.loss(model, batch)["loss"].item() == pytest.approx(float(loss), rel=1e-5)


def test_several_labels_and_numbers_are_means_too(tiny_tokenizer):
    kind = Classification(metrics=("micro_f1",), max_length=32, labels=("가", "나"), several=True)
    rows = [{"text": "영화", "label": ["나"]}, {"text": "시간", "label": None}]
    shares = np.array([[0.5, 0.5], [0.25, 1.0]], np.float32)
    examples = kind.with_soft_targets(prepared_by(kind, tiny_tokenizer, rows), shares, labelled=1).examples
    assert examples.labels.tolist() == [[0.25, 0.75], [0.25, 1.0]]
    one = Classification(metrics=("micro_f1",), max_length=32, labels=("나",), several=True)
    examples = one.with_soft_targets(prepared_by(one, tiny_tokenizer, rows), shares[:, 1:], labelled=1).examples
    assert examples.labels.tolist() == [[0.75], [1.0]]
    rows = [{"text": "영화", "score": 3.0}, {"text": "시간", "score": None}]
    said = np.array([[4.0], [1.5]], np.float32)
    examples = NUMBERS.with_soft_targets(prepared_by(NUMBERS, tiny_tokenizer, rows), said, labelled=1).examples
    assert examples.labels.tolist() == [3.5, 1.5]


def test_labels_are_heard_by_their_names(teacher):
    model = teacher.model
    task = model.task.model_copy(update={"labels": model.task.labels[::-1]})
    (prepared,) = model.prepare_rows([{"text": text} for text in TEXTS])
    said = model.task.teacher_outputs(model.network, prepared, device=CPU)
    predicted = [model.predict(text).probabilities for text in TEXTS]
    assert task.soft_targets(said, model.task, prepared) == pytest.approx(
        np.array([[own[label] for label in task.labels] for own in predicted]), abs=1e-5
    )


def test_tags_are_heard_where_units_begin_and_continue_within_them(tiny_tokenizer):
    prepared = prepared_by(TAGGING, tiny_tokenizer, [{"text": "세종대왕이 한글을 만들었다"}, {"text": ""}])
    starts = [unit_starts(None, passages[0]) for passages in prepared.passages]
    units = [len(own) for own in starts]
    values = softmax(np.random.default_rng(1).normal(size=(sum(units), 3)), axis=1).astype(np.float32)
    own = TAGGING.soft_targets(
        teaching.TeacherOutputs(values, np.concatenate(starts), np.array(units, np.int32)), TAGGING, prepared
    )
    assert own[own.any(axis=1)] == pytest.approx(values)
    # The whole sentence as one unit: it begins with B, and goes on inside.
    whole = teaching.TeacherOutputs(
        np.array([[0.1, 0.7, 0.2]], np.float32), np.zeros(1, np.int32), np.array([1, 0], np.int32)
    )
    heard = TAGGING.soft_targets(whole, TAGGING, prepared)
    heard = heard[heard.any(axis=1)]
    assert heard[0] == pytest.approx([0.1, 0.7, 0.2])
    assert heard[1:] == pytest.approx(np.tile([0.1, 0.0, 0.9], (len(heard) - 1, 1)))
    assert (TAGGING.with_soft_targets(prepared, own, labelled=0).examples.labels >= 0).sum() == sum(units)


def test_answers_are_heard_of_the_same_windows(untrained_reader, tiny_tokenizer, tiny_config):
    rows = [
        {"question": "수도는?", "context": "대한민국의 수도는 서울이다. " * 4, "answers": [("서울", 10)]},
        {"question": "어디에 갔나?", "context": "나는 어제 학교에 갔다", "answers": None},
    ]
    prepared = prepared_by(READING, tiny_tokenizer, rows)
    other = QuestionAnsweringModel(tiny_config(num_hidden_layers=1), torch.Generator().manual_seed(1)).eval()
    said = READING.teacher_outputs(korbert.load(untrained_reader, "cpu").network, prepared, device=CPU)
    taught = READING.with_soft_targets(prepared, READING.soft_targets(said, READING, prepared), labelled=1)
    shares = taught.examples.shares.astype(np.float64)
    for first, last in zip(taught.examples.offsets, taught.examples.offsets[1:], strict=False):
        assert shares[first:last].sum(axis=0) == pytest.approx([1, 1], abs=2e-3)
    batch = taught.examples.batch(np.arange(len(taught.examples)))
    plain = prepared.examples.batch(np.arange(len(prepared.examples)))
    names = ("input_ids", "attention_mask", "token_type_ids", "boundaries")
    losses = []
    for logits, column in zip(other(**{name: batch[name] for name in names}), (0, 1), strict=True):
        logits = np.where(plain["choices"], logits.detach().numpy(), -1e30)
        own = batch["shares"][..., column].numpy()
        losses.append(-(own * np.where(plain["choices"], log_softmax(logits, axis=1), 0)).sum(axis=1).mean())
    assert READING.loss(other, batch)["loss"].item() == pytest.approx(np.mean(losses), rel=1e-4)


def test_two_teachers_and_a_file_of_texts(teacher, tmp_path, monkeypatch):
    other = korbert.finetune("korbert-mini", ROWS, only="words", baselines=False).model
    texts = tmp_path / "more.csv"
    lines = [*TEXTS, TEXTS[0], ROWS[0][0], TEST[0][0]]
    texts.write_text("본문내용,text\n" + "".join(f"{text},아무 글\n" for text in [*lines, " "]), encoding="utf-8")
    rows = [{"본문내용": text, "label": label} for text, label in ROWS]
    asked = {
        "teachers": [teacher.folder, other],
        "unlabelled": str(texts),
        "text": "본문내용",
        "only": "encoder",
        **FAST,
    }
    output = tmp_path / "out"
    asked_rows, targets = [], []
    before, learned = teaching._Ours.outputs, search.finetune

    def said(self, rows, passages):
        asked_rows.append([row["text"] for row in rows])
        return before(self, rows, passages)

    def noted(model, examples, *others, **named):
        targets.append(examples.labels)
        if len(targets) == 1:
            raise KeyboardInterrupt
        return learned(model, examples, *others, **named)

    monkeypatch.setattr(teaching._Ours, "outputs", said)
    monkeypatch.setattr(search, "finetune", noted)
    with pytest.raises(KeyboardInterrupt):
        korbert.finetune("korbert-mini", rows, output=output, **asked)
    result = korbert.finetune("korbert-mini", rows, output=output, **asked)
    assert len(asked_rows) == 2  # once each: what was computed stays
    assert {*asked_rows[0][-5:]} == {*TEXTS, TEST[0][0]} - {text for text, _ in ROWS}
    labels = result.model.task.labels
    found = [[model.predict(text).probabilities for text in asked_rows[0]] for model in (teacher.model, other)]
    mean = np.mean([[[one[label] for label in labels] for one in own] for own in found], axis=0)
    own = np.eye(2)[[labels.index(dict(ROWS)[text]) for text in asked_rows[0][:-5]]]
    mean[: len(own)] = (mean[: len(own)] + own) / 2
    assert targets[0] == pytest.approx(mean, abs=1e-4)
    assert np.array_equal(targets[0], targets[1])
    said_lines = {line["template"]: line["values"] for line in json.loads((output / "scores.json").read_text())["said"]}
    (counts,) = [values for template, values in said_lines.items() if "learned from teachers" in template]
    assert counts == {"rows": len(asked_rows[0]), "more": 5}
    (counts,) = [values for template, values in said_lines.items() if "more stand twice" in template]
    assert (counts["count"], counts["others"]) == (5, 2)


def test_what_teachers_said_is_known_by_the_order_of_their_labels(teacher, tmp_path, tiny_tokenizer):
    task = teacher.model.task
    rows = [{"text": text} for text in TEXTS]
    (prepared,) = teacher.model.prepare_rows(rows)
    folder = teacher.folder / "model"
    first, second = (
        teaching.mean_soft_targets(one, rows, prepared, [folder], tiny_tokenizer, {}, tmp_path, CPU)
        for one in (task, task.model_copy(update={"labels": task.labels[::-1]}))
    )
    assert first == pytest.approx(second[:, ::-1])
    assert len(list(tmp_path.glob("taught-*.npz"))) == 1


@pytest.mark.parametrize("masks", [True, False])
def test_a_teacher_reads_personal_data_as_it_has_learned_to(tmp_path, tiny_tokenizer, tiny_config, masks):
    kind = Classification(metrics=("accuracy",), max_length=32, labels=("부정", "긍정"), mask_personal=masks)
    network = kind.model(tiny_config(num_hidden_layers=1), torch.Generator().manual_seed(0))
    save_model(tmp_path / "teacher", network, tiny_tokenizer, kind.task())
    student = kind.model_copy(update={"mask_personal": not masks})
    rows = [{"text": "010-1234-5678로 전화 주세요"}, {"text": TEXTS[0]}]
    texts = [text for row in rows for text in student.texts(row)]
    passages = dict(zip(texts, encode_passages(tiny_tokenizer, texts), strict=True))
    found = teaching.teacher_of(tmp_path / "teacher", student, tiny_tokenizer, CPU).outputs(rows, passages)
    expected = korbert.load(tmp_path / "teacher", "cpu").predict([row["text"] for row in rows])
    assert found.values == pytest.approx(np.array([list(one.probabilities.values()) for one in expected]), abs=1e-5)


def test_a_damaged_teacher_is_named(tmp_path, tiny_tokenizer):
    (tmp_path / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(ModelError, match=r"config\.json: cannot be read .* restore the file as it was saved"):
        teaching.teacher_of(tmp_path, READING, tiny_tokenizer, CPU)


def test_texts_without_labels_that_cannot_be_read_or_are_cut_are_said(tmp_path):
    path = tmp_path / "more.jsonl"
    lines = ['{"tokens": ["2024", 5]}', '{"text": "가", "tokens": ["가", null]}', '{"tokens": ["나", 0.5]}']
    path.write_text("\n".join([*lines, json.dumps({"text": "ㅋ" * (MAX_CHARS + 1)})]), encoding="utf-8")
    rows = teaching.read_unlabelled([path], TAGGING.roles, {})
    assert rows.rows == [{"tokens": ["2024", "5"]}, {"text": "ㅋ" * MAX_CHARS}]
    assert rows.dropped["bad_row"].first == [
        f"{path}, record 2: 'tokens' has a part 1 that is missing, not a text",
        f"{path}, record 3: 'tokens' has a part 1 that is a number with a fraction, not a text",
    ]
    assert rows.summary()[-1] == (
        f"{path}: 1 texts are longer than 100,000 characters: only their beginnings are learned"
    )


def test_teachers_that_nothing_would_learn_from_are_not_asked(teacher, monkeypatch):
    monkeypatch.setattr("korbert.pipelines.experiments.preparing.mean_soft_targets", None)
    result = korbert.finetune("korbert-mini", ROWS, teachers=teacher.folder, unlabelled=TEXTS, baselines=False)
    said = json.loads((result.folder / "scores.json").read_text("utf-8"))["said"]
    assert [line for line in said if line["template"].startswith("the teachers are not asked")]


def test_a_tuned_encoder_learns_from_teachers_by_default(teacher):
    rows = [(f"{text} {number}", label) for number in range(50) for text, label in ROWS]
    rows = [(text, "좋" if number % 5 else label) for number, (text, label) in enumerate(rows)]  # not easy
    result = korbert.finetune("korbert-mini", rows, teachers=teacher.folder, unlabelled=TEXTS, **FAST)
    said = json.loads((result.folder / "scores.json").read_text("utf-8"))["said"]
    assert [line["values"]["more"] for line in said if "learned from teachers" in line["template"]] == [4]
    assert korbert.load(result.folder).predict("훌륭한 영화 3").label in ("좋", "싫")


def test_a_tagger_learns_from_a_tagger():
    first = korbert.finetune("korbert-mini", SENTENCES, quick=True, embedder="", baselines=False)
    texts = [{"text": "강감찬은 인천에서 9번 만났다"}, {"text": "김구는 평양에서 만났다"}]
    for only in ("encoder", None):
        made = korbert.finetune(
            "korbert-mini", SENTENCES, teachers=[first.model], unlabelled=texts, only=only, embedder="", **FAST
        )
        scores = json.loads((made.folder / "scores.json").read_text("utf-8"))
        (values,) = [line["values"] for line in scores["said"] if "learned from teachers" in line["template"]]
        assert values == {"rows": scores["counts"]["train"] + 2, "more": 2}


def save_bert(folder, class_name, texts, **settings):
    """A small model of transformers with its tokenizer, of the characters of these texts."""
    transformers = pytest.importorskip("transformers")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted({c for text in texts for c in text if c != " "})]
    words += [f"##{word}" for word in words[5:]]
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    tokenizer = transformers.BertTokenizerFast(str(folder / "vocab.txt"), do_lower_case=False)
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        **settings,
    )  # fmt: skip
    torch.manual_seed(0)
    model = getattr(transformers, class_name)(config).eval()
    for part in (model, tokenizer):
        part.save_pretrained(folder)
    return transformers, model, tokenizer


def test_a_classifier_of_transformers_teaches(tmp_path, tiny_tokenizer):
    transformers, model, tokenizer = save_bert(tmp_path / "bert", "BertForSequenceClassification", TEXTS, num_labels=2)
    names = {"0": "싫", "1": "좋"}
    task = Classification(metrics=("accuracy",), max_length=32, labels=("좋", "싫"), label_names=names)
    found = teaching.teacher_of(tmp_path / "bert", task, tiny_tokenizer, CPU)
    pipe = transformers.pipeline("text-classification", model=model, tokenizer=tokenizer, top_k=None)
    expected = [
        [own["score"] for own in sorted(one, key=lambda own: own["label"], reverse=True)]
        for own in [pipe(TEXTS)]
        for one in own
    ]
    assert found.outputs([{"text": text} for text in TEXTS], {}).values == pytest.approx(np.array(expected), abs=1e-5)
    for kind, fault in (
        (task.model_copy(update={"label_names": {}}), "has the labels 0, 1, and the files"),
        (task.model_copy(update={"several": True}), "several is False of this model, True"),
        (NUMBERS, "num_labels is 2 of this model, 1"),
    ):
        with pytest.raises(ModelError, match=fault):
            teaching.teacher_of(tmp_path / "bert", kind, tiny_tokenizer, CPU)
    assert len(found.outputs([{"text": "영화 " * 2_000}], {}).values) == 1  # is cut where its positions end


def test_a_tagger_of_transformers_teaches(tmp_path, tiny_tokenizer):
    labels = {0: "B-PS", 1: "I-PS", 2: "O"}
    _, model, tokenizer = save_bert(tmp_path / "bert", "BertForTokenClassification", TEXTS, id2label=labels)
    found = teaching.teacher_of(tmp_path / "bert", TAGGING, tiny_tokenizer, CPU)
    said = found.outputs([{"text": text} for text in TEXTS], {})
    read = [tokenizer(text, return_offsets_mapping=True, return_tensors="pt") for text in TEXTS]
    starts = [one.pop("offset_mapping")[0, 1:-1, 0].numpy() for one in read]
    with torch.inference_mode():
        expected = np.concatenate([model(**one).logits[0, 1:-1].softmax(dim=-1).numpy() for one in read])
    assert said.values == pytest.approx(expected, abs=1e-5)
    assert said.starts.tolist() == np.concatenate(starts).tolist()
    prepared = prepared_by(TAGGING, tiny_tokenizer, [{"text": text} for text in TEXTS])
    soft = TAGGING.soft_targets(said, found.kind, prepared)
    first = soft[int(prepared.examples.offsets[0]) + 1]  # of the first piece of the first text
    assert first == pytest.approx(expected[0][[2, 0, 1]], abs=1e-5)
    for kind, fault in (
        (
            TAGGING.model_copy(update={"tags": ("O", "B-LC", "I-LC")}),
            "has the labels B-PS, I-PS, O, and the files O, B-LC",
        ),
        (READING, r"lacks the weights qa_outputs.* of ForQuestionAnswering"),
    ):
        with pytest.raises(ModelError, match=fault):
            teaching.teacher_of(tmp_path / "bert", kind, tiny_tokenizer, CPU)


def test_a_reader_of_transformers_teaches_an_encoder_with_its_tokenizer(tmp_path, tiny_tokenizer):
    _, model, tokenizer = save_bert(tmp_path / "bert", "BertForQuestionAnswering", TEXTS)
    own = TransformersTokenizer.of_folder(tmp_path / "bert")
    found = teaching.teacher_of(tmp_path / "bert", READING, own, CPU)
    passages = dict(zip(TEXTS, encode_passages(own, TEXTS), strict=True))
    said = found.outputs([{"question": TEXTS[1], "context": TEXTS[0]}], passages)
    read = tokenizer(TEXTS[1], TEXTS[0], return_tensors="pt")
    with torch.inference_mode():
        ends = model(**read)
    scores = torch.stack([ends.start_logits[0], ends.end_logits[0]], dim=-1)
    choices = (read["token_type_ids"][0] == 1) & (read["input_ids"][0] != tokenizer.sep_token_id)
    choices[0] = True  # no answer
    expected = scores.masked_fill(~choices[:, None], float("-inf")).softmax(dim=0)
    assert said.values == pytest.approx(expected.numpy(), abs=1e-5)
    with pytest.raises(ModelError, match="has another tokenizer than the model that learns"):
        teaching.teacher_of(tmp_path / "bert", READING, tiny_tokenizer, CPU)


@pytest.mark.parametrize(("asked", "error", "fault"), [
    ({"teachers": ["korbert-mini-nsmc"]}, ModelError, "nsmc: has the labels 부정, 긍정, and the files 싫, 좋"),
    ({"teachers": ["korbert-mini-ner"]}, ModelError, "is of kind token-classification, and cannot teach one of kind"),
    ({"teachers": ["korbert-mini"]}, ModelError, "is of kind fill"),
    ({"teachers": ["korbert-mini-nsmc"], "quick": True}, SettingsError, "leave learning_rates, epochs, teachers out"),
    ({"teachers": ["korbert-mini-nsmc"], "features": "last"}, KorbertError, "features"),
    ({"unlabelled": ["영화"]}, SettingsError, "give teachers, too"),
    ({"teachers": ["korbert-mini-nsmc"], "unlabelled": [{"본문": ""}]}, KorbertError, "no text can be used"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(asked, error, fault):
    with pytest.raises(error, match=fault):
        korbert.finetune("korbert-mini", ROWS, **{"only": None, **FAST, **asked})
