"""The models that come with korbert: their size, what they answer, and how well, on real data."""

import csv
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import korbert
from korbert import folders
from korbert.modeling import load_model
from korbert.tasks import korquad
from korbert.tasks.metrics.regression import spearman
from korbert.tasks.metrics.token_classification import span_counts, tag_f1
from korbert.tasks.sets.loading import load
from korbert.tasks.splits import split_by_article
from korbert.tasks.token_classification.bio import read_bio
from korbert.training import devices
from tests.pipelines.service.started import started
from tests.running import wait_until

ROOT = Path(__file__).resolve().parent.parent
BOX = ROOT / "korbert" / "box"
NAMES = ["korbert-mini", "korbert-mini-embed", "korbert-mini-korquad", "korbert-mini-ner", "korbert-mini-nsmc"]

REVIEWS_RIGHT = 910  # of 1,000
QUESTIONS_F1 = 74.2  # of 100 questions
ENTITIES_F1 = 83.5  # of 250 sentences, macro
FACTS = 47  # of 100
DAILY = 21  # of 50
SIMILARITY = 71.0  # Spearman, times 100, of 690 pairs of KorSTS

_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"\d+\.\d+")


def test_the_box_is_small():
    assert folders.models_in_the_box() == NAMES
    assert sum(file.stat().st_size for file in BOX.rglob("*") if file.is_file()) <= 61e6


