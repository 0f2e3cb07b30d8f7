"""Features of many texts at once, against plain loops over one."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from korbert.corpus.cleaning.features import DIGIT, HAN, HANGUL, JAMO, KANA, LATIN, OTHER, SPACE, SYMBOL, Features

TEXTS = st.lists(
    st.lists(st.sampled_from(["가", "나다", "a.", "12", "ㅋㅋ", "𠀀", " ", "\n", "-"]), max_size=40).map(" ".join),
    max_size=5,
)


def visible(text):
    return sum(map(len, text.split()))


def top_share(text, size):
    words = text.split()
    grams = Counter(tuple(words[i : i + size]) for i in range(len(words) - size + 1))
    most = max((count * sum(map(len, gram)) for gram, count in grams.items() if count > 1), default=0)
    return most / max(1, visible(text))


def repeated_share(text, size):
    words = text.split()
    seen = set()
    covered = set()
    for i in range(len(words) - size + 1):
        gram = tuple(words[i : i + size])
        if gram in seen:
            covered.update(range(i, i + size))
        seen.add(gram)
    return sum(len(words[i]) for i in covered) / max(1, visible(text))


def repeated_lines(text):
    lines = [line for line in text.split("\n") if line.strip()]
    repeated = [line for i, line in enumerate(lines) if line in lines[:i]]
    return len(repeated) / max(1, len(lines)), sum(map(visible, repeated)) / max(1, visible(text))


@settings(max_examples=200)
@given(TEXTS)
def test_features_equal_plain_loops(texts):
    features = Features(texts)
    assert features.visible.tolist() == list(map(visible, texts))
    lines = [[line for line in text.split("\n") if line.strip()] for text in texts]
    assert features.count(features.words).tolist() == [len(text.split()) for text in texts]
    assert features.count(features.lines).tolist() == list(map(len, lines))
    for size in (2, 3, 5, 10):
        np.testing.assert_allclose(features.top_ngram_share(size), [top_share(text, size) for text in texts])
        np.testing.assert_allclose(features.repeated_ngram_share(size), [repeated_share(text, size) for text in texts])
    shares = np.array([repeated_lines(text) for text in texts]).reshape(-1, 2)
    np.testing.assert_allclose(features.line_share(features.repeated_lines), shares[:, 0])
    np.testing.assert_allclose(features.line_char_share(features.repeated_lines), shares[:, 1])
    bullets = [sum(line.strip().startswith("-") for line in own) / max(1, len(own)) for own in lines]
    np.testing.assert_allclose(features.line_share(features.bullet_lines), bullets)
    closed = [sum(line.rstrip()[-1] in ".ㅋ" for line in own) / max(1, len(own)) for own in lines]
    np.testing.assert_allclose(features.line_share(features.closed_lines), closed)


@pytest.mark.parametrize(
    ("chars", "kind"),
    [("가힣", HANGUL), ("ㄱㅋㅏᄀ", JAMO), ("aZéＡ", LATIN), ("0９", DIGIT), ("漢𠀀", HAN), ("あア", KANA),
     ("жλ", OTHER), (".,~♡👍\u200d\uffff", SYMBOL), (" \t\u3000\xa0", SPACE)],
)  # fmt: skip
def test_kinds_of_characters(chars, kind):
    line_feed = kind == SPACE  # stands after each text
    assert Features(list(chars)).kind_counts[:, kind].tolist() == [1 + line_feed] * len(chars)


def test_features_of_no_texts_and_empty_texts():
    none = Features([])
    empty = Features(["", " \n "])
    assert len(none) == 0
    for some, expected in ((none, []), (empty, [0.0, 0.0])):
        shares = some.top_ngram_share(2), some.repeated_ngram_share(5), some.line_share(some.bullet_lines)
        assert [share.tolist() for share in shares] == [expected] * 3


def test_equal_words_alone_have_equal_hashes():
    words = [f"낱말{number}" for number in range(20_000)] + ["가" * length for length in range(1, 200)]
    hashes = Features([" ".join(words + words)]).word_hashes
    assert (hashes[: len(words)] == hashes[len(words) :]).all()
    assert len(np.unique(hashes)) == len(words)
