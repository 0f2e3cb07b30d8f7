import unicodedata

import numpy as np
import pytest

import korbert
from korbert.errors import SettingsError
from korbert.model import Model
from korbert.tasks.kinds.regression import Regression

REFUNDS = ["환불해 주세요", "돈을 돌려받고 싶어요", "환불 신청했어요", "반품하고 환불받을게요", "결제한 돈 돌려주세요"]
DELIVERIES = ["배송이 언제 오나요", "택배가 아직 안 왔어요", "배송지를 바꿔 주세요", "언제 도착해요?", "배달이 늦네요"]
TEXTS = [*REFUNDS, *DELIVERIES, " "]


@pytest.fixture(scope="module")
def embedder():
    return korbert.load("korbert-mini-embed")


@pytest.fixture(scope="module")
def classifier(embedder):
    return korbert.zero_shot(["환불", "배송"], TEXTS, {"배송": "물건이 언제 오는지 묻는다"}, embedder)


def test_names_of_labels_are_enough(classifier, tmp_path):
    labels = [one.label for one in classifier.predict([*REFUNDS, *DELIVERIES])]
    right = np.array(labels) == np.repeat(["환불", "배송"], 5)
    assert right.mean() >= 0.9
    classifier.save(tmp_path / "model")
    again = korbert.load(tmp_path / "model").predict("물건이 안 왔어요")
    assert again.label == "배송"
    assert again.probabilities == pytest.approx(classifier.predict("물건이 안 왔어요").probabilities, abs=1e-6)


def test_a_description_moves_the_labels(embedder):
    texts = ["고양이가 귀엽다", "강아지가 짖는다", "버스가 늦었다", "지하철을 탔다"] * 3
    model = korbert.zero_shot(["가", "나"], texts, {"가": "동물 이야기이다", "나": "교통 이야기이다"}, embedder)
    assert [one.label for one in model.predict(texts[:4])] == ["가", "가", "나", "나"]


def test_texts_of_one_label_alone(embedder):
    model = korbert.zero_shot(["환불", "날씨"], REFUNDS[:2], model=embedder)
    assert model.predict(REFUNDS[0]).label == "환불"


@pytest.mark.parametrize(
    ("labels", "texts", "descriptions", "said"),
    [
        (["환불"], TEXTS, {}, "labels: 환불: give two labels or more"),
        (["환불", "환불"], TEXTS, {}, "each once"),
        (["환불", unicodedata.normalize("NFD", " 환불")], TEXTS, {}, "each once"),
        ("환불", TEXTS, {}, "labels: 환불: give two labels or more"),
        (["환불", " "], TEXTS, {}, "none empty"),
        (["환불", "배송"], TEXTS, {"교환": "바꾸기"}, "교환: is none of the labels 환불, 배송"),
        (["환불", "배송"], ["", " "], {}, "all are empty"),
    ],
)
def test_what_is_refused(labels, texts, descriptions, said, embedder):
    with pytest.raises(SettingsError, match=said):
        korbert.zero_shot(labels, texts, descriptions, embedder)


def test_suggestions_without_a_classifier_are_unlike_each_other(embedder):
    (one, other) = korbert.suggest(embedder, TEXTS, 2)
    assert one.text in REFUNDS
    assert other.text in DELIVERIES
    assert (one.labels, one.probability) == ((), None)
    every = korbert.suggest(embedder, TEXTS, 100)
    assert [one.place for one in every] == list(range(10))  # but the empty one


def test_suggestions_are_what_a_classifier_is_least_sure_of(classifier, embedder):
    clear = [f"{text} {number}번" for text in (*REFUNDS, *DELIVERIES) for number in range(8)]
    found = korbert.suggest(classifier, [*clear, "안녕하세요", "", "감사합니다", "네", "뭐라고요?"], 4)
    probabilities = [max(one.probabilities.values()) for one in classifier.predict(clear)]
    assert len({one.place for one in found}) == 4
    assert all(one.labels == [classifier.predict(one.text).label] for one in found)
    assert sum(one.probability < np.median(probabilities) for one in found) >= 2  # the others are drawn at random
    assert [one.place for one in korbert.suggest(classifier, [TEXTS[0], *TEXTS], 100)] == [0, *range(2, 11)]
    assert [one.place for one in korbert.suggest(classifier, ["\u200b", TEXTS[0]], 2)] == [1]
    kind = Regression(metrics=("rmse",), max_length=8, mean=0.0, deviation=1.0)
    numbers = Model(embedder.network, embedder.tokenizer, kind)
    with pytest.raises(SettingsError, match="no classifier of single texts"):
        korbert.suggest(numbers, TEXTS)
    with pytest.raises(SettingsError, match="take at least 1"):
        korbert.suggest(classifier, TEXTS, 0)