def test_models_at_hand_are_listed(here, command):
    shutil.copytree(BOX / "korbert-mini-nsmc", here / "artifacts" / "demo" / "nsmc" / "model")
    (here / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    assert korbert.models() == [*NAMES, "artifacts/demo/nsmc"]
    command("models", "none", code=2)
    *_, bundled, own = command("models").out.splitlines()
    assert bundled == "korbert-mini-nsmc  classification: one of 2 labels (부정, 긍정) for a text  9.7\u00a0MB"
    assert own == bundled.replace("korbert-mini-nsmc", "artifacts/demo/nsmc")


@pytest.mark.slow
def test_tuned_models_share_the_embeddings_of_their_base():
    base, *tuned = (load_model(BOX / name)[0] for name in NAMES)
    for model in tuned:
        assert model.encoder.token_weight.equal(base.encoder.token_weight)


@pytest.mark.slow
def test_the_pages_show_what_the_box_answers(tmp_path):
    pages = ("docs/index.md", "docs/ko/index.md")
    shown, korean = ("".join(_CONSOLE.findall((ROOT / page).read_text("utf-8"))) for page in pages)
    assert shown == korean
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    examples = [example.split("\n", 1) for example in shown.replace("\\\n", "").split("$ ")[1:]]
    assert len(examples) >= 3
    for command, printed in examples:
        run = subprocess.run(
            command, shell=True, cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True
        )
        assert _NUMBER.split(run.stdout) == _NUMBER.split(printed), run.stderr
        numbers, expected = (list(map(float, _NUMBER.findall(text))) for text in (run.stdout, printed))
        assert numbers == pytest.approx(expected, abs=2e-3)


@pytest.mark.slow
def test_reviews_of_nsmc(korbert_data):
    path = korbert_data / "nsmc" / "ratings_test.txt"
    rows = pd.read_csv(path, sep="\t", quoting=csv.QUOTE_NONE, keep_default_na=False)[::50]
    predictions = korbert.load("korbert-mini-nsmc").predict(rows["document"].tolist())
    right = sum((own.label == "긍정") == label for own, label in zip(predictions, rows["label"], strict=True))
    assert len(rows) == 1_000
    assert right == pytest.approx(REVIEWS_RIGHT, abs=3)


@pytest.mark.slow
def test_questions_of_korquad(korbert_data):
    """On articles that the model was not trained on."""
    _, valid = split_by_article(korquad.read(korbert_data / "korquad1" / "KorQuAD_v1.0_dev.json"))
    asked = valid.rows[:: len(valid) // 100][:100]
    answers = korbert.load("korbert-mini-korquad").answer(
        [row["question"] for row in asked], [row["context"] for row in asked]
    )
    golds = ([gold.text for gold in row["answers"]] for row in asked)
    f1 = [korquad.f1(own.answer, gold) for own, gold in zip(answers, golds, strict=True)]
    assert 100 * statistics.mean(f1) == pytest.approx(QUESTIONS_F1, abs=1)


@pytest.mark.slow
def test_entities_of_klue(korbert_data):
    rows = load("klue-ner", korbert_data).test.rows[::20]
    texts, gold = [row["text"] for row in rows], [read_bio(row["tags"]) for row in rows]
    tagged = korbert.load("korbert-mini-ner").tag(texts)
    predicted = [[(span.start, span.end, span.label) for span in spans] for spans in tagged]
    assert len(rows) == 250
    labels = sorted({label for spans in (*gold, *predicted) for *_, label in spans})
    counts = span_counts(gold, predicted, labels).sum(axis=0)
    assert 100 * (tag_f1(counts) or 0) == pytest.approx(ENTITIES_F1, abs=1)


@pytest.mark.slow
def test_similar_sentences_of_korsts(korbert_data):
    """The model was not trained on these scores."""
    rows = load("korsts", korbert_data).test.rows[::2]
    model = korbert.load("korbert-mini-embed")
    first, second = (model.embed([row[role] for row in rows]) for role in ("text", "pair"))
    correlation = spearman((first * second).sum(axis=1), np.array([row["score"] for row in rows]))
    assert len(rows) == 690
    assert 100 * (correlation or 0) == pytest.approx(SIMILARITY, abs=0.5)


@pytest.mark.slow
def test_search_of_the_sample_of_law(tmp_path):
    """By default, words and vectors together: of 100 questions, words find 97 first, vectors 98."""
    rows = [json.loads(line) for line in (ROOT / "corpus/sample/law/dev.jsonl").read_text("utf-8").splitlines()]
    index = korbert.Index.create(tmp_path / "law.index", korbert.load("korbert-mini-embed"))
    index.add([(row["id"], row["passage"]) for row in rows])
    assert index.way == "both"
    hits = index.search([row["query"] for row in rows], top=1)
    assert sum(hit.id == row["id"] for (hit,), row in zip(hits, rows, strict=True)) >= 96


@pytest.mark.slow
@pytest.mark.parametrize(("file", "top", "count", "known"), [
    ("box_facts.tsv", 5, 100, FACTS), ("box_daily.tsv", 3, 50, DAILY),
])  # fmt: skip
def test_gaps_are_filled_as_often_as_the_card_says(file, top, count, known):
    """A right word of a gap, one of facts and several of daily life, is among the first guesses, or not."""
    lines = (ROOT / "tests" / file).read_text("utf-8").splitlines()
    texts, answers = zip(*(line.split("\t") for line in lines), strict=True)
    gaps = korbert.load("korbert-mini").fill(texts, top=top)
    found = [
        not {guess.piece for guess in gap}.isdisjoint(answer.split(", "))
        for (gap,), answer in zip(gaps, answers, strict=True)
    ]
    assert len(found) == count
    assert sum(found) == pytest.approx(known, abs=2)


@pytest.mark.parametrize("rounding", ["bf16", "int8"])
def test_rounding_gives_nearly_the_same(rounding, here, monkeypatch, command):
    monkeypatch.setattr(devices, "has_bf16", lambda device: True)  # PyTorch does without the instructions, slowly
    texts = ["정말 재미있는 영화", "시간이 아깝다", "세종은 1443년에 한글을 만들었다."] * 4
    mini, reviews, reader = (partial(korbert.load, f"korbert-mini{task}") for task in ("", "-nsmc", "-korquad"))

    exact, rounded = (mini(precision=precision).embed(texts) for precision in ("fp32", rounding))
    assert 1e-4 < np.abs(exact - rounded).max() < 0.1
    (here / "texts.txt").write_text("\n".join(texts), encoding="utf-8")
    command("embed", "korbert-mini", "texts.txt", "--output", "vectors.npy", "--precision", rounding)
    np.testing.assert_allclose(np.load("vectors.npy"), rounded, atol=0.02)

    exact, rounded = (
        np.array([list(own.probabilities.values()) for own in reviews(precision=precision).predict(texts)])
        for precision in ("fp32", rounding)
    )
    assert 1e-6 < np.abs(exact - rounded).max() < 0.05

    exact, rounded = (
        reader(precision=precision).answer(["한글은 언제 만들어졌는가?"], [texts[2]])[0]
        for precision in ("fp32", rounding)
    )
    assert exact.answer == rounded.answer
    assert 0 < abs(exact.score - rounded.score) < 0.1


@pytest.mark.slow
def test_serve_alone_serves_the_box():
    with started() as service:
        assert all(name in service.said for name in NAMES)
        wait_until(lambda: service.ask("/ready").code != 503)
        vectors = service.ask("/v1/embeddings", {"model": "korbert-mini", "input": "신용 대출을 신청하고 싶어요"})
        assert len(vectors.json["data"][0]["embedding"]) == 256
        assert service.ask("/predict", {"model": "korbert-mini-nsmc", "input": "정말 재미있다"}).code == 200
