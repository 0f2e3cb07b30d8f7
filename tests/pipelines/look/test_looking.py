"""The data of the page: weights as bytes, guesses, vectors, attributions; and that no text becomes markup."""

import base64
import json
import math
import re
import sys
import zlib

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from korbert import Model, ModelError
from korbert.modeling import EmbeddingModel, EncoderModel, PretrainingModel, save_model
from korbert.pipelines.reports.look.data import look_data, stretches_of
from korbert.pipelines.reports.look.page import page
from korbert.tokenization import FIRST_PIECE, Pieces
from korbert.vectors.attention import attention
from korbert.vectors.attribution import attribute
from tests.korbert.tiny import stirred
from tests.pipelines.look.conftest import PAIR, TEXT

HOSTILE = '</script><script>window.hacked = 1</script><img src=x onerror="window.hacked = 2">&amp; \u202e \ud800'


def opened(packed, kind=np.uint8):
    return np.frombuffer(zlib.decompress(base64.b64decode(packed["data"])), kind).reshape(packed["shape"])


def test_weights_are_kept_to_half_a_percent_and_products_of_queries_and_keys_hold(filler):
    seen = attention(filler.network, filler.tokenizer, TEXT, PAIR)
    data = look_data(filler, TEXT, PAIR)
    weights = (opened(data["weights"]) / 255.0) ** 2
    np.testing.assert_allclose(weights, seen.weights, atol=0.004)
    assert data["units"]["piece"]["labels"] == [piece.removeprefix("▁") for piece in seen.encoding.pieces]
    assert data["units"]["eojeol"]["spans"][1] == (0, 2)
    assert "guesses" not in data
    neurons = data["neurons"]
    for name, expected in (("queries", seen.queries), ("keys", seen.keys)):
        scale = np.array(neurons[name]["scale"])[:, :, None, None]
        got = opened(neurons[name], np.int8) / 127 * scale
        np.testing.assert_allclose(got, expected, atol=scale.max() / 200)


def test_512_pieces_are_less_than_five_megabytes(tiny_tokenizer, tiny_config):
    """Of a model with the layers, heads and width of the recipe `small`."""
    small = tiny_config(hidden_size=256, num_hidden_layers=4, num_attention_heads=4)
    model = PretrainingModel(small, torch.Generator().manual_seed(3)).eval()
    data = look_data(Model(model, tiny_tokenizer), "학교에 간다 " * 127)
    assert 500 <= len(data["special"]) <= 512
    data["guesses"] = [{"own": 0.1234, "best": [["만났는데", 0.1234]] * 5}] * 512
    assert len(page(data).encode()) < 5_000_000


def test_guesses_are_those_of_fill_where_cutting_does_not_change(filler):
    """A mask in the text and one put on its piece are one row of ids here."""
    data = look_data(filler, "오늘 [MASK] 정말 좋다", whole=True)
    (expected,) = filler.fill("오늘 [MASK] 정말 좋다", top=5)
    place = data["units"]["piece"]["labels"].index("[MASK]")
    found = data["guesses"][place]
    assert found["own"] is None
    assert [name for name, _ in found["best"]] == [one.piece for one in expected]
    np.testing.assert_allclose([share for _, share in found["best"]], [one.probability for one in expected], rtol=2e-3)
    assert data["guesses"][0] is None


def test_guesses_are_those_of_a_text_with_that_piece_alone_masked(filler):
    """One row at a time, against 32 at once; the probability of what stands there, too."""
    encoding = filler.tokenizer.encode(TEXT, PAIR)
    found = filler.expect(TEXT, PAIR, top=3)
    columns = (encoding.token_type_ids, encoding.boundaries)
    segments, boundaries = (torch.tensor([column]) for column in columns)
    assert len(found) == len(encoding)
    for place, one in enumerate(found):
        assert (one is None) == bool(encoding.special_tokens_mask[place])
        if one is None:
            continue
        ids = torch.tensor([encoding.input_ids])
        ids[0, place] = filler.tokenizer.mask_id
        with torch.inference_mode():
            hidden = filler.network.encoder(ids, token_type_ids=segments, boundaries=boundaries)
            shares = filler.network.mlm_head(hidden[0, [place]]).softmax(dim=-1)[0]
        assert one.own == pytest.approx(float(shares[encoding.input_ids[place]]), rel=1e-3)
        best = shares[FIRST_PIECE:].topk(3)
        assert [share for _, share in one.guesses] == pytest.approx(best.values.tolist(), rel=1e-3)


