import json
import shutil
from collections import Counter

import pytest

from korbert.corpus.corpus_settings import SourceSettings
from korbert.corpus.execution.workers import Lost, Outcome
from korbert.corpus.questions import generate as module
from korbert.corpus.questions.generate import QuestionSettings, generate

SOURCE = SourceSettings(name="corpus", path="x", id="")
PEOPLE = ("윤동주", "서정주", "박경리", "최인호", "나태주", "김남주")


def _document(number):
    name = PEOPLE[number % len(PEOPLE)]
    year = 1900 + number
    return (
        f"{name}는 대한민국의 시인이다. {year}년에 평양에서 태어났다. 많은 사람이 그 시를 읽었다고 한다. "
        f"{name}는 {year + 30}년 5월 {number % 28 + 1}일 서울 시인협회에 가입하였다. 사람들은 오래 이야기했다. "
        "그 뒤로도 오랫동안 쉬지 않고 썼다. 그 밖에도 여러 일이 있었으나 자세한 것은 아무도 모른다. 아무도 없다."
    )


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch):
    monkeypatch.setattr(module, "_PART_BYTES", 4_000)


def _written(folder, *texts):
    path = folder / "corpus.jsonl"
    path.write_text("".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts), "utf-8")
    return path


@pytest.fixture
def corpus(tmp_path):
    """Thirty documents in some parts."""
    return _written(tmp_path, *map(_document, range(30)))


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """What one worker makes of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_PART_BYTES", 4_000)
        return _made(_written(tmp_path_factory.mktemp("corpus"), *map(_document, range(30))), 1)


def _made(path, workers, **settings):
    counts = Counter()
    partial = path.with_name("partial")
    asked = generate(QuestionSettings(**settings), SOURCE, [path], workers=workers, counts=counts, partial=partial)
    result = list(asked)
    shutil.rmtree(partial, ignore_errors=True)
    return result, counts


@pytest.mark.slow
def test_any_number_of_workers_gives_the_same_questions(corpus, expected):
    made, counts = expected
    assert _made(corpus, 2) == expected
    assert counts["parts"] > 2
    assert counts["documents"] == 30
    assert counts["questions"] == sum(len(asked.questions) for asked in made) > 20
    places = [int(asked.place.split()[-1]) for asked in made]
    assert places == sorted(places)
    assert _made(corpus, 1, seed=1)[0] != made


def test_a_repeated_paragraph_is_used_once(tmp_path):
    paragraph = _document(3) + " 그의 시는 지금도 널리 읽힌다고 한다." * 8
    asked, _ = _made(_written(tmp_path, f"{paragraph}\n{paragraph}"), 1)
    assert len(asked) == 1


def test_parts_are_yielded_in_order_whichever_is_finished_first(corpus, expected, monkeypatch):
    def last_first(function, units, *, initializer, **_):
        initializer()
        yield from [Outcome(unit, [function(unit)]) for unit in units][::-1]

    monkeypatch.setattr(module, "run_units", last_first)
    assert _made(corpus, 1) == expected


@pytest.mark.slow
def test_finished_parts_are_not_made_again(corpus, expected, monkeypatch):
    questions, counts = expected
    made = []

    def run_units(function, units, *, initializer, **_):
        initializer()
        for unit in units:
            made.append(unit.chunk.segments[0].first)
            yield Outcome(unit, [function(unit)])

    monkeypatch.setattr(module, "run_units", run_units)
    partial = corpus.with_name("partial")

    def run(text):
        corpus.write_text(text, encoding="utf-8")
        result = Counter()
        return list(generate(QuestionSettings(), SOURCE, [corpus], workers=1, counts=result, partial=partial)), result

    text = corpus.read_text("utf-8")
    begun = generate(QuestionSettings(), SOURCE, [corpus], workers=1, counts=Counter(), partial=partial)
    next(begun)
    begun.close()
    first = made[:]
    assert 0 < len(first) < counts["parts"]
    assert run(text) == (questions, counts + Counter(resumed=len(first)))
    assert len(made) == counts["parts"]
    assert run(text) == (questions, counts + Counter(resumed=len(made)))  # all parts are finished
    assert len(made) == counts["parts"]
    run(text.replace("윤동주", "윤동규", 1))  # one part has another text
    assert len(made) == counts["parts"] + 1


def test_faulty_records_are_counted(tmp_path):
    path = tmp_path / "corpus.jsonl"
    good = json.dumps({"text": _document(3)}, ensure_ascii=False)
    path.write_text(f'{good}\n{{"text": 5}}\nnot json\n{good}\n', encoding="utf-8")
    asked, counts = _made(path, 1)
    assert counts["documents"] == 4
    assert counts["document_bad_text"] == counts["document_bad_json"] == 1
    assert {each.place for each in asked} == {"corpus.jsonl line 1", "corpus.jsonl line 4"}


def test_a_part_that_was_halved_is_without_the_lost_document(corpus, monkeypatch):
    """What run_units does with a worker that dies is tested with it; this is what the part makes of it."""

    def run_units(function, units, *, split, initializer, **_):
        initializer()
        for unit in units:
            first, second = split(unit)
            assert (first.first, first.stop) == (0, second.first)
            while (halves := split(second)) is not None:
                second = halves[1]
            assert second.stop - second.first == 1
            yield Outcome(unit, [function(first), Lost(second, "crashed", "its worker process ended")])

    monkeypatch.setattr(module, "run_units", run_units)
    asked, counts = _made(corpus, 1)
    assert asked
    assert counts["document_kiwi_crashed"] == counts["parts"]
    assert counts["documents"] > counts["parts"]
