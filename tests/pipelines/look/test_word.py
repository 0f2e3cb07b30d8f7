"""`korbert look --word`: the vectors of one word in many sentences, as a table and as a page."""

import re

import pytest

SENTENCES = [
    "나는 너를 사랑해",
    "나는 너를 사랑했다",
    "사랑 누가 말했나",
    "",
    "사랑을 사랑하는 사람",
    "짝사랑은 힘들다",
]
WORD = ("look", "korbert-mini", "--word", "사랑", "--sentences")


@pytest.fixture
def sentences(here):
    (here / "sentences.txt").write_text("\n".join(SENTENCES), encoding="utf-8")
    (here / "few.txt").write_text("\n".join(SENTENCES[2:4]), encoding="utf-8")
    (here / "many.txt").write_text("사랑 사랑\n" * 31, encoding="utf-8")
    return "sentences.txt"


@pytest.mark.parametrize("layer", ["4", "-1", "-4,-3,-2,-1"])
def test_a_word_is_closer_in_a_more_similar_sentence(command, sentences, layer):
    first = command(*WORD, sentences, "--layer", layer).out.partition("나는 너를 [사랑]해")[2].splitlines()[0]
    same, near, far, *_ = (float(number) for number in re.findall(r"\d\.\d+", first))
    assert same == 1 > near > far


def test_occurrences_are_counted_and_sentences_without_the_word_reported(command, sentences):
    said = command(*WORD, sentences)
    assert said.out.startswith("korbert-mini, 4 sentences, 5 places, layer 8 ")
    assert said.err == "korbert: sentences.txt: line 6: no morpheme of its first 512 pieces is '사랑'\n"


@pytest.mark.parametrize(("lang", "about"), [("en", "4 sentences, 5 places, layer 7"), ("ko", "문장 4개, 5곳, 7층")])
def test_the_page_has_the_table_in_colours(command, sentences, tmp_path, monkeypatch, lang, about):
    monkeypatch.setenv("KORBERT_LANG", "en")  # and back, which --lang would not do
    table = command(*WORD, sentences, "--layer", "7", "--html", "love.html", "--lang", lang).out
    page = (tmp_path / "love.html").read_text(encoding="utf-8")
    assert f'<p class="lede">korbert-mini, {about}</p>' in page
    assert re.findall(r">(\d\.\d{3})</td>", page) == re.findall(r"\d\.\d{3}", table)


@pytest.mark.parametrize(("file", "count"), [("few.txt", 1), ("many.txt", 62)])
def test_one_occurrence_or_too_many_are_refused(command, sentences, file, count):
    assert f"{file}: places of '사랑': {count}; 2 to 60 can be compared" in command(*WORD, file, code=2).err


@pytest.mark.parametrize("arguments", [
    ["--word", "사랑"], ["--sentences", "few.txt"], ["글"], ["글", "--html", "a.html", "--layer", "1"],
    ["글", "--word", "사랑", "--sentences", "few.txt"],
])  # fmt: skip
def test_conflicting_options_are_refused(command, sentences, arguments):
    assert "give TEXT and --html alone" in command("look", "korbert-mini", *arguments, code=2).err
