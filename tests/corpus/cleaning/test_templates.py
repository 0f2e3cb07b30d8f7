"""Forms that many documents fill in are found by the n-grams that they share; prose that quotes one stays."""

import random
from functools import partial

import planted
import pyarrow.parquet as pq
import pytest

from korbert.corpus.cleaning.deduplication import TEMPLATE_SCHEMA, TEMPLATES, ngram_table
from korbert.corpus.execution.database import connect, write_query

NOUNS = ["강", "산", "들", "바다", "하늘", "길", "집", "학교", "시장", "공원", "도서관", "기차역"]
FORM = (
    "{name} 역은 {place} 지역에 있는 철도역이다. 단선 승강장 {number}면 {number}선의 구조를 갖춘 지상역이다. "
    "역 앞에는 버스 정류장과 택시 승강장이 있으며 하루에 {number}번 열차가 서고 {number}명이 타고 내린다. "
    "역무원은 아침부터 저녁까지 일하며 표는 기계에서 살 수 있다."
)


def filled(generator):
    words = ["".join(generator.choices("가나다라마바사아자차카타파하", k=3)) for _ in range(2)]
    return FORM.format(name=words[0], place=words[1], number=generator.randint(1, 999))


def prose(generator):
    return " ".join(generator.choice(NOUNS) + generator.choice("은이을에도와로만의") for _ in range(60)) + "."


def find_templates(folder, texts, *, max_documents=20, share=0.5, min_terms=30, dropped=(), per_part=40, threads=1):
    """Number of a text -> the share of it that is a template. dropped: numbers of texts that cleaning had dropped."""
    ngrams = planted.parts(folder / "ngrams", {"text": texts}, per_part, partial(ngram_table, min_terms=min_terms))
    without = planted.gone(folder, (divmod(number, per_part) for number in dropped))
    with connect(folder, threads, without=without, ngrams=ngrams) as database:
        limits = {"max_documents": max_documents, "share": share}
        number = write_query(database, TEMPLATES, TEMPLATE_SCHEMA, folder / "found.parquet", folder, **limits)
    rows = pq.read_table(folder / "found.parquet").to_pylist()
    assert len(rows) == number
    return {row["part"] * per_part + row["position"]: row["detail"] for row in rows}


def test_filled_in_templates_are_found_and_prose_is_not(tmp_path):
    generator = random.Random(0)
    texts = [filled(generator) for _ in range(60)] + [prose(generator) for _ in range(200)]
    templates = find_templates(tmp_path, texts)
    assert set(templates) == set(range(60))
    assert all(0.5 < float(detail) <= 1 for detail in templates.values())


@pytest.mark.parametrize(
    ("count", "options", "expected"),
    [
        (20, {}, ()),  # of too few documents
        (20, {"max_documents": 19}, range(20)),
        (30, {"min_terms": 60}, ()),  # too short
        (30, {"dropped": range(10)}, ()),  # dropped documents do not count
        (30, {"dropped": range(5)}, range(5, 30)),
    ],
)
def test_templates_of_enough_documents_that_are_long_and_kept(tmp_path, count, options, expected):
    generator = random.Random(1)
    texts = [filled(generator) for _ in range(count)] + [prose(generator) for _ in range(20)] + ["짧은 글", ""]
    assert set(find_templates(tmp_path, texts, **options)) == {*expected}


def test_a_quoted_template_in_prose_stays(tmp_path):
    generator = random.Random(2)
    texts = [filled(generator) for _ in range(40)]
    texts.append(" ".join(prose(generator) for _ in range(3)) + " " + texts[0])
    assert 40 not in find_templates(tmp_path, texts)


def test_templates_are_the_same_for_any_parts_and_threads(tmp_path):
    generator = random.Random(4)
    texts = [filled(generator) if number % 3 else prose(generator) for number in range(150)]
    expected = find_templates(tmp_path / "first", texts)
    assert len(expected) == 100
    assert find_templates(tmp_path / "second", texts, per_part=11, threads=2) == expected
