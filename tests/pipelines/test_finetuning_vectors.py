"""Sentence vectors learned from each form of rows, validated and tested on pairs with scores."""

import json

import numpy as np
import pytest
from sklearn.metrics.pairwise import cosine_similarity

import korbert
from korbert.errors import CorpusError, SettingsError
from korbert.messages import Message
from korbert.modeling import read_config
from korbert.search import Index, default_way
from korbert.search.evaluation import evaluate
from korbert.tasks.doubts import seen_in
from korbert.tasks.files import read_rows
from korbert.tasks.kinds import KINDS
from korbert.tasks.kinds.embedding import Embedding
from korbert.tasks.kinds.rerank import Rerank
from tests.korbert.tiny import json_lines
from tests.pipelines.small_tasks import TEXTS, fine_tune, scores_of, write_table

OTHERS = [
    "아주 신나는 작품", "하루를 버렸다", "배역을 잘 살렸다", "졸려서 혼났다", "한 번 더 볼 것이다",
    "노래가 듣기 좋다", "표가 비싸다", "주인공이 못한다", "부모님도 좋아했다", "끝이 싱겁다",
]  # fmt: skip
SCORED = ["sentence1", "sentence2", "score"]
ALL_PAIRS = [[a, b, str(int(one == two))] for one, a in enumerate(TEXTS) for two, b in enumerate(OTHERS)]
HIGHEST = np.corrcoef([1] * 10 + [0] * 90, range(100, 0, -1))[0, 1]  # Spearman of these two scores: cosines differ
BASE = {"learning_rates": 3e-3, "batch_size": 10, "epochs": 25, "max_length": 32, "threads": 1, "checkpoint_every": 999}


@pytest.fixture(scope="module", params=["modern"])
def start(request, untrained):
    """A model folder to begin from. `modern` has no dropout of its own."""
    return untrained(architecture=request.param, hidden_size=32, intermediate_size=32)


@pytest.fixture
def learn(tmp_path, start):
    """Runs a task on the rows of one CSV file, scored on those of another; the artifact's folder."""

    def learned(train, scored=(SCORED, ALL_PAIRS), **settings):
        parts = {"train": train} | ({} if scored is None else {"valid": scored, "test": scored})
        files = {name: write_table(tmp_path / f"{name}.csv", *rows) for name, rows in parts.items()}
        fine_tune("embedding", start, tmp_path / "out", files, **{**BASE, **settings})
        return tmp_path / "out"

    return learned


def test_scores(learn):
    rows = [[text, OTHERS[-place], str(place / 2)] for place, text in enumerate(TEXTS)]
    folder = learn((SCORED, rows), (SCORED, rows), epochs=60, precision="fp32")  # that of korbert.load
    found = scores_of(folder)
    assert list(found) == ["pretrained", "pretrained-untuned", "tfidf"]
    assert found["pretrained"]["spearman"] > 0.99
    assert found["pretrained"]["pearson"] > 0.8
    assert found["pretrained-untuned"]["spearman"] < 0.9
    embedder = korbert.load(folder, "cpu")
    lines = json_lines(folder / "predictions.jsonl")
    cosines = [line["predictions"]["pretrained"][0] for line in lines]
    assert [embedder.similarity(a, b) for a, b, _ in rows] == pytest.approx(cosines, abs=1e-5)
    pairs = [{"text": a, "pair": b} for a, b, _ in rows]
    assert embedder.predict_rows(pairs) == pytest.approx(cosines, abs=1e-5)
    with pytest.raises(SettingsError, match="a row has one text: give pairs"):
        embedder.predict_rows([{"text": "하나"}])


def test_labels_with_far_texts(learn):
    """Each text has one that follows from it, one that contradicts it, and one that does neither."""
    rows = []
    for place, text in enumerate(TEXTS):
        rows += [
            [text, OTHERS[place], "entailment"], [text, OTHERS[place - 3], "contradiction"], [text, "서울", "neutral"],
        ]  # fmt: skip
    folder = learn((["sentence1", "sentence2", "gold_label"], rows))
    assert scores_of(folder)["pretrained"]["spearman"] > 0.99 * HIGHEST
    assert korbert.load(folder, "cpu").similarity(TEXTS, OTHERS).argmax(axis=1).tolist() == list(range(10))
    said = list(map(Message.from_json, json.loads((folder / "scores.json").read_text())["said"]))
    assert any("dropped 10 as bad_row" in line and "'neutral' is neither near nor far" in line for line in said)


def test_pairs_that_are_near(learn):
    folder = learn((SCORED[:2], [list(pair) for pair in zip(TEXTS, OTHERS, strict=True)]))
    assert scores_of(folder)["pretrained"]["spearman"] > 0.99 * HIGHEST
    assert korbert.load(folder, "cpu").similarity(TEXTS, OTHERS).argmax(axis=1).tolist() == list(range(10))


