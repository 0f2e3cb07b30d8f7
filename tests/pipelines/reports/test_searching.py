"""The page of ways of searching: figures with intervals, and the queries on which the ways differ."""

from korbert.pipelines.reports.searching import differences, write_page
from korbert.search.evaluation import METRICS, Figure, Measured

PAIRS = [("음주운전 보험금", ["a"]), ("전세 보증금", ["b", "nowhere"]), ("상속 포기", ["c"])]
RIGHT = {"a": "음주운전 <면책> 약관", "b": "임대차 보증금의 반환", "c": "상속의 포기 " * 200}


def _ways(**ranks):
    return {way: Measured(dict.fromkeys(METRICS, Figure(0.5, 0.25, 0.75)), own) for way, own in ranks.items()}


def test_queries_stand_by_the_difference_of_the_ways():
    ways = _ways(words=[1, 2, None], vectors=[2, 2, 1], reranked=[3, 1, None])
    elements = list(differences(PAIRS, RIGHT, ways))
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
    page = write_page(tmp_path / "ways.html", "law: 3 queries.", PAIRS, RIGHT, ways)
    text = page.read_text(encoding="utf-8")
    assert text.count("50.0\u00a0% (25.0 to 75.0)") == 2 * len(METRICS)
    assert "both better than words · 2 of 3 queries" in text
    assert "음주운전 &lt;면책&gt; 약관" in text
    alone = _ways(words=[1, 2, None])
    alone["words"] = alone["words"]._replace(figures=dict.fromkeys(METRICS, Figure(1.0, None, None)))
    text = write_page(page, "law: 1 query.", PAIRS, RIGHT, alone).read_text(encoding="utf-8")
    assert "Where the ways differ" not in text
