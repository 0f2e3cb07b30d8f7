"""Hashed terms, against the n-grams of scikit-learn."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

from korbert.tasks import terms
from korbert.tasks.passages import Passage, encode_passages
from korbert.tasks.terms import HASH_BITS, terms_of

NGRAMS = CountVectorizer(analyzer="char", ngram_range=(1, 4)).build_analyzer()


def passage(text, ids=()):
    ids = np.array(ids, dtype=np.int32)
    return Passage(text, ids, np.zeros(len(ids), np.uint8), np.zeros((len(ids), 2), np.int32))


@given(st.text(st.sampled_from("가나다 \n\tABc👍"), max_size=30))
def test_characters_are_those_of_scikit_learn(text):
    values = terms._characters(text).tolist()
    counts = Counter(values)
    expected = Counter(NGRAMS("".join(text.split())))
    assert sorted(counts.values()) == sorted(expected.values())
    assert len(expected) == len(counts)


def test_pieces_count_alone_and_in_pairs():
    found = terms_of([[passage("", [7, 8, 7, 8])]])
    assert sorted(found.counts.tolist()) == [1, 2, 2, 2]  # 87; 7, 8, 78
    assert len(np.unique(found.ids)) == 4
    assert set(found.ids >> HASH_BITS) == {0}


def test_each_text_and_kind_has_its_group(tiny_tokenizer):
    row = encode_passages(tiny_tokenizer, ["영화가 좋다", "영화가 좋다"])
    found = terms_of([row])
    groups = found.ids >> HASH_BITS
    assert sorted(set(groups.tolist())) == [0, 1, 2, 3]
    of_group = [set((found.ids[groups == group] & ((1 << HASH_BITS) - 1)).tolist()) for group in range(4)]
    assert of_group[0] == of_group[2]
    assert of_group[1] == of_group[3]


def test_a_text_of_spaces_has_no_terms():
    found = terms_of([[passage(" \n")], [passage("가", [3])]])
    assert found.offsets.tolist() == [0, 0, 2]


@given(st.text(st.sampled_from("가나 \n\u00a0Bİ👍"), max_size=20), st.randoms())
def test_spaces_change_no_term(text, random):
    letters = "".join(text.split())
    spaced = "".join(character + random.choice(["", " "]) for character in letters)
    assert terms._characters(spaced).tolist() == terms._characters(letters).tolist()
    spans = terms.term_spans(passage(spaced))
    assert len(spans) == len(terms._characters(spaced))
    for (start, end), value in zip(spans.tolist(), terms._characters(spaced).tolist(), strict=True):
        assert value in terms._characters(spaced[start:end]).tolist()