def test_vectors_by_layer_are_those_of_an_embedder(tiny_tokenizer, config):
    model = EmbeddingModel(config, generator=torch.Generator().manual_seed(3))
    embedder = Model(stirred(model, 0.3), tiny_tokenizer)
    data = look_data(embedder, TEXT, PAIR)["vectors"]
    scale = np.array(data["vectors"]["scale"])[:, :, None]
    got = opened(data["vectors"], np.int8) / 127 * scale
    np.testing.assert_allclose(got[:, -1], embedder.embed([TEXT, PAIR], normalize=False), atol=scale.max() / 200)
    assert data["between_texts"][-1] == pytest.approx(embedder.similarity(TEXT, PAIR), abs=1e-3)
    assert np.diag(data["between_layers"][0]) == pytest.approx(1, abs=1e-3)


def test_attributions_sum_to_the_change_of_the_score(classifier):
    """Completeness (Sundararajan et al. 2017, proposition 1); special tokens, which stay, add nothing."""
    with torch.inference_mode():  # as a service may call it
        found = attribute(classifier.network, classifier.tokenizer, TEXT, most=3)
    expected = classifier.predict(TEXT)
    assert found.labels[0] == expected.label
    shares = dict(zip(found.labels, found.probabilities.tolist(), strict=True))
    assert shares == pytest.approx(expected.probabilities, abs=1e-5)
    log_odds = [math.log(probability / (1 - probability)) for probability in found.probabilities.tolist()]
    np.testing.assert_allclose(found.scores, log_odds, atol=1e-3)
    np.testing.assert_allclose(found.shares.sum(axis=1), found.scores - found.masked, rtol=0.02, atol=0.01)
    assert not found.shares[:, [0, -1]].any()
    assert np.abs(found.shares).max() > 0.01
    data = look_data(classifier, TEXT, whole=True)
    assert data["label"]["names"] == found.labels
    np.testing.assert_allclose(data["label"]["shares"], found.shares, rtol=1e-2, atol=1e-6)


def test_what_a_spelt_special_token_adds_to_a_label_is_that_of_its_piece():
    """A linear model reads it as characters, in pieces of their own."""
    linear = Model.load("korbert-mini-nsmc", "cpu")
    for text in ("이 [MASK] 최고", "[SEP]정말 [MASK]", "정말 방문한다"):
        data = look_data(linear, text)
        (shares,) = data["label"]["shares"]
        assert len(shares) == len(data["special"])
        assert shares[0] == shares[-1] == 0
        assert all(shares[1:-1])
        reasons = linear.predict(text, why=True).reasons  # all of them, as they are few
        assert sum(shares) == pytest.approx(sum(reason.weight for reason in reasons), abs=0.002)


def test_a_label_that_is_not_explained_says_why(classifier, monkeypatch):
    """A service does not attribute long texts, which would keep its user waiting."""
    assert "takes long: use korbert look" in look_data(classifier, TEXT * 10)["missing"]["label"]
    assert look_data(classifier, TEXT)["label"]["names"] == (classifier.predict(TEXT).label,)
    monkeypatch.setitem(sys.modules, "captum", None)
    data = look_data(classifier, TEXT)
    assert data["label"] is None
    assert "pip install 'korbert[look]'" in data["missing"]["label"]


def test_a_reader_shows_its_answers(reader):
    context = "세종은 1443년에 한글을 만들었다."
    question = "한글은 언제 만들어졌나?"
    reading = look_data(reader, question, context)["reading"]
    best = reading["answers"][0]
    assert best["text"] == reader.answer(question, context).answer == context[best["start"] : best["end"]]
    assert "reading" not in look_data(reader, question)
    long = look_data(reader, question, f"{context} " * 100)
    assert "shorten it" in long["missing"]["attention"]
    assert long["reading"]["answers"]
    with pytest.raises(ModelError, match="shorten it"):
        look_data(reader, f"{question} " * 100)