def test_queries_find_their_passages(learn):
    """Pairs without scores are validated by retrieval, here on rows held out of the training file, behind prompts."""
    columns = ["query", "passage", "negative_1", "negative_2"]
    passages = [f"{text} {other}" for text in TEXTS for other in OTHERS]
    rows = [[text.split()[0] + " " + other, f"{text} {other}"] for text in TEXTS for other in OTHERS]
    rows = [[*row, passages[at - 1], passages[at - 10]] for at, row in enumerate(rows)]
    folder = learn((columns, rows), None, batch_size=16, chunk_pieces=300, sizes=[16], epochs=10,
                   query_prompt="질문: ", passage_prompt="문서: ")  # fmt: skip
    found = scores_of(folder)
    assert list(found) == ["pretrained", "pretrained-untuned", "bm25"]
    assert found["pretrained"]["mrr"] > max(0.5, found["pretrained-untuned"]["mrr"])
    assert found["bm25"]["mrr"] > 0.5
    model = korbert.load(folder, "cpu")
    lines = json_lines(folder / "predictions.jsonl")
    assert len({line["pair"] for line in lines}) == len(lines) == 10  # held out by passage
    texts = list(dict.fromkeys(text for line in lines for text in (line["pair"], *line["negatives"])))
    for size in (16, 32):
        queries = model.embed([line["text"] for line in lines], side="query", size=size)
        cosines = cosine_similarity(queries, model.embed(texts, side="passage", size=size))
        ranks = [int((row >= row[texts.index(line["pair"])]).sum()) for row, line in zip(cosines, lines, strict=True)]
        assert np.mean([1 / rank for rank in ranks]) > 0.4
    assert [line["predictions"]["pretrained"][0]["rank"] for line in lines] == ranks
    # Both ways together are the default of a search if validation found them better than words alone.
    weight = model.kind.cosine_weight
    assert default_way(model)[0] == ("both" if weight else "words")
    texts_of = {role: [line[role] for line in lines] for role in ("text", "pair")}
    index = Index.create(folder.parent / "index", model)
    index.add((text, text) for text in texts)
    ways = evaluate(index, texts_of["text"], [[text] for text in texts_of["pair"]])
    assert ways["both" if weight else "words"].figures["MRR"].value >= ways["words"].figures["MRR"].value
    assert read_config(folder)["task"]["metrics"] == ["mrr", "recall@1", "recall@10", "recall@100"]


def test_negatives_are_found_and_a_model_reranks(start, tmp_path, command):
    """`negatives` finds passages, `finetune --kind rerank` learns from them, `similar --rerank` sorts by it."""
    pairs = tmp_path / "pairs.jsonl"
    mined = tmp_path / "mined.jsonl"
    folder = tmp_path / "reranker"
    rows = [{"query": one.split()[-1], "passage": f"{one} {other}"} for one in TEXTS for other in OTHERS[:4]]
    pairs.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    _, err = command("negatives", str(start), str(pairs), "--output", str(mined), "--count", "3", "--way", "both")
    assert "mined.jsonl: 40 pairs, 0 of them without negatives" in err
    made = json_lines(mined)
    answers = {(row["query"], row["passage"]) for row in rows}
    assert [(row["query"], row["passage"]) for row in made] == [(row["query"], row["passage"]) for row in rows]
    assert all(row["negatives"] and len(row["negatives"]) <= 3 for row in made)
    assert not any((row["query"], negative) in answers for row in made for negative in row["negatives"])
    settings = ["learning_rates=3e-3", "batch_size=10", "max_length=32", "threads=1"]
    options = [part for setting in settings for part in ("--set", setting)]
    train = ["--train", str(mined), "--output", str(folder), "--epochs", "4"]
    command("finetune", str(start), "--kind", "rerank", *train, *options)
    found = scores_of(folder)
    assert list(found) == ["pretrained", "bm25"]
    assert list(found["pretrained"]) == ["mrr", "recall@1"]
    model = korbert.load(folder, "cpu")
    passages = [row["passage"] for row in rows]
    scores = model.predict([(TEXTS[0], passage) for passage in passages])
    line = json_lines(folder / "predictions.jsonl")[0]
    texts = [line["pair"], *line["negatives"]]
    own = model.predict([(line["text"], text) for text in texts])
    assert line["predictions"]["pretrained"][0]["rank"] == sum(score >= own[0] for score in own)
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(json.dumps({"id": text, "text": text}) + "\n" for text in passages), encoding="utf-8")
    ask = ["similar", str(start), str(corpus), TEXTS[0], "--top", "40", "--way", "vectors", "--json"]
    out, _ = command(*ask, "--rerank", str(folder))
    hits = json.loads(out)["hits"]
    relevance = dict(zip(passages, scores, strict=True))
    best = max(hit["score_vectors"] for hit in hits)
    expected = [relevance[hit["id"]] + 8 * hit["score_vectors"] / best for hit in hits]  # found_weight is 8
    assert [hit["score"] for hit in hits] == pytest.approx(expected, abs=1e-5)
    assert expected == pytest.approx(sorted(expected, reverse=True), abs=1e-5)
    assert {hit["rank_vectors"] for hit in hits} == set(range(1, 41))
    queries = tmp_path / "queries.jsonl"
    queries.write_text(json.dumps({"query": TEXTS[0], "relevant": hits[0]["id"]}), encoding="utf-8")
    out, _ = command("search-eval", str(start), str(queries), str(corpus), "--json", "--rerank", str(folder))
    assert json.loads(out)["ways"]["reranked"]["MRR"]["value"] <= 1
    _, err = command(*ask, "--rerank", str(start), code=2)
    assert "was not trained to rerank" in err


