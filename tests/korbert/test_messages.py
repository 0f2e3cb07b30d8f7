"""Messages: English words at hand, another language from template and values; particles by the last letter."""

import json
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korbert.messages import Message, argument, in_language, join_messages, language, translate
from korbert.messages.particles import with_particle

MISSING = Message("{path} is missing", path="a.parquet")
PARTS = Message("{work}: {done:,} of {total:,} parts done", work="analyze-1", done=3, total=1200)


def test_a_message_is_its_english_words():
    assert MISSING == "a.parquet is missing"
    assert PARTS == "analyze-1: 3 of 1,200 parts done"
    assert f"{PARTS}." == "analyze-1: 3 of 1,200 parts done."


def test_without_values_braces_are_text():
    assert Message('{"id": "answer"}') == '{"id": "answer"}'


def test_numbers_stand_where_the_language_wants_them():
    assert in_language(PARTS, "ko") == "analyze-1: 1,200개 중 3개 완료"
    assert in_language(PARTS, "en") == "analyze-1: 3 of 1,200 parts done"


def test_a_message_inside_another_is_translated():
    note = Message("note: {note}", note=MISSING)
    assert in_language(note, "ko") == "참고: a.parquet 없음"


def test_data_is_never_translated():
    assert in_language("yes", "ko") == "yes"
    assert in_language(Message("yes"), "ko") == "예"
    assert in_language(Message("note: {note}", note="yes"), "ko") == "참고: yes"


@pytest.mark.parametrize(("count", "english"), [(1, "1 row"), (0, "0 rows"), (1200, "1,200 rows")])
def test_the_plural_follows_the_count(count, english):
    assert Message("{count:,} row", "{count:,} rows", count=count) == english


def test_parts_are_joined_and_empty_ones_left_out():
    both = join_messages(["", MISSING, Message("yes")])
    assert both == "a.parquet is missing; yes"
    assert in_language(both, "ko") == "a.parquet 없음; 예"


def test_a_message_survives_another_process_and_json():
    note = Message("note: {note}", note=PARTS)
    assert in_language(pickle.loads(pickle.dumps(note)), "ko") == in_language(note, "ko")
    kept = json.loads(json.dumps(note.as_json()))
    assert in_language(Message.from_json(kept), "ko") == in_language(note, "ko")


@given(st.dictionaries(st.sampled_from("abc"), st.text() | st.integers() | st.floats(allow_nan=False), min_size=1))
def test_values_are_kept_as_they_are(values):
    template = " ".join(f"{{{name}}}" for name in values)
    message = Message(template, **values)
    assert Message.from_json(json.loads(json.dumps(message.as_json()))) == message


def test_all_messages_in_data_are_translated():
    data = {"missing": {"label": Message("yes")}, "texts": ["yes", Message("no")], "number": 3}
    assert translate(data, "ko") == {"missing": {"label": "예"}, "texts": ["yes", "아니요"], "number": 3}


@pytest.mark.parametrize(("option", "locale", "browser", "expected"), [
    ("", "ko_KR.UTF-8", None, "ko"), ("", "C.UTF-8", None, "en"), ("", "", None, "en"),
    ("en", "ko_KR.UTF-8", "ko", "en"), ("ko", "C", "en-US", "ko"),
    ("", "ko_KR.UTF-8", "en-US,en;q=0.9,ko;q=0.8", "en"), ("", "C", "ko-KR,ko;q=0.9", "ko"),
])  # fmt: skip
def test_the_option_comes_before_the_browser_and_the_locale(option, locale, browser, expected, monkeypatch):
    for name, value in (("KORBERT_LANG", option), ("LC_ALL", ""), ("LC_MESSAGES", ""), ("LANG", locale)):
        monkeypatch.setenv(name, value)
    assert language(browser) == expected


@pytest.mark.parametrize(("before", "after", "text"), [
    ("문서", "이(가) 없음", "문서가 없음"), ("파일", "이(가) 없음", "파일이 없음"),
    ("문서", "을(를)", "문서를"), ("문장", "은(는)", "문장은"), ("어휘", "과(와)", "어휘와"),
    ("서울", "(으)로", "서울로"), ("부산", "(으)로", "부산으로"), ("제주", "(으)로", "제주로"),
    ("3", "을(를)", "3을"), ("2", "을(를)", "2를"), ("1", "(으)로", "1로"), ("10", "(으)로", "10으로"),
    ("50 %", "을(를)", "50 %를"), ("model", "(으)로", "model로"), ("token", "(으)로", "token으로"),
    ("a.csv", "이(가)", "a.csv가"), ("NER", "(으)로", "NER로"), ("KLUE", "과(와)", "KLUE와"),
    ("'학교", "'은(는) ", "'학교'는 "), ("☆", "을(를)", "☆을(를)"), ("문서", " 이(가)", "문서 이(가)"),
])  # fmt: skip
def test_a_particle_follows_the_last_sound(before, after, text):
    assert with_particle(before, after) == text


def test_an_argument_is_an_option_at_the_command_line(monkeypatch):
    assert argument("row_workers") == "row_workers"
    assert argument("rebuild") == "rebuild=True"
    monkeypatch.setenv("KORBERT_NAMES", "options")
    assert argument("row_workers") == "--row-workers"


def test_texts_and_paths_inside_a_message_can_be_changed():
    note = Message("note: {note}", note=Message("{path} is missing", path=Path("/tmp/x/a.csv")))
    changed = note.map_texts(lambda text: text.replace("/tmp/x/", ""))
    assert changed == "note: a.csv is missing"
