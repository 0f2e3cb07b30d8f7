"""The pages of scores under noise and of ways of searching: figures with intervals, and rows that differ."""

import pytest

from korbert.pipelines.experiments.evaluating import Evaluation
from korbert.pipelines.reports.pages import noise, searching
from korbert.search.evaluation import METRICS, MeanWithInterval, SearchScores
from korbert.tasks.kinds import KINDS

TEXTS = ["정말 재미있다", "시간이 <아깝다>", "최고의 연기", "돈이 아깝다"]
SHARED = {"metrics": ("accuracy",), "max_length": 32}


def labels(*predicted, texts=TEXTS, with_noise=()):
    rows = [
        {"text": text, "label": label, "prediction": {"label": own, "probabilities": {own: 0.75}}}
        for text, label, own in zip(texts, "좋나좋나", predicted, strict=True)
    ]
    right = sum(row["label"] == row["prediction"]["label"] for row in rows) / 4
    return Evaluation({"accuracy": right}, {"accuracy": (0.25, 1.0)}, rows, dict(with_noise), ())


def numbers(*predicted, with_noise=()):
    rows = [{"text": TEXTS[at], "score": 1.0, "prediction": own} for at, own in enumerate(predicted)]
    return Evaluation({"pearson": None}, {"pearson": None}, rows, dict(with_noise), ())


@pytest.fixture
def moods():
    return KINDS["classification"].kind_class(labels=("좋", "나"), **SHARED)


def test_rows_that_noise_makes_wrong_or_right_are_shown(moods):
    close = ["".join(text.split()) for text in TEXTS]
    found = labels(*"좋나나나", with_noise={"no spaces": labels(*"좋좋좋나", texts=close)})
    wrong, right = noise.changes(moods, found)
    assert wrong.title == "without spaces · wrong here alone · 1 of 4 rows"
    assert right.title == "without spaces · right here alone · 1 of 4 rows"
    (entry,) = wrong.entries
    assert entry.text == "시간이<아깝다>"
    predicted = {"predicted from it": "나 (75.0\u00a0%)", "predicted here": "좋 (75.0\u00a0%)"}
    assert dict(entry.facts) == {"text as given": "시간이 <아깝다>", "true": "나", **predicted}


def test_graded_predictions_are_closer_or_further():
    kind = KINDS["regression"].kind_class(mean=0, deviation=1, **SHARED | {"metrics": ("pearson",)})
    found = numbers(1.0, 2.0, 1.5, with_noise={"emoji": numbers(1.5, 3.5, 1.5), "laughter": numbers(1.0, 2.0, 1.0)})
    worse, better = noise.changes(kind, found)
    assert worse.title == "emoji added · nearer as they are · 2 of 3 rows"
    assert [entry.text for entry in worse.entries] == [TEXTS[1], TEXTS[0]]  # the largest difference first
    assert better.title == "laughter added (ㅋㅋ, ㅠㅠ) · nearer here · 1 of 3 rows"


def test_a_page_has_scores_with_intervals_in_either_language(moods, tmp_path, monkeypatch):
    found = labels(*"좋나나나", with_noise={"no spaces": labels(*"좋좋좋나")})
    text = noise.write_page(tmp_path / "sure.html", "mood", moods, found).read_text(encoding="utf-8")
    assert text.count("75.0\u00a0% (25.0 to 100.0") == 4
    assert "시간이 &lt;아깝다&gt;" in text
    assert "for classifiers" not in text
    tagger = KINDS["token-classification"].kind_class(
        tags=("O", "B-것", "I-것"), units="characters", stride=4, **SHARED | {"metrics": ("entity_f1",)}
    )
    rows = [{"text": "영화", "spans": [[0, 2, "것"]], "prediction": [[0, 2, "것"]]}]
    moved = [{"text": "영 화", "spans": [[0, 3, "것"]], "prediction": []}]
    none = {"entity_f1": None}
    with_noise = {"all spaces": Evaluation({"entity_f1": 0.0}, none, moved, {}, ())}
    of_tagger = Evaluation({"entity_f1": 1.0}, none, rows, with_noise, ())
    monkeypatch.setenv("KORBERT_LANG", "ko")
    text = noise.write_page(tmp_path / "sure.html", "것", tagger, of_tagger).read_text(encoding="utf-8")
    assert "얼마나 믿을 수 있나?" in text
    assert "글자마다 띄움 · 여기서만 틀림 · 1행 / 전체 1행" in text
    assert "영화 것" in text
    assert "분류 모델에만" in text


PAIRS = [("음주운전 보험금", ["a"]), ("전세 보증금", ["b", "nowhere"]), ("상속 포기", ["c"])]
RIGHT = {"a": "음주운전 <면책> 약관", "b": "임대차 보증금의 반환", "c": "상속의 포기 " * 200}


def _ways(**ranks):
    return {
        way: SearchScores(dict.fromkeys(METRICS, MeanWithInterval(0.5, 0.25, 0.75)), own) for way, own in ranks.items()
    }


def test_queries_are_ordered_by_the_difference_of_the_ways():
    ways = _ways(words=[1, 2, None], vectors=[2, 2, 1], reranked=[3, 1, None])
    elements = list(searching.differences(PAIRS, RIGHT, ways))
    pairs = ["words better than vectors", "vectors better than words"]
    pairs += ["words better than reranked", "reranked better than words"]
    assert [element.title for element in elements] == [f"{pair} · 1 of 3 queries" for pair in pairs]
    assert [[entry.head for entry in element.entries] for element in elements] == [["a"], ["c"], ["a"], ["b, nowhere"]]
    (entry,) = elements[1].entries
    beyond = "not among the first 100"
    assert entry.facts == [("words", beyond), ("vectors", "rank 1"), ("reranked", beyond)]
    ((text, marks),) = entry.passage
    assert text.startswith("상속의 포기 상속의")
    assert len(text) < 610
    assert not marks


def test_the_page_has_figures_and_examples(tmp_path):
    ways = _ways(words=[1, 2, None], both=[2, 1, 1])
    page = searching.write_page(tmp_path / "ways.html", "law: 3 queries.", PAIRS, RIGHT, ways)
    text = page.read_text(encoding="utf-8")
    assert text.count("50.0\u00a0% (25.0 to 75.0)") == 2 * len(METRICS)
    assert "both better than words · 2 of 3 queries" in text
    assert "음주운전 &lt;면책&gt; 약관" in text
    alone = _ways(words=[1, 2, None])
    alone["words"] = alone["words"]._replace(figures=dict.fromkeys(METRICS, MeanWithInterval(1.0, None, None)))
    text = searching.write_page(page, "law: 1 query.", PAIRS, RIGHT, alone).read_text(encoding="utf-8")
    assert "Where the ways differ" not in text