def test_an_encoder_without_attention_weights_has_the_other_views(foreign):
    from korbert.huggingface.importing import load_encoder, read_folder
    from korbert.tokenization.transformers_tokenizer import TransformersTokenizer

    folder = foreign("funnel")
    encoder = load_encoder(folder, read_folder(folder))
    model = Model(EncoderModel(encoder.config, encoder=encoder), TransformersTokenizer.of_folder(folder))
    model.name = "there/model"
    data = look_data(model, "학교에 간다", "친구를 만난다")
    assert "funnel" in data["missing"]["attention"]
    assert "weights" not in data
    assert data["vectors"] is None  # its layers differ in pieces
    assert data["stretches"]
    assert data["model"]["name"] == "there"


def test_no_text_is_markup_in_the_page(filler):
    data = look_data(filler, HOSTILE, HOSTILE)
    made = page(data)
    made.encode()  # no lone surrogate
    assert made.count("<script") == 3
    assert made.count("</script>") == 3
    said = re.search(r'<script type="application/json" id="data">(.*?)</script>', made, re.DOTALL)
    assert json.loads(said[1])["texts"] == [HOSTILE, HOSTILE]
    assert not set("<>&") & set(said[1])
    made = page(None)  # which has nothing from elsewhere
    assert "https://" not in made.replace("https://www.w3.org", "")
    assert re.findall(r'(?:src|href)="([^"]*)"', made) == ["data:,", "docs"]
    assert [part for part in ("url(", "@import") if part in made] == []
    assert '<script type="application/json" id="data">null</script>' in made


@pytest.fixture(scope="module")
def folder(filler, tiny_tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pretrain")
    save_model(folder / "model", filler.network, tiny_tokenizer)
    return folder


def test_the_command_writes_the_page(folder, tmp_path, command):
    path = tmp_path / "look.html"
    assert command("look", folder, TEXT, PAIR, "--html", path).out == f"{path}\n"
    made = path.read_text(encoding="utf-8")
    assert '"guesses"' in made
    assert str(folder) not in made  # a page is passed on


def test_a_text_that_is_too_long_is_refused(folder, tmp_path, command):
    said = command("look", folder, "학교 " * 600, "--html", tmp_path / "look.html", code=2).err
    assert "the model reads 512: shorten it" in said
    assert not (tmp_path / "look.html").exists()


def test_a_pair_that_a_classifier_cannot_read_is_explained(classifier):
    assert look_data(classifier, TEXT)["prediction"]["label"] == classifier.predict(TEXT).label
    assert "is a pair of texts" in look_data(classifier, TEXT, PAIR)["missing"]["prediction"]


def test_an_encoder_without_heads_can_be_looked_at(filler):
    model = EncoderModel(filler.network.config, encoder=filler.network.encoder)
    data = look_data(Model(model, filler.tokenizer), TEXT, whole=True)
    assert data["model"]["kind"] == "encoder"
    assert "guesses" not in data


def test_fused_pieces_share_their_characters():
    fused = Pieces(
        [400] * 5,
        ["하", "었", "다", "이", "다"],
        [3, 1, 1, 2, 1],
        [(0, 1), (0, 1), (1, 2), (5, 5), (5, 6)],
        [*range(5)],
        ["VV", "EP", "EF", "VCP", "EF"],
    )
    expected = [("했", "하었"), ("다", "다"), ("  의", ""), ("", "이"), ("다", "다"), ("!", "")]
    shown = stretches_of("했다  의다!", fused)
    assert [(text, "".join(piece for piece, _ in pieces)) for text, pieces in shown] == expected


@settings(max_examples=60)
@given(st.text("가나다했걸써ᄒㅋ a1.\n\t👍🏻學𠀀\u200d", max_size=30))
def test_the_stretches_are_the_text(tiny_tokenizer, text):
    encoded = tiny_tokenizer.encode_pieces(text)
    shown = stretches_of(text, encoded)
    assert "".join(stretch for stretch, _ in shown) == text
    assert [piece for _, pieces in shown for piece, _ in pieces] == encoded.pieces