def test_a_pair_is_known_from_training_whatever_its_negatives_are():
    kind = Rerank(metrics=("mrr",), max_length=32)
    trained = [{"text": "대출 이자", "pair": "연 4 퍼센트이다.", "negatives": ["카드를 잃었다."]}]
    rows = [
        {"text": "대출 이자", "pair": "연  4 퍼센트이다.", "negatives": ["비가 온다."]},
        {"text": "대출 이자", "pair": "카드를 잃었다.", "negatives": ["연 4 퍼센트이다."]},
    ]
    assert len(seen_in(kind, rows, trained)) == 1


@pytest.mark.parametrize("start", [pytest.param("bert", marks=pytest.mark.slow), "modern"], indirect=True)
def test_texts_alone(learn):
    """A text becomes nearest to the one that begins as it does, among many that end alike."""
    changed = [f"{text.split()[0]} 그래서 그랬다고 한다" for text in TEXTS]
    scored = [[a, b, str(int(one == two))] for one, a in enumerate(TEXTS) for two, b in enumerate(changed)]
    rows = [[text] for text in [*TEXTS, *changed]]
    folder = learn((["text"], rows), (SCORED, scored), learning_rates=1e-3, epochs=40)
    found = scores_of(folder)
    assert found["pretrained-untuned"]["spearman"] < 0.9 * HIGHEST
    assert found["pretrained"]["spearman"] > 0.97 * HIGHEST
    assert (korbert.load(folder, "cpu").similarity(TEXTS, changed).argmax(axis=1) == np.arange(10)).sum() >= 9
    config = read_config(folder)
    assert config["encoder"]["hidden_dropout_prob"] == 0.1
    assert config["task"]["learns"] == "texts"


ALONE = (["text"], [["가"], ["나"]])
PAIRS = (SCORED, [["가", "나", "1"], ["다", "라", "2"]])


@pytest.mark.parametrize(("train", "scored", "more", "error", "said"), [
    (ALONE, None, {}, SettingsError, "valid: the training rows are texts alone, each under two"),
    ((SCORED, [["가", "나", "1"]] * 3), None, {}, CorpusError, "all rows have the score 1: give rows with others"),
    (PAIRS, None, {"batch_size": 1}, SettingsError, "batch_size 1: rows are"),
    ((["text", "pair", "label"], PAIRS[1]), (SCORED, ALL_PAIRS), {}, CorpusError,
     r"no pair has a label of near \(entailment\); there are 1, 2: name those of pairs that are near"),
    (ALONE, (SCORED, ALL_PAIRS), {"dropout": 0.0}, SettingsError, "dropout 0: two vectors of a text do not differ"),
    (PAIRS, None, {"frozen_layers": -1}, SettingsError, "frozen_layers -1: nothing would learn"),
    (PAIRS, (["text", "pair"], [["가", "나"]]), {}, CorpusError,
     r"no row can be used: .*has no score, which this task needs"),
])  # fmt: skip
def test_rows_that_cannot_be_learned_are_refused(learn, train, scored, more, error, said):
    with pytest.raises(error, match=said):
        learn(train, scored, **more)


def test_which_rows_can_be_learned(tmp_path):
    """Columns that the user names are looked for where the part needs them."""
    path = tmp_path / "mine.csv"
    columns = {"pair": "상대", "label": "관계"}
    path.write_text("문장,상대,관계\n가,나,같다\n다,라,다르다\n마,바,모른다\n", encoding="utf-8")
    rows = read_rows(path, Embedding.roles, columns=columns)
    section = KINDS["embedding"].section_class(train="t", valid="v", near="같다", far="다르다", columns=columns)
    task = Embedding.from_training_rows(rows, section)
    assert (task.learns, task.near, task.far) == ("labels", ("같다",), ("다르다",))
    for row in rows.rows[:2]:
        task.check_training_row(row)
    with pytest.raises(ValueError, match="label '모른다' is neither near nor far"):
        task.check_training_row(rows.rows[2])
