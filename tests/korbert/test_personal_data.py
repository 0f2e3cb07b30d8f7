"""Personal data: cases by hand, one per line, with spans as {kind|characters}. All numbers are made up."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korbert.corpus.cleaning.personal import mask
from korbert.corpus.corpus_settings import PersonalSettings
from korbert.personal_data import APART, MASKS, spans

CASES = (Path(__file__).parent / "personal_cases.txt").read_text(encoding="utf-8").splitlines()
MARKED = re.compile(r"\{(\w+)\|([^}]*)\}")


def marked(case):
    """The text of a case, and its spans, (start, end, kind)."""
    text = ""
    wanted = []
    done = 0
    for match in MARKED.finditer(case):
        text += case[done : match.start()]
        wanted.append((len(text), len(text) + len(match[2]), match[1]))
        text += match[2]
        done = match.end()
    return text + case[done:], wanted


def test_every_kind_of_personal_data_has_cases():
    assert len(CASES) >= 300
    assert {kind for case in CASES for *_, kind in marked(case)[1]} == set(MASKS)


@pytest.mark.parametrize("case", CASES)
def test_each_case_is_masked_as_marked(case):
    text, expected = marked(case)
    assert [(text[start:end], start, kind) for start, end, kind in spans(text)] == [
        (text[start:end], start, kind) for start, end, kind in expected
    ]


def test_masks_are_counted_and_can_be_switched_off():
    texts = ["문의 010-1234-5678, a@b.kr", "없음", "02-123-4567"]
    results, counts = mask(texts, PersonalSettings())
    assert results == ["문의 <전화번호>, <이메일>", "없음", "<전화번호>"]
    assert counts == {"phone": 2, "email": 1}
    results, counts = mask(texts, PersonalSettings(phone=False))
    assert results == ["문의 010-1234-5678, <이메일>", "없음", "02-123-4567"]
    assert counts == {"email": 1}


@given(st.lists(st.text(st.sampled_from("0123456789-. ()@계좌농협전화abc－（．）\u0966\uff10\n" + APART)), max_size=4))
def test_masking_changes_personal_data_alone(texts):
    results, counts = mask(texts, PersonalSettings())
    for text, masked in zip(texts, results, strict=True):
        cuts = [0, *(offset for start, end, _ in spans(text) for offset in (start, end)), len(text)]
        assert re.split("|".join(MASKS.values()), masked) == [
            text[a:b] for a, b in zip(cuts[::2], cuts[1::2], strict=True)
        ]
    assert counts.total() == sum(len(spans(text)) for text in texts)
