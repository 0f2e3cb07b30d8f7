"""What each morpheme adds to a label: the parts sum to the score."""

import numpy as np
import pytest
import torch

import korbert
from korbert.errors import SettingsError
from korbert.modeling import LinearModel
from korbert.tasks.kinds.texts import LinearExamples
from korbert.tasks.passages import encode_passages
from korbert.tasks.reasons import piece_scores, reasons_of
from korbert.tasks.terms import term_ids, term_spans, terms_of
from korbert.training import model_inputs

TEXTS = ["정말 재미있는 영화였다", "시간이 아깝다", "또 보고 싶은 Good 영화"]


@pytest.fixture(scope="module")
def start():
    return korbert.load("korbert-mini-embed")


def linear(start, passages, num_texts, *, words=True):
    """A model with random weights on the terms of some rows."""
    ids = np.unique(terms_of(passages).ids).astype(np.int32) if words else np.empty(0, np.int32)
    model = LinearModel.on(start.network, 3, len(ids), num_texts)
    generator = torch.Generator().manual_seed(0)
    model.terms.copy_(torch.from_numpy(ids))
    for weights in (model.words, model.vectors.weight, model.vectors.bias, model.center, model.frequencies):
        weights.data.copy_(torch.randn(weights.shape, generator=generator).abs() / 10 + 0.1)
    return model.eval()


@pytest.mark.parametrize("num_texts", [1, 2])
@pytest.mark.parametrize("length", [8, 64])  # windows, and the whole
def test_pieces_sum_to_the_scores_of_the_vectors(start, num_texts, length):
    passages = [
        [one, two][:num_texts]
        for one, two in zip(*(encode_passages(start.tokenizer, t) for t in (TEXTS, TEXTS[::-1])), strict=True)
    ]
    model = linear(start, passages, num_texts, words=False)
    examples = LinearExamples.of_texts(passages, np.zeros(3), start.tokenizer, length)
    for number in range(3):
        batch = examples.batch(np.array([number]))
        with torch.no_grad():
            parts = piece_scores(model, batch, num_texts).sum(dim=(0, 1))
            assert torch.allclose(parts, model(**model_inputs(batch))[0] - model.vectors.bias, atol=1e-5)


def test_words_sum_to_their_scores(start):
    """White space has no share of them."""
    passages = [[one] for one in encode_passages(start.tokenizer, TEXTS)]
    model = linear(start, passages, 1)
    model.reads_vectors = False
    examples = LinearExamples.of_texts(passages, np.zeros(len(TEXTS)), start.tokenizer, 64)
    for number, own in enumerate(passages):
        found = reasons_of(model, examples, number, own, 1, several=True)
        with torch.no_grad():
            score = model(**model_inputs(examples.batch(np.array([number]))))[0] - model.vectors.bias
        assert sum(reason.weight for reason in found) == pytest.approx(float(score[1]), abs=1e-5)
        others = reasons_of(model, examples, number, own, 1, several=False)
        assert sum(reason.weight for reason in others) == pytest.approx(
            float(score[1] - (score[0] + score[2]) / 2), abs=1e-5
        )


def test_terms_cover_what_they_are_made_of(start):
    (passage,) = encode_passages(start.tokenizer, ["  정말 Good\t영화  "])
    ids, spans = term_ids(passage, 0), term_spans(passage)
    assert len(ids) == len(spans)
    covered = [passage.text[first:last] for first, last in spans]
    assert {"Good", "Go", "정말", "영화"} <= set(covered)
    assert all(part == part.strip() for part in covered)


def test_a_word_that_is_taken_out_takes_its_weight_along(start):
    rows = [("아주 재미있다", "좋"), ("정말 재미있다", "좋"), ("아주 지루하다", "싫"), ("정말 지루하다", "싫")] * 6
    model = korbert.finetune(
        "korbert-mini", [(f"{text} {n}", label) for n, (text, label) in enumerate(rows)], quick=True, baselines=False
    ).model
    label = model.predict("정말 재미있다", why=True)
    assert label.label == "좋"
    assert label.reasons[0].text in ("재미있", "재미있다", "재미")
    assert label.reasons[0].weight == max(reason.weight for reason in label.reasons)
    (other,) = model.predict(["지루하다"], why=True)
    assert other.label == "싫"
    assert model.predict("", why=True).reasons is None
    encoder = korbert.finetune("korbert-mini", rows, only="encoder", epochs=1, baselines=False).model
    with pytest.raises(SettingsError, match="no linear part: use korbert look"):
        encoder.predict("재미있다", why=True)
