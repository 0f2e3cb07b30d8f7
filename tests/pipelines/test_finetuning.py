"""From a file of rows to a scored, saved and loaded model: labels, several labels, pairs, numbers, choices, tags."""

import itertools
import json
import re
from functools import partial

import pandas as pd
import pytest
from sklearn.metrics import f1_score

import korbert
from korbert.errors import SettingsError
from korbert.messages import Message
from korbert.modeling import load_model
from korbert.pipelines.experiments.preparing import prepare
from tests.korbert.tiny import json_lines
from tests.pipelines import small_tasks as small
from tests.pipelines.small_tasks import MOODS, PARTS, TEXTS, WORDS, fine_tune, moods, scores_of, write_table

BASE = {
    "learning_rates": 5e-3, "batch_size": 10, "epochs": 30, "max_length": 32, "threads": 1, "checkpoint_every": 9999,
}  # fmt: skip


@pytest.fixture(scope="module")
def start(untrained):
    return untrained(hidden_size=32, intermediate_size=32, type_vocab_size=2)


@pytest.fixture
def learn(tmp_path, start):
    """Runs a task on the rows of a CSV file; the artifact's folder."""

    def learned(kind, header, rows, test_file=None, **settings):
        path = write_table(tmp_path / "mine.csv", header, rows, "utf-8-sig")
        files = dict.fromkeys(PARTS, path) | {"test": test_file or path}
        fine_tune(kind, start, tmp_path / "out", files, **{**BASE, **settings})
        return tmp_path / "out"

    return learned


def test_labels_of_texts(learn):
    folder = learn(*moods(("문장", "감정")))
    assert scores_of(folder)["pretrained"]["accuracy"] == 1.0
    model = korbert.load(folder, "cpu")
    assert [one.label for one in model.predict(TEXTS)] == MOODS
    table = pd.DataFrame({"text": TEXTS, "number": range(len(TEXTS))})
    assert [one.label for one in model.predict(table)] == MOODS
    assert [one.label for one in model.predict(pd.DataFrame({"text": TEXTS[::-1], "문장": TEXTS}))] == MOODS
    for given, said in (
        (pd.DataFrame({"글": TEXTS}), r"\[0\]: no column 문장 or text among 글: this model takes"),
        ((TEXTS[0], TEXTS[1]), r"is a pair of texts: this model takes one of 2 labels .* for a text"),
    ):
        with pytest.raises(SettingsError, match=said):
            model.predict(given)
    found = model.predict(TEXTS[0])
    assert sum(found.probabilities.values()) == pytest.approx(1)
    assert list(found.probabilities) == ["긍정", "부정"]
    lines = json_lines(folder / "predictions.jsonl")
    assert [line["predictions"]["pretrained"][0]["label"] for line in lines] == MOODS


def test_labels_of_pairs_depend_on_their_order(learn):
    pairs = [(one, two) for one, two in itertools.pairwise(TEXTS)]
    rows = [[one, two, "앞"] for one, two in pairs[:5]] + [[two, one, "뒤"] for one, two in pairs[:5]]
    folder = learn("classification", ["sentence1", "sentence2", "label"], rows, epochs=60)
    assert scores_of(folder)["pretrained"]["accuracy"] == 1.0
    model = korbert.load(folder, "cpu")
    assert model.predict(tuple(rows[0][:2])).label == "앞"
    assert model.predict({"text": rows[0][1], "pair": rows[0][0]}).label == "뒤"
    with pytest.raises(SettingsError, match="has no second text"):
        model.predict("하나")


@pytest.mark.parametrize(("overlap", "reached"), [(True, True), pytest.param(False, False, marks=pytest.mark.slow)])
def test_what_two_texts_have_in_common(learn, tmp_path, overlap, reached):
    """Do both texts name the same thing? Test rows have nouns of their own: only the overlap tells."""
    nouns = [one + two for one in "가나다라마바사" for two in "구누두루무부"]

    def rows(of):
        same = [[f"{noun}를 보았다", f"어제는 {noun}도 있었다", "같음"] for noun in of]
        return same + [[f"{one}를 보았다", f"어제는 {two}도 있었다", "다름"] for one, two in itertools.pairwise(of)]

    header = ["text", "pair", "label"]
    test = write_table(tmp_path / "test.csv", header, rows(nouns[30:]))
    folder = learn("classification", header, rows(nouns[:30]), overlap=overlap, test_file=test, epochs=20)
    assert (scores_of(folder)["pretrained"]["accuracy"] > 0.9) == reached
    assert load_model(folder)[0].config.overlap_embedding == overlap


