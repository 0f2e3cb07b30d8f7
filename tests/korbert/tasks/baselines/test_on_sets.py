"""Rows of the known sets: the linear baselines find what is there to find, and no more."""

import numpy as np
import pytest

from korbert.tasks.baselines import Choices, Pairs, fit_choices, fit_labels, fit_multilabel, fit_scores
from korbert.tasks.files import ROLES, read_rows
from korbert.tasks.metrics.multilabel import micro_f1
from korbert.tasks.metrics.regression import pearson
from korbert.tokenization import Analyzer

TEXT, PAIR, LABEL, SCORE, CHOICES = (ROLES[name] for name in ("text", "pair", "label", "score", "choices"))


@pytest.fixture(scope="module")
def analyzer():
    return Analyzer()


@pytest.fixture
def tasks(korbert_data):
    return korbert_data / "tasks"


def _forms(analyzer, texts):
    return [analysis.forms for analysis in analyzer.analyze_many(texts)]


def _pairs(analyzer, rows):
    return Pairs(*(_forms(analyzer, [row[role] for row in rows]) for role in ("text", "pair")))


def test_question_pairs_are_told_apart_well_above_the_majority(tasks, analyzer):
    names = ("kor_pair_train.csv", "kor_Pair_test.csv")
    train, test = (list(read_rows(tasks / "question_pair" / name, [TEXT, PAIR, LABEL]))[:4000] for name in names)
    pairs, tested = _pairs(analyzer, train), _pairs(analyzer, test)
    labels, expected = (np.array([int(row["label"]) for row in rows]) for rows in (train, test))
    first, last = (
        (Pairs(pairs.first[part], pairs.second[part]), labels[part]) for part in (slice(3500), slice(3500, None))
    )
    found = fit_labels(first, last, tested, [0.1, 1.0])
    most_frequent = np.bincount(first[1]).argmax()
    assert (found.predictions.argmax(axis=1) == expected).mean() > 0.7
    assert 0.5 < (expected == most_frequent).mean() < 0.55


def test_similarity_of_sentences(tasks, analyzer):
    parts = [
        list(read_rows(tasks / "korsts" / f"sts-{part}.tsv", [TEXT, PAIR, SCORE]))[::3]
        for part in ("train", "dev", "test")
    ]
    train, valid, test = ((_pairs(analyzer, rows), np.array([row["score"] for row in rows])) for rows in parts)
    found = fit_scores(train, valid, test[0], [3.0, 10.0])
    correlation = pearson(test[1], found.predictions)
    assert correlation is not None
    assert 0.6 < correlation < 0.75


def test_the_likelier_alternative(tasks, analyzer):
    parts = [
        list(read_rows(tasks / "kobest" / "COPA" / f"{part}.tsv", [TEXT, CHOICES, LABEL], columns={"label": "Answer"}))[
            :2000
        ]
        for part in ("train", "dev", "test")
    ]
    inputs = [
        Choices(_forms(analyzer, [row["text"] for row in rows]), [_forms(analyzer, row["choices"]) for row in rows])
        for rows in parts
    ]
    places = [np.array([int(row["label"]) - 1 for row in rows]) for rows in parts]
    found = fit_choices((inputs[0], places[0]), (inputs[1], places[1]), inputs[2], [0.3])
    assert (found.predictions.argmax(axis=1) == places[2]).mean() > 0.59
    assert (places[2] == np.bincount(places[0]).argmax()).mean() == 0.517


def test_several_labels_of_comments(tasks, analyzer):
    """What a comment is hateful of, and how: none, one or two of four labels."""
    names = ("others", "gender", "offensive", "hate")
    parts = []
    for part in ("train", "dev"):
        found = [
            read_rows(tasks / "hate_speech" / f"{part}.tsv", [TEXT, LABEL], columns={"label": column})
            for column in ("bias", "hate")
        ]
        said = [{row["label"] for row in rows} for rows in zip(*found, strict=True)][:2500]
        targets = np.array([[name in labels for name in names] for labels in said])
        parts.append((_forms(analyzer, [row["text"] for row in found[0]][:2500]), targets))
    (texts, targets), (tested, expected) = parts
    baseline = fit_multilabel((texts[:2000], targets[:2000]), (texts[2000:], targets[2000:]), tested, [4.0, 16.0])
    assert not (targets[:2000].mean(axis=0) > 0.5).any()  # the most frequent labels score 0
    assert micro_f1(expected, baseline.predictions > 0.5) > 0.38
