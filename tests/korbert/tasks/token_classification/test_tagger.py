"""Learning labels of pieces, and giving them to texts of any length."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import korbert
from korbert.errors import ModelError
from korbert.model import Model
from korbert.modeling import TokenClassificationModel
from korbert.system.ranks import World
from korbert.tasks.kinds.token_classification import TokenClassification, learn_dictionary, look_up
from korbert.tasks.passages import encode_passages
from korbert.tasks.token_classification.bio import bio_labels, read_bio, write_bio
from korbert.tasks.token_classification.examples import IGNORED, by_text, encode_tags, make_examples
from korbert.tasks.token_classification.labels import piece_tags
from korbert.tasks.token_classification.tagger import (
    best_path,
    best_tags,
    piece_scores,
    tagged_spans,
    tagged_words,
    tagging_loss,
    unit_starts,
    units_of,
)
from korbert.training import OptimizerSettings, TrainingPlan, fit, scoring
from korbert.training.examples import Batches
from tests.korbert.tasks.answering import passage
from tests.korbert.tasks.token_classification.helpers import marked
from tests.korbert.tiny import tiny_config

CPU = torch.device("cpu")
SENTENCES = [
    "<세종:PS>은 <한글:AF>을 만들었다.",
    "<서울:LC>에서 <철수:PS>를 봤다.",
    "나는 어제 <부산:LC>에 갔다.",
    "이걸 만든 사람은 <장영실:PS>이다.",
    "영화가 정말 재미있었다!",
    "<영희:PS>와 <철수:PS>가 <제주도:LC>로 떠났다.",
    "<대한민국:LC>의 수도는 <서울:LC>이다.",
    "배우의 연기가 좋았지만 이야기는 지루했다.",
    "<한글:AF>은 <대한민국:LC>의 글자다.",
    "",
]
LABELS = bio_labels(["PS", "LC", "AF"])


def _network(vocab_size, labels=LABELS):
    config = tiny_config(vocab_size=vocab_size, hidden_size=16, num_attention_heads=2, intermediate_size=32)
    return TokenClassificationModel(config, labels, torch.Generator().manual_seed(0))


def _kind(labels=LABELS, units="characters"):
    return TokenClassification(metrics=("accuracy",), max_length=12, stride=3, tags=labels, units=units)


def _learned(kind, tokenizer, rows):
    """A model trained on the rows until it knows them."""
    texts = [text for row in rows for text in kind.texts(row)]
    examples = kind.prepare(rows, [[passage] for passage in encode_passages(tokenizer, texts)], tokenizer).examples
    network = _network(tokenizer.vocab_size, kind.tags)
    batches, optimizer = Batches(examples, 8, seed=1), OptimizerSettings(learning_rate=1e-2, weight_decay=0.0)
    plan = TrainingPlan(steps=60 * batches.steps_per_epoch, optimizer=optimizer, seed=1, precision="fp32")
    fit(network, batches, tagging_loss, plan, device=CPU)
    with torch.no_grad():
        assert float(tagging_loss(network.eval(), examples.batch(np.arange(len(examples))))["loss"]) < 0.05
    return Model(network, tokenizer, kind)


@pytest.fixture(scope="module")
def learned(tmp_path_factory, tiny_tokenizer):
    """A model that knows the sentences by heart."""
    rows = [dict(zip(("text", "spans"), marked(sentence), strict=True)) for sentence in SENTENCES]
    folder = tmp_path_factory.mktemp("tagging")
    _learned(_kind(), tiny_tokenizer, rows).save(folder)
    return folder


def test_ten_sentences_are_learned_by_heart(learned):
    tagger = korbert.load(learned, "cpu")
    assert tagger.kind == _kind()
    assert tagger.max_length == 12
    texts = [marked(sentence) for sentence in SENTENCES]
    found = tagger.tag(text for text, _ in texts)
    for (text, spans), tagged in zip(texts, found, strict=True):
        assert [(one.start, one.end, one.label) for one in tagged] == spans
        assert [one.text for one in tagged] == [text[span.start : span.end] for span in spans]
        assert all(0.8 < one.score <= 1 for one in tagged)
    assert tagger.tag([texts[0][0]]) == [tagger.tag(texts[0][0])]
    assert tagger.tag([]) == []
    assert tagger.tag("") == tagger.tag(" \n") == []


def test_a_long_text_is_labelled_to_its_end(learned):
    """As long as forty windows; nothing is cut off, and each piece has the scores of the window that labels it."""
    tagger = Model.load(learned, "cpu")
    text, spans = marked(" ".join(SENTENCES * 6))
    found = [(one.start, one.end, one.label) for one in tagger.tag(text)]
    assert len(set(found) & set(spans)) > 0.8 * len(spans)
    assert set(found[-2:]) & set(spans[-3:])
    (passage,) = encode_passages(tagger.tokenizer, [text])
    targets = [np.full(len(passage.ids), IGNORED)]
    examples = make_examples([passage], targets, tagger.tokenizer, max_length=12, stride=3)
    (scores,) = by_text(piece_scores(tagger.network, examples, len(LABELS), device=CPU), examples.windows)
    assert scores.shape == (len(passage.ids), len(LABELS))
    assert len(examples.windows) > 20
    for row, window in enumerate(examples.windows):
        ids = examples.batch(np.array([row]))["input_ids"]
        with torch.inference_mode():
            alone = tagger.network(ids).log_softmax(dim=-1)[0, 1:-1].numpy()
        own = slice(window.low - window.first, window.high - window.first)
        np.testing.assert_allclose(scores[window.low : window.high], alone[own], atol=1e-5)
    # Scores that are no numbers name the model.
    with torch.no_grad():
        tagger.network.classifier.bias.fill_(float("nan"))
    with pytest.raises(ModelError, match=rf"{learned}: its scores are not finite: train it again"):
        tagger.tag("좋다")


def test_parts_of_speech_of_words(tiny_tokenizer):
    """Words with or without a space; each has the label of its first piece."""
    rows = [
        {"text": "학교에 간다.", "tokens": ["학교에", "간다", "."], "tags": ["NOUN", "VERB", "PUNCT"]},
        {"tokens": ["나는", "밥을", "먹었다", "."], "tags": ["PRON", "NOUN", "VERB", "PUNCT"]},
        {"text": "정말 좋다!", "tokens": ["정말", "좋다", "!"], "tags": ["ADV", "ADJ", "PUNCT"]},
    ]
    tagger = _learned(_kind(["ADJ", "ADV", "NOUN", "PRON", "PUNCT", "VERB"], units="words"), tiny_tokenizer, rows)
    assert tagger.predict_rows([{**row, "tags": None} for row in rows]) == [row["tags"] for row in rows]
    assert tagger.predict_rows([{"tokens": []}]) == [[]]
    assert tagger.predict_rows([{"tokens": [" ", "정말"]}])[0][0] == "ADJ"  # without pieces: the first label
    eojeols = tagger.tag("학교에 간다.")  # a text alone is cut at white space
    assert [(one.text, one.label) for one in eojeols] == [("학교에", "NOUN"), ("간다.", "VERB")]
    assert all(0.5 < one.score <= 1 for one in eojeols)


def test_tags_are_legal_whatever_the_model_says(tiny_tokenizer):
    """The score of a span is the mean probability of the tags of its pieces."""
    model = _network(tiny_tokenizer.vocab_size)
    torch.nn.init.normal_(model.classifier.weight, std=3, generator=torch.Generator().manual_seed(2))
    how = {"metrics": ("accuracy",), "max_length": 64, "stride": 16}
    tagger = Model(model, tiny_tokenizer, TokenClassification(tags=LABELS, units="characters", **how))
    (passage,) = encode_passages(tiny_tokenizer, ["배우의 연기가 좋았지만 이야기는 지루했다. 그래도 볼 만하다."])
    scores = np.full((len(passage.ids), len(LABELS)), -9.0, dtype=np.float32)
    scores[:, LABELS.index("I-PS")] = np.log(0.9)
    scores[0, LABELS.index("B-PS")] = np.log(0.5)
    ((*span, score),) = tagged_spans(passage, best_tags(scores[units_of(None, passage)], LABELS), LABELS)
    assert (span, 0.5 < score < 0.9) == ([0, len(passage.text), "PS"], True)
    for one in tagger.tag(passage.text):
        assert one.text == passage.text[one.start : one.end] != ""


def test_words_that_share_a_piece_have_its_tag():
    text, words = passage("이걸 봤다", [(0, 2), (1, 2), (3, 4), (3, 4), (4, 5)]), [(0, 1), (1, 2), (3, 5)]  # 이 걸 봤다
    assert units_of(words, text).tolist() == [0, 2]
    assert unit_starts(words, text).tolist() == [0, 3]
    tags = best_tags(np.log(np.array([[0.9, 0.1], [0.2, 0.8]], np.float32)), ["NP", "VV"])
    found = tagged_words([*words, (2, 3)], text, tags, ["NP", "VV"])
    assert [tag for tag, _ in found] == ["NP", "NP", "VV", None]
    assert [share for _, share in found] == pytest.approx([0.9, 0.9, 0.8, 0])


def _examples(tokenizer):
    texts = [marked(sentence) for sentence in SENTENCES]
    passages = encode_passages(tokenizer, [text for text, _ in texts])
    tags = map(piece_tags, (spans for _, spans in texts), passages)
    return make_examples(passages, [encode_tags(own, LABELS) for own in tags], tokenizer, max_length=10, stride=2)


def test_processes_share_the_rows(tiny_tokenizer, monkeypatch):
    """What each of three scores, added up, is what one scores."""
    examples = _examples(tiny_tokenizer)
    model, told = _network(tiny_tokenizer.vocab_size).train(), []

    def scores(model, batch):
        return model(**scoring.model_inputs(batch)).flatten(1)

    whole = scoring.outputs(model, examples, scores, 3, device=CPU, advance=told.append)
    assert model.training  # as it was
    assert sum(told) == len(examples)
    monkeypatch.setattr(scoring, "add_over_world", lambda tensor, here: None)
    monkeypatch.setattr(scoring, "all_reduce_max", lambda width: whole.shape[1])
    parts = []
    for rank in range(3):
        monkeypatch.setattr(scoring, "current_world", lambda rank=rank: World(rank, 3))
        parts.append(scoring.outputs(model, examples, scores, 3, device=CPU))
    assert not any((part == whole).all() for part in parts)
    np.testing.assert_array_equal(sum(parts), whole)


def test_the_loss_weighs_every_piece_alike(tiny_tokenizer):
    examples = _examples(tiny_tokenizer)
    model = _network(tiny_tokenizer.vocab_size).eval()
    rows = np.arange(len(examples))
    with torch.no_grad():
        whole = tagging_loss(model, examples.batch(rows))["loss"].item()
        parts = [rows[:5], rows[5:7], rows[7:]]
        shares = [tagging_loss(model, examples.batch(part))["loss"].item() * len(part) / len(rows) for part in parts]
    assert sum(shares) == pytest.approx(whole, rel=1e-5)  # as processes that share a batch add up
    scores, labels = piece_scores(model, examples, len(LABELS), device=CPU), examples.batch(rows)["labels"].numpy()
    learned = np.nonzero(labels != IGNORED)
    mean = -scores[(*learned, labels[learned])].mean()
    assert whole == pytest.approx(float(mean), rel=1e-5)


LABEL_SETS = [
    ["O", "B-PS", "I-PS"],
    ["I-PS", "O", "B-LC", "B-PS", "I-LC"],
    ["O", "I-PS", "I-LC"],  # IOB1
    ["NOUN", "VERB", "B-X"],  # no BIO tags
]


def is_legal(tags, labels):
    """A legal sequence is what is written for its spans."""
    if "NOUN" in labels or not any(label.startswith("B-") for label in labels):
        return True
    return write_bio(read_bio(tags), len(tags)) == tags


@given(labels=st.sampled_from(LABEL_SETS), length=st.integers(0, 5), seed=st.integers(0, 10_000))
def test_the_best_legal_path_is_that_of_trying_all(labels, length, seed):
    scores = np.log(np.random.default_rng(seed).dirichlet(np.ones(len(labels)), size=length))
    path = best_path(scores, labels)
    assert path.shape == (length,)
    assert is_legal([labels[place] for place in path], labels)
    ways = product(range(len(labels)), repeat=length)
    legal = [way for way in ways if is_legal([labels[label] for label in way], labels)]
    best = max(sum(scores[place, label] for place, label in enumerate(way)) for way in legal)
    assert sum(scores[np.arange(length), path]) == pytest.approx(best)
    # A probability of 0 is no obstacle, and gives no NaN.
    scores = np.array([[-np.inf, -1.0, 0.0], [-np.inf, -np.inf, 0.0]])
    assert best_path(scores, ["O", "B-PS", "I-PS"]).tolist() == [1, 2]


FOUND = [
    "<세종:PS>은 <서울:LC>에 산다",
    "<서울대:OG>는 <서울:LC>에 있고 <서울:OG>이 이겼다",
    "<이:PS>는 이 집의 이웃이다",
]


def test_the_longest_entry_with_its_most_frequent_label():
    dictionary = learn_dictionary(map(marked, FOUND))
    assert dictionary == {"서울": "LC", "서울대": "OG", "세종": "PS"}  # 이 is mostly no name
    text, expected = marked("<서울대:OG>에서 <서울:LC><서울:LC> <세종:PS>")
    assert look_up(text, dictionary) == expected
    assert look_up("", dictionary) == look_up("서", dictionary) == look_up("서울", {}) == []
    assert learn_dictionary(map(marked, ["<한강:LC>", "<한강:AF>"])) == {"한강": "AF"}
    assert learn_dictionary(map(marked, ["<한강:LC>", "한강"])) == {}