@pytest.fixture
def load(learn):
    """Fine-tunes on the rows of a kit, asserts that `metric` reaches `least` on them, and returns the loaded model."""

    def loaded(kit, metric, least=1.0, **settings):
        folder = learn(*kit, **{"epochs": 60, "baselines": False, **settings})
        assert scores_of(folder)["pretrained"][metric] >= least
        return korbert.load(folder, "cpu")

    return loaded


def test_several_labels_a_text(load):
    wanted = ["기쁨|음악", "", "기쁨", "슬픔", "기쁨|슬픔", "음악", "슬픔", "슬픔|음악", "기쁨", "기쁨|슬픔|음악"]
    rows = [[text, json.dumps(labels.split("|") if labels else [])] for text, labels in zip(TEXTS, wanted, strict=True)]
    model = load(("classification", ["text", "labels"], rows), "exact_match", several=True)
    assert ["|".join(prediction.labels) for prediction in model.predict(TEXTS)] == wanted


def test_numbers_for_pairs(load):
    assert load(small.numbers(), "pearson", 0.99).predict((TEXTS[8], TEXTS[-8])) == pytest.approx(4.0, abs=0.5)


def test_choices(load):
    text, *texts, _ = small.choices()[2][4]
    prediction = load(small.choices(), "accuracy", epochs=80).predict({"text": text, "choices": texts})
    assert prediction.choice == 1
    assert sum(prediction.probabilities) == pytest.approx(1)


def test_spans(load):
    tagged = load(small.spans(), "entity_f1").tag(TEXTS)
    assert [[span.text for span in own] for own in tagged] == [[word] for word in WORDS]


def test_labels_of_words(load):
    rows = [[json.dumps(text.split()), json.dumps([str(len(word)) for word in text.split()])] for text in TEXTS]
    load(("token-classification", ["tokens", "tags"], rows), "accuracy")


def test_a_grid_and_seeds_are_chosen_on_validation_and_resumed(learn):
    more = {"learning_rates": [1e-5, 3e-3], "batch_size": [2, 5], "epochs": 3, "seeds": (0, 1, 2), "scratch": True}
    folder = learn(*moods(), **more)
    scores = json.loads((folder / "scores.json").read_text())
    names = [(row["name"], row["seed"]) for row in scores["rows"]]
    trained = [(name, seed) for name in ("pretrained", "scratch") for seed in (0, 1, 2)]
    assert names == [*trained, ("majority", None), ("tfidf", None)]
    first = scores["rows"][0]
    assert len(first["trials"]) == 4
    best = max(first["trials"], key=lambda trial: trial["validation_accuracy"])
    assert (first["learning_rate"], first["batch_size"]) == (best["learning_rate"], best["batch_size"])
    assert scores["models"][0]["seeds"] == 3
    assert "interval" in scores["comparisons"][0]
    before = (folder / "scores.json").read_bytes(), (folder / "model" / "model.safetensors").read_bytes()
    learn(*moods(), **more)  # all trainings are kept
    assert before == ((folder / "scores.json").read_bytes(), (folder / "model" / "model.safetensors").read_bytes())


def test_a_score_of_other_tasks_is_refused(learn):
    with pytest.raises(SettingsError, match="'bleu' is not a score of this task: use one of"):
        learn("classification", ["text", "label"], [["가", "a"], ["나", "b"]], metrics=("bleu",))


@pytest.mark.parametrize("frozen", [0, 1, *(pytest.param(one, marks=pytest.mark.slow) for one in ("embeddings", -1))])
def test_lower_layers_learn_less_or_not_at_all(learn, start, frozen):
    what = {"frozen_embeddings": True} if frozen == "embeddings" else {"frozen_layers": frozen}
    folder = learn(*moods(), epochs=1, layer_decay=0.01, **what)
    before = load_model(start)[0].state_dict()
    after = load_model(folder)[0].state_dict()

    def moved(part):
        return max(float((after[name] - one).abs().max()) for name, one in before.items() if f"encoder.{part}" in name)

    pieces, others, *layers = map(moved, ("embeddings.token.", "embeddings.norm", "layers.0", "layers.1"))
    if frozen == 0:
        assert 0 < 10 * max(pieces, others) < layers[0] < layers[1] / 10
    else:
        learning = {"embeddings": [True, True, True], 1: [False, False, True], -1: [False, False, False]}[frozen]
        assert [step > 0 for step in (pieces, others, *layers)] == [False, *learning]


