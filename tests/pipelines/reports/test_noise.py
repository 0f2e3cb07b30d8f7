"""The page of scores under noise, and of rows whose prediction noise changes."""

import pytest

from korbert.pipelines.experiments.evaluating import Evaluation
from korbert.pipelines.reports.noise import changes, write_page
from korbert.tasks.kinds import KINDS

TEXTS = ["정말 재미있다", "시간이 <아깝다>", "최고의 연기", "돈이 아깝다"]
SHARED = {"metrics": ("accuracy",), "max_length": 32}


def labels(*predicted, texts=TEXTS, disturbed=()):
    rows = [
        {"text": text, "label": label, "prediction": {"label": own, "probabilities": {own: 0.75}}}
        for text, label, own in zip(texts, "좋나좋나", predicted, strict=True)
    ]
    right = sum(row["label"] == row["prediction"]["label"] for row in rows) / 4
    return Evaluation({"accuracy": right}, {"accuracy": (0.25, 1.0)}, rows, dict(disturbed), ())


def numbers(*predicted, disturbed=()):
    rows = [{"text": TEXTS[at], "score": 1.0, "prediction": own} for at, own in enumerate(predicted)]
    return Evaluation({"pearson": None}, {"pearson": None}, rows, dict(disturbed), ())


@pytest.fixture
def moods():
    return KINDS["classification"].kind_class(labels=("좋", "나"), **SHARED)


def test_rows_that_noise_makes_wrong_or_right_are_shown(moods):
    close = ["".join(text.split()) for text in TEXTS]
    found = labels(*"좋나나나", disturbed={"no spaces": labels(*"좋좋좋나", texts=close)})
    wrong, right = changes(moods, found)
    assert wrong.title == "without spaces · wrong here alone · 1 of 4 rows"
    assert right.title == "without spaces · right here alone · 1 of 4 rows"
    (entry,) = wrong.entries
    assert entry.text == "시간이<아깝다>"
    predicted = {"predicted from it": "나 (75.0\u00a0%)", "predicted here": "좋 (75.0\u00a0%)"}
    assert dict(entry.facts) == {"text as given": "시간이 <아깝다>", "true": "나", **predicted}


def test_numbers_are_nearer_or_less_near():
    kind = KINDS["regression"].kind_class(mean=0, deviation=1, **SHARED | {"metrics": ("pearson",)})
    found = numbers(1.0, 2.0, 1.5, disturbed={"emoji": numbers(1.5, 3.5, 1.5), "laughter": numbers(1.0, 2.0, 1.0)})
    worse, better = changes(kind, found)
    assert worse.title == "emoji added · nearer as they are · 2 of 3 rows"
    assert [entry.text for entry in worse.entries] == [TEXTS[1], TEXTS[0]]  # the largest difference first
    assert better.title == "laughter added (ㅋㅋ, ㅠㅠ) · nearer here · 1 of 3 rows"


def test_a_page_has_scores_with_intervals_in_either_language(moods, tmp_path, monkeypatch):
    found = labels(*"좋나나나", disturbed={"no spaces": labels(*"좋좋좋나")})
    text = write_page(tmp_path / "sure.html", "mood", moods, found).read_text(encoding="utf-8")
    assert text.count("75.0\u00a0% (25.0 to 100.0") == 4
    assert "시간이 &lt;아깝다&gt;" in text
    assert "for classifiers" not in text
    tagger = KINDS["token-classification"].kind_class(
        tags=("O", "B-것", "I-것"), units="characters", stride=4, **SHARED | {"metrics": ("entity_f1",)}
    )
    rows = [{"text": "영화", "spans": [[0, 2, "것"]], "prediction": [[0, 2, "것"]]}]
    moved = [{"text": "영 화", "spans": [[0, 3, "것"]], "prediction": []}]
    scores, none = {"entity_f1": 1.0}, {"entity_f1": None}
    of_tagger = Evaluation(scores, none, rows, {"all spaces": Evaluation({"entity_f1": 0.0}, none, moved, {}, ())}, ())
    monkeypatch.setenv("KORBERT_LANG", "ko")
    text = write_page(tmp_path / "sure.html", "것", tagger, of_tagger).read_text(encoding="utf-8")
    assert "얼마나 믿을 수 있나?" in text
    assert "글자마다 띄움 · 여기서만 틀림 · 1행 / 전체 1행" in text
    assert "영화 것" in text
    assert "분류 모델에만" in text
