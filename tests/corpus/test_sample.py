"""corpus/sample/ is as its README describes it."""

import json
import re

import pytest

from benchmarks import make_sample as maker
from tests.korbert.tiny import json_lines as read_jsonl

MADE = ("wiki.jsonl", "ATTRIBUTION.tsv", "reviews.jsonl", "nsmc/ratings_train.txt", "nsmc/ratings_test.txt",
        "law/train.jsonl", "law/dev.jsonl", "talk.jsonl")  # fmt: skip
PARTICLES = {*"은는이가을를의에로와과도만", "에서", "으로", "부터", "까지", "이나"}
KINDS = {"person", "place", "date", "number", "organisation", "work", "term", "reason", "phrase"}


def read_table(path, *columns):
    header, *rows = [line.split("\t") for line in path.read_text("utf-8").removesuffix("\n").split("\n")]
    assert header == [*columns]
    return rows


def test_readme_names_every_file_count_and_licence(sample):
    readme = (sample / "README.md").read_text("utf-8")
    files = {path.relative_to(sample).as_posix() for path in sample.rglob("*") if path.is_file()} - {"README.md"}
    rows = dict(re.findall(r"^\| `(\S+)` (\|.*\|)$", readme, re.M))
    assert set(rows) == files
    for name, row in rows.items():
        of_folder = {
            "nsmc": "CC0 1.0",
            "slots": "CC0 1.0",
            "reviews.jsonl": "CC0 1.0",
            "law": "none needed",
            "talk.jsonl": "MIT",
        }
        assert row.endswith(f"| {of_folder.get(name.split('/')[0], 'CC BY-SA 3.0')} |")
        if not name.endswith(".json"):
            lines = (sample / name).read_bytes().count(b"\n") - (not name.endswith(".jsonl"))  # one is the header
            assert f"| {lines:,} " in row
    for text in ("creativecommons.org/licenses/by-sa/3.0", "creativecommons.org/publicdomain/zero/1.0", "e9t/nsmc"):
        assert text in readme


def test_articles_are_prose_and_attributed(sample):
    articles = read_jsonl(sample / "wiki.jsonl")
    assert all(row.keys() == {"id", "title", "text"} for row in articles)
    assert not [row["title"] for row in articles if not maker.is_prose(row["title"], row["text"])]
    address = "https://ko.wikipedia.org/?curid="
    attributed = [[row["id"], row["title"], address + row["id"].removeprefix("kowiki-")] for row in articles]
    assert read_table(sample / "ATTRIBUTION.tsv", "id", "title", "url") == attributed
    fit = {row["id"] for row in articles} - maker.UNFIT
    assert len(fit) == len({row["title"] for row in articles}) == len(articles)


def test_no_question_is_in_two_texts(sample):
    """So that a held-out text has none that the others have."""
    texts = [row["text"].split("\n") for row in read_jsonl(sample / "talk.jsonl")]
    questions = [maker.folded(question) for text in texts for question in text]
    assert len(set(questions)) == len(questions)
    assert min(map(len, texts)) == 2


def test_questions_are_in_the_format_of_korquad_and_answered_in_their_article(sample):
    texts = {row["title"]: (row["id"], row["text"]) for row in read_jsonl(sample / "wiki.jsonl")}
    kinds = read_table(sample / "korquad" / "kinds.tsv", "id", "kind", "particle")
    titles = {}
    asked = []  # id, question, context from behind the answer
    for part in ("train", "valid"):
        dataset = json.loads((sample / "korquad" / f"{part}.json").read_text("utf-8"))
        assert dataset == {"version": f"KorQuAD_v1.0_sample_{part}", "data": dataset["data"]}
        for article in dataset["data"]:
            titles.setdefault(part, []).append(article["title"])
            page, text = texts[article["title"]]
            for paragraph in article["paragraphs"]:
                context = paragraph["context"]
                assert article.keys() | paragraph.keys() == {"title", "paragraphs", "context", "qas"}
                assert f"\n{context}\n" in f"\n{text}\n"
                assert 300 <= len(context) <= 1_200
                for row in paragraph["qas"]:
                    (answer,) = row["answers"]
                    start = answer["answer_start"]
                    said = answer["text"]
                    assert row == {"id": row["id"], "question": row["question"], "answers": [answer]}
                    assert row["id"].split("-")[0] == page.removeprefix("kowiki-")
                    assert context[start : start + len(said)] == said.strip() != ""
                    assert said not in row["question"]
                    assert row["question"].endswith("?")
                    asked.append((row["id"], row["question"], context[start + len(said) :]))
    assert (len(titles["train"]), len(titles["valid"]), len({*titles["train"], *titles["valid"]})) == (30, 10, 40)
    assert len({id for id, *_ in asked}) == len({question for _, question, _ in asked}) == len(asked) == 120
    assert [row[0] for row in kinds] == [id for id, *_ in asked]
    assert {row[1] for row in kinds} == KINDS
    assert sum(bool(row[2]) for row in kinds) == 77  # as the README says
    for (id, _, behind), (_, _, particle) in zip(asked, kinds, strict=True):
        assert not particle or (particle in PARTICLES and behind.startswith(particle)), id


@pytest.mark.slow
def test_sample_is_made_again_byte_for_byte(sample, korbert_data, tmp_path, monkeypatch):
    monkeypatch.setattr(maker, "SAMPLE", tmp_path)
    for make in (maker.make_talk, maker.make_wiki, maker.make_reviews, maker.make_law):
        make(korbert_data)
    assert not [name for name in MADE if (tmp_path / name).read_bytes() != (sample / name).read_bytes()]
