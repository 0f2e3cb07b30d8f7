"""corpus/sample/ is as its README describes it."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any

import kiwipiepy
import pytest

MADE = ("wiki.jsonl", "ATTRIBUTION.tsv", "reviews.jsonl", "nsmc/ratings_train.txt", "nsmc/ratings_test.txt")
NEWLINE = b"\n"
PARTICLES = {*"은는이가을를의에로와과도만", "에서", "으로", "부터", "까지", "이나"}
KINDS = {"person", "place", "date", "number", "organisation", "work", "term", "reason", "phrase"}


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def read_table(path: Path) -> list[list[str]]:
    assert path.read_bytes().endswith(b"\n")
    return [line.split("\t") for line in path.read_text("utf-8").removesuffix("\n").split("\n")]


def folded(text: str) -> str:
    """The text with white space folded and double quotes removed, as the makers of NSMC did."""
    return " ".join(text.replace('"', "").split())


@pytest.fixture(scope="module")
def articles(sample: Path) -> list[dict[str, Any]]:
    return read_jsonl(sample / "wiki.jsonl")


@pytest.fixture(scope="module")
def reviews(sample: Path) -> list[dict[str, Any]]:
    return read_jsonl(sample / "reviews.jsonl")


@pytest.fixture(scope="module")
def nsmc(sample: Path) -> dict[str, list[list[str]]]:
    return {part: read_table(sample / "nsmc" / f"ratings_{part}.txt") for part in ("train", "test")}


@pytest.fixture(scope="module")
def korquad(sample: Path) -> dict[str, dict[str, Any]]:
    return {part: json.loads((sample / "korquad" / f"{part}.json").read_text("utf-8")) for part in ("train", "valid")}


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = spec_from_file_location("make_sample", Path(__file__).with_name("make_sample.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def questions(dataset: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Title, context and question, in order."""
    for article in dataset["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                yield article["title"], paragraph["context"], question


def all_questions(korquad: dict[str, dict[str, Any]]) -> list[tuple[str, str, dict[str, Any]]]:
    return [row for dataset in korquad.values() for row in questions(dataset)]


def test_sizes(sample: Path) -> None:
    assert sum(path.stat().st_size for path in sample.rglob("*") if path.is_file()) < 6_000_000
    assert 2_900_000 < (sample / "wiki.jsonl").stat().st_size <= 3_000_000
    assert 950_000 < (sample / "reviews.jsonl").stat().st_size <= 1_000_000


def test_readme_names_every_file_count_and_licence(sample: Path) -> None:
    readme = (sample / "README.md").read_text("utf-8")
    files = {path.relative_to(sample).as_posix() for path in sample.rglob("*") if path.is_file()} - {"README.md"}
    rows = dict(re.findall(r"^\| `(\S+)` (\|.*\|)$", readme, re.M))
    assert set(rows) == files
    for name, row in rows.items():
        licence = "CC0 1.0" if name.startswith(("nsmc", "reviews")) else "CC BY-SA 3.0"
        assert row.endswith(f"| {licence} |")
        if not name.endswith(".json"):
            header = 0 if name.endswith(".jsonl") else 1
            assert f"| {(sample / name).read_bytes().count(NEWLINE) - header:,} " in row
    for text in ("creativecommons.org/licenses/by-sa/3.0", "creativecommons.org/publicdomain/zero/1.0", "e9t/nsmc"):
        assert text in readme


def test_articles_are_prose_of_reasonable_length(articles: list[dict[str, Any]], maker: ModuleType) -> None:
    assert all(row.keys() == {"id", "title", "text"} for row in articles)
    assert len({row["id"] for row in articles}) == len({row["title"] for row in articles}) == len(articles)
    assert not [row["title"] for row in articles if not maker.is_prose(row["title"], row["text"])]
    assert not maker.UNFIT & {row["id"] for row in articles}


def test_every_article_is_attributed(sample: Path, articles: list[dict[str, Any]]) -> None:
    header, *rows = read_table(sample / "ATTRIBUTION.tsv")
    assert header == ["id", "title", "url"]
    assert [row[:2] for row in rows] == [[article["id"], article["title"]] for article in articles]
    for page, _, url in rows:
        assert url == f"https://ko.wikipedia.org/?curid={int(page.removeprefix('kowiki-'))}"


def test_reviews_have_ids_and_text(reviews: list[dict[str, Any]]) -> None:
    assert all(row.keys() == {"id", "movie", "date", "text"} for row in reviews)
    assert len({row["id"] for row in reviews}) == len(reviews)


@pytest.mark.parametrize(("part", "count", "positive"), [("train", 10_000, 4_988), ("test", 2_000, 1_007)])
def test_nsmc_rows_are_in_the_official_format(
    nsmc: dict[str, list[list[str]]], part: str, count: int, positive: int
) -> None:
    header, *rows = nsmc[part]
    assert header == ["id", "document", "label"]
    assert {len(row) for row in rows} == {3}
    assert Counter(row[2] for row in rows) == {"1": positive, "0": count - positive}
    assert len({row[0] for row in rows}) == count


def test_no_text_is_in_two_places(nsmc: dict[str, list[list[str]]], reviews: list[dict[str, Any]]) -> None:
    train, test = ({folded(row[1]) for row in nsmc[part][1:]} for part in ("train", "test"))
    spread = {folded(row["text"]) for row in reviews}
    assert not train & test
    assert not (train | test) & spread
    train_ids, test_ids = ({row[0] for row in nsmc[part][1:]} for part in ("train", "test"))
    assert not train_ids & test_ids
    assert not (train_ids | test_ids) & {row["id"].removeprefix("review-") for row in reviews}


def test_questions_have_the_format_of_korquad(korquad: dict[str, dict[str, Any]]) -> None:
    for part, dataset in korquad.items():
        assert dataset.keys() == {"version", "data"}
        assert dataset["version"] == f"KorQuAD_v1.0_sample_{part}"
        for article in dataset["data"]:
            assert article.keys() == {"title", "paragraphs"}
            assert all(paragraph.keys() == {"context", "qas"} for paragraph in article["paragraphs"])
    rows = all_questions(korquad)
    assert all(question.keys() == {"id", "question", "answers"} for _, _, question in rows)
    assert all(answer.keys() == {"text", "answer_start"} for _, _, row in rows for answer in row["answers"])
    assert len({question["id"] for _, _, question in rows}) == len({row["question"] for _, _, row in rows}) == 120


def test_questions_are_split_by_article(korquad: dict[str, dict[str, Any]], articles: list[dict[str, Any]]) -> None:
    titles = {part: [article["title"] for article in dataset["data"]] for part, dataset in korquad.items()}
    assert {part: len(list(questions(dataset))) for part, dataset in korquad.items()} == {"train": 90, "valid": 30}
    assert {part: len(set(names)) for part, names in titles.items()} == {"train": 30, "valid": 10}
    assert not set(titles["train"]) & set(titles["valid"])
    assert set(titles["train"] + titles["valid"]) <= {article["title"] for article in articles}


def test_contexts_are_paragraphs_of_their_article(
    korquad: dict[str, dict[str, Any]], articles: list[dict[str, Any]]
) -> None:
    texts = {article["title"]: (article["id"], article["text"]) for article in articles}
    for title, context, question in all_questions(korquad):
        page, text = texts[title]
        assert f"\n{context}\n" in f"\n{text}\n", title
        assert 300 <= len(context) <= 1_200, title
        assert question["id"].split("-")[0] == page.removeprefix("kowiki-")


def test_answers_stand_where_they_are_said_to(korquad: dict[str, dict[str, Any]]) -> None:
    for _, context, question in all_questions(korquad):
        (answer,) = question["answers"]
        start = answer["answer_start"]
        assert context[start : start + len(answer["text"])] == answer["text"].strip() != ""
        assert answer["text"] not in question["question"], question["id"]
        assert question["question"].endswith("?")


def test_kinds_and_particles_of_the_answers(sample: Path, korquad: dict[str, dict[str, Any]]) -> None:
    header, *rows = read_table(sample / "korquad" / "kinds.tsv")
    assert header == ["id", "kind", "particle"]
    asked = all_questions(korquad)
    assert [row[0] for row in rows] == [question["id"] for _, _, question in asked]
    kinds = Counter(row[1] for row in rows)
    assert set(kinds) == KINDS
    assert sum(count >= 5 for count in kinds.values()) >= 5
    for (_, context, question), (_, _, particle) in zip(asked, rows, strict=True):
        (answer,) = question["answers"]
        end = answer["answer_start"] + len(answer["text"])
        assert not particle or (particle in PARTICLES and context.startswith(particle, end)), question["id"]
    assert sum(bool(row[2]) for row in rows) == 77  # as the README says; at least a third


@pytest.fixture(scope="module")
def kiwi() -> kiwipiepy.Kiwi:
    return kiwipiepy.Kiwi(num_workers=1, model_type="cong", load_multi_dict=False)


def test_no_question_pattern_comes_too_often(kiwi: kiwipiepy.Kiwi, korquad: dict[str, dict[str, Any]]) -> None:
    patterns = Counter(pattern(kiwi, question["question"]) for _, _, question in all_questions(korquad))
    assert patterns.most_common(1)[0][1] <= 3


def pattern(kiwi: kiwipiepy.Kiwi, question: str) -> tuple[str, ...]:
    """The pattern of a question: nouns, numbers, foreign words in a row are one N, particles their tag (은 is 는)."""
    forms = []
    for token in kiwi.tokenize(question):
        noun = token.tag[0] == "N" or token.tag in ("SL", "SN")
        forms.append("N" if noun else token.tag if token.tag[0] == "J" else token.form)
    return tuple(form for form, _ in groupby(forms))


def test_pattern_sees_through_nouns(kiwi: kiwipiepy.Kiwi) -> None:
    assert pattern(kiwi, "한국의 수도는 어디인가?") == pattern(kiwi, "신라 2대 임금의 고향 마을은 어디인가?")
    assert pattern(kiwi, "한국의 수도는 어디인가?") != pattern(kiwi, "한국의 수도를 어디로 옮겼는가?")


def test_no_text_of_the_official_test_set_is_elsewhere(
    korbert_data: Path, nsmc: dict[str, list[list[str]]], reviews: list[dict[str, Any]]
) -> None:
    official = read_table(korbert_data / "nsmc" / "ratings_test.txt")
    assert {tuple(row) for row in nsmc["test"]} <= {tuple(row) for row in official}
    elsewhere = [row[1] for row in nsmc["train"][1:]] + [row["text"] for row in reviews]
    assert not {folded(row[1]) for row in official} & {folded(text) for text in elsewhere}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("정말  좋다!!", "정말좋다", True),
        ("ㅋㅋ", "ㅋㅋㅋ", False),
        ("...", ". . .", True),
        ("...", "!!!", False),
        ("Good", "good.", True),
    ],
)
def test_folding_of_the_maker(maker: ModuleType, one: str, other: str, same: bool) -> None:
    assert (maker.folded(one) == maker.folded(other)) is same


def test_rows_are_taken_in_the_shares_of_their_source(maker: ModuleType) -> None:
    rows = [[str(number), f"글 {number % 90}", str(int(number % 3 == 0))] for number in range(99)]
    taken = maker.take_nsmc(rows, 30, {maker.folded("글 7")})
    assert Counter(row[2] for row in taken) == {"1": 10, "0": 20}
    assert len({row[1] for row in taken}) == 30
    assert "글 7" not in {row[1] for row in taken}
    assert taken == [row for row in rows if row in taken]


@pytest.mark.slow
def test_sample_is_made_again_byte_for_byte(
    sample: Path, korbert_data: Path, maker: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maker, "SAMPLE", tmp_path)
    maker.make_wiki(korbert_data)
    maker.make_reviews(korbert_data)
    assert {name: (tmp_path / name).read_bytes() == (sample / name).read_bytes() for name in MADE} == dict.fromkeys(
        MADE, True
    )