def test_without_any_piece_there_is_nothing_to_learn(learn):
    (curve,) = (learn(*moods(), piece_dropout=0.999_999) / "metrics").iterdir()
    losses = [line["loss"] for line in json_lines(curve) if line["kind"] == "train"]
    assert min(losses) > 0.3, "these rows are learned by heart otherwise"


def test_a_label_can_be_left_out_of_micro_f1(learn):
    """As KLUE-RE leaves out no_relation: scikit-learn's f1_score over the other labels."""
    labels = ["없음", "가족", "직장", "없음", "가족", "없음", "직장", "없음", "가족", "없음"]
    rows = list(map(list, zip(TEXTS, labels, strict=True)))
    folder = learn("classification", ["text", "label"], rows, epochs=2, uncounted="없음", metrics=("micro_f1",))
    lines = json_lines(folder / "predictions.jsonl")
    found = [line["predictions"]["majority"][0]["label"] for line in lines]
    assert set(found) == {"없음"}
    counted = partial(f1_score, labels, labels=["가족", "직장"], average="micro", zero_division=0)
    assert scores_of(folder)["majority"]["micro_f1"] == counted(found) == 0.0
    kept = [line["predictions"]["pretrained"][0]["label"] for line in lines]
    assert scores_of(folder)["pretrained"]["micro_f1"] == pytest.approx(counted(kept))


def test_rows_and_pieces_beyond_a_limit_are_left_out_and_said(learn, caplog):
    """The files are the same for all parts: validation and test rows stay, and so do labels that no row is left of."""
    caplog.set_level("INFO", "korbert")
    folder = learn(*moods(("문장", "감정")), train_rows=4, max_length=4, epochs=1)
    record = json.loads((folder / "scores.json").read_text())
    assert record["counts"] == {"train": 4, "valid": 10, "test": 10, "test_in_train": 4}
    said = list(map(Message.from_json, record["said"]))
    assert "4 of the 10 training rows, by a hash of their texts, are used" in said
    assert record["task"]["labels"] == ["긍정", "부정"]
    assert re.fullmatch(r"\d+ texts \([0-9.]+ %\) are cut at 4 pieces: --set max_length=N reads up to \d+", said[-1])
    assert said[-1] in caplog.messages


def test_training_rows_alone_are_learned_with_wrong_spaces(learn, start, tmp_path):
    """Noise is the same for the same seed, and without it nothing differs; scores and baselines know the rows."""
    kind, header, rows = moods()
    path = write_table(tmp_path / "mine.csv", header, rows)

    def ready(kind=kind, path=path, **settings):
        given = {"train": path, "valid": path, "test": path}
        return fine_tune(kind, start, tmp_path / "ready", given, stage=prepare, **{**BASE, **settings})

    def ids(part):
        return [*map(bytes, (part.examples.input_ids, part.examples.boundaries, part.examples.offsets))]

    plain = ready()
    none = ready(spacing_noise=0)
    some, again, other = (ready(spacing_noise=0.5, seeds=[seed]) for seed in (0, 0, 1))
    assert [*map(ids, none.parts.values())] == [*map(ids, plain.parts.values())]
    assert none.said == plain.said
    assert ids(some.parts["train"]) == ids(again.parts["train"]) != ids(plain.parts["train"])
    assert ids(other.parts["train"]) != ids(some.parts["train"])
    for name in ("valid", "test"):
        assert ids(some.parts[name]) == ids(plain.parts[name])
    texts = [row["text"] for row in some.parts["train"].rows]
    changed = sum(text != given for text, given in zip(texts, TEXTS, strict=True))
    assert ["".join(text.split()) for text in texts] == ["".join(text.split()) for text in TEXTS]
    assert some.said[-1] == f"{changed} of 10 training rows are learned with wrong spaces"
    kind, header, rows = small.spans()
    tagged = ready(kind, write_table(tmp_path / "spans.csv", header, rows), spacing_noise=1).parts["train"].rows
    marked = [row["text"][start:end] for row in tagged for start, end, _ in row["spans"]]
    assert ["".join(text.split()) for text in marked] == WORDS
    folder = learn(*moods(), spacing_noise=0.5)
    assert scores_of(folder)["pretrained"]["accuracy"] > 0.8
    assert "tfidf" in scores_of(folder)
    record = json.loads((folder / "scores.json").read_text())
    assert (record["counts"]["test_in_train"], record["said"][-1]) == (10, some.said[-1].as_json())
