"""Disturbed texts keep what they are about: letters in order, and the same text for the same seed."""

import random
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korbert.tasks.files import TaskRows
from korbert.tasks.kinds import KINDS
from korbert.tasks.noise import NOISE, SPACINGS, map_spans, noise_function, wrong_spaces

TEXT = "정말 재미있는 영화였다! 배우들의 연기가 좋았고, 2번 더 보고 싶다."
ANY = st.text("가각힣ab1 .\n😀", max_size=40)


def letters(text):
    return "".join(text.split())


@given(ANY, st.integers(0, 99))
@pytest.mark.parametrize("name", NOISE)
def test_any_text_is_disturbed_alike_for_the_same_seed(name, text, seed):
    first, again = (NOISE[name](text, random.Random(seed)) for _ in range(2))
    assert first == again
    kept, whole = letters(first), letters(text)
    assert kept == whole if name.endswith("spaces") else len(kept) >= len(whole)


def test_about_a_fifth_is_changed():
    text = TEXT * 50
    for name, least, most in (("typing errors", 0.1, 0.3), ("no final consonants", 0.02, 0.2)):
        changed = NOISE[name](text, random.Random(1))
        assert least < sum(one != two for one, two in zip(text, changed, strict=True)) / len(text) < most
    both = (text, NOISE["random spaces"](text, random.Random(1)))
    before, after = ({letters(one[:place]) for place, char in enumerate(one) if char == " "} for one in both)
    assert 0.1 < len(before ^ after) / len(letters(text)) < 0.3


@given(st.lists(ANY, min_size=1, max_size=2), st.floats(0, 1), st.integers(0, 9))
def test_wrong_spaces_change_spaces_alone_and_alike_for_the_same_seed_and_texts(texts, share, seed):
    change, again = (wrong_spaces(texts, share, seed) for _ in range(2))
    if change and again:
        found = [change(text) for text in texts]
        assert found == [again(text) for text in texts]
        assert [letters(text) for text in found] == [letters(text) for text in texts]
    else:
        assert (share < 1, change, again) == (True, None, None)


def test_half_of_the_texts_with_wrong_spaces_have_random_ones():
    texts = [f"{number} {TEXT}" for number in range(2_000)]
    changes = [wrong_spaces([text], 0.2, 0) for text in texts]
    changed = [change(text) for text, change in zip(texts, changes, strict=True) if change]
    assert 340 < len(changed) < 460
    assert 0.2 < sum(" " not in text for text in changed) / len(changed) < 0.3
    assert 0.2 < sum(text == " ".join(letters(text)) for text in changed) / len(changed) < 0.3
    assert not any(wrong_spaces([text], 0, 0) for text in texts)
    # Kinds that take noise learn with wrong spaces.
    with_setting = [name for name, entry in KINDS.items() if "spacing_noise" in entry.section_class.model_fields]
    assert with_setting == [name for name, entry in KINDS.items() if entry.kind_class.noise]


@pytest.mark.parametrize("row", [
    {"text": "김 연아는 서울 에 산다", "spans": [[0, 4, "PS"], [6, 8, "LC"]]},
    {"tokens": [*"김 연아는 서울 에 산다"], "tags": ["B-PS", *["I-PS"] * 3, "O", "O", "B-LC", "I-LC", *["O"] * 5]},
    {"tokens": ["김연아는", "서울에", "산다"], "tags": ["B-PS", "B-LC", "O"]},
    {"text": "김연아는  서울에 산다!", "tokens": ["김연아는", "서울에", "산다"], "tags": ["B-PS", "B-LC", "O"]},
])  # fmt: skip
@given(seed=st.integers(0, 99), name=st.sampled_from(SPACINGS))
def test_labels_stay_on_their_letters_under_other_spaces(row, seed, name):
    """Of spans, of tags of characters, and of words."""
    rows = TaskRows([{"text": None, "tokens": None, "tags": None, "spans": None, **row}])
    section = KINDS["token-classification"].section_class(train="a.jsonl")
    kind = KINDS["token-classification"].kind_class.from_training_rows(rows, section)
    (given_row,), changed = rows, kind.with_noise(rows.rows[0], noise_function(name, random.Random(seed)))

    def labelled(row):
        (text,), target = kind.texts(row), kind.target(row)
        if kind.units == "words":
            target = [(*span, label) for span, label in zip(kind._text_and_words(row)[1], target, strict=True)]
        spans = [(text[start:end], label) for start, end, label in target]
        return [(letters(span), kind.units == "words" or span.strip() == span, label) for span, label in spans]

    assert letters(*kind.texts(changed)) == letters(*kind.texts(given_row))
    assert labelled(changed) == labelled(given_row)


def test_one_key_or_one_final_consonant_differs_and_spans_keep_their_letters():
    for name, same in (("typing errors", 1), ("no final consonants", 2)):
        for one, two in zip(TEXT * 9, NOISE[name](TEXT * 9, random.Random(2)), strict=True):
            before, after = (unicodedata.normalize("NFD", char) for char in (one, two))
            if one != two:
                assert sum(a == b for a, b in zip(before[:2], after[:2], strict=True)) == same
                assert after[2:] == ("" if same == 2 else before[2:])
    assert map_spans([(0, 2), (2, 3), (3, 5), (5, 5)], "가나 다라", "가 나다 라") == [(0, 3), (3, 3), (3, 6), (6, 6)]
    assert map_spans([(0, 0), (0, 1)], " ", "") == [(0, 0), (0, 0)]
