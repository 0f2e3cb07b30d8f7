"""One text (`encode`), many (`encode_batch`) and the exported file: three ways from text to ids, one result."""

import re
from bisect import bisect_right

import pytest
from exported import exported, small, tokenizer_of
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from korbert.modeling.models import QuestionAnsweringModel
from korbert.tokenization import Analyzer, AnalyzerOptions
from korbert.tokenization.extending import extend_tokenizer
from korbert.tokenization.pieces import CONTINUATION
from tests.korbert.learned import FRAGMENTS, MARKS, learned

KINDS = (*MARKS, "extended")  # the last one is that of "eojeol" with more words
WORDS = ("대한민국", "쀍쀍")  # whole words; the first is a learned piece, too
ADDED = ("GPT", "😀", "재밌", "뷁")
USER_WORDS = ({"form": "코르버트"}, {"form": "갓생", "tag": "NNG", "score": 3.0})
OPTIONS = AnalyzerOptions(  # without allomorphs, so that no other test has this Kiwi
    integrate_allomorph=False, space_tolerance=1, typos="basic", user_words=USER_WORDS
)

RUNS = [char * 510 for char in "aㅋ.1😀가"]  # longer than Kiwi gets whole
TEXT = st.lists(st.sampled_from(FRAGMENTS) | st.characters(), max_size=12).map("".join)
LONG_TEXT = st.builds("{0}{1}{2}".format, TEXT, st.sampled_from(RUNS), TEXT) | st.builds("{0}\n{0}\n{0}".format, TEXT)
PARTS = ["[MASK]", "[SEP]", "[CLS]", "a.com/", "나는 ", " ", "\n", "#", "은", "[", "했다", "\u200b", "😀"]
SPECIAL_TEXT = st.lists(st.sampled_from(PARTS), max_size=8).map("".join)

laws = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
ASKED = {"return_offsets_mapping": True, "return_special_tokens_mask": True}


@pytest.fixture(scope="module")
def ours(sample):
    """A tokenizer for each mark, with whole words and user words; and one with words that were added later."""
    analyzer = Analyzer(OPTIONS)
    tokenizers = learned(analyzer, sample, WORDS, ("대한민국인", "대한민국군", "코르버트", "<이메일>"))
    tokenizers["extended"] = extend_tokenizer(tokenizers["eojeol"], ADDED, OPTIONS)
    tokenizers["extended"].analyzer = analyzer
    return tokenizers


@pytest.fixture(scope="module")
def theirs(ours, tmp_path_factory):
    """The same as `transformers` loads them from exported folders."""
    tokenizers = {}
    for mark, tokenizer in ours.items():
        model = QuestionAnsweringModel(small(tokenizer, hidden_size=8, num_hidden_layers=1))
        tokenizers[mark] = tokenizer_of(exported(tmp_path_factory.mktemp(mark), model, tokenizer))
        assert len(tokenizers[mark].get_vocab()) == tokenizer.vocab_size
    return tokenizers


def check_row(expected, rows, row):
    """A row of what the exported tokenizer gives, with no padding, is our encoding."""
    for name in ("input_ids", "token_type_ids", "attention_mask", "special_tokens_mask"):
        assert rows[name][row] == getattr(expected, name), name
    assert rows["offset_mapping"][row] == expected.spans


def check_words(tokenizer, expected, rows, row, texts):
    """word_ids are the eojeols of the morphemes."""
    eojeols = [tokenizer.analyzer.analyze(text).eojeols for text in texts]
    columns = zip(expected.morphemes, expected.token_type_ids, strict=True)
    assert rows.word_ids(row) == [None if place < 0 else eojeols[segment][place] for place, segment in columns]


@pytest.mark.slow
@laws
@given(st.lists(TEXT | LONG_TEXT, max_size=4), st.sampled_from(KINDS), st.none() | st.integers(2, 24))
def test_texts_have_the_same_ids_three_ways(ours, theirs, texts, mark, max_length):
    tokenizer, loaded = ours[mark], ours[mark].analyzer._loaded
    one = [tokenizer.encode(text, max_length=max_length) for text in texts]
    assert tokenizer.encode_batch(texts, max_length=max_length) == one
    assert tokenizer.encode_batch(texts, max_length=max_length, workers=0) == one
    assert list(tokenizer.pieces_of_many(texts)) == [tokenizer.encode_pieces(text) for text in texts]
    assert tokenizer.analyzer._loaded is loaded  # no way loads Kiwi anew
    if texts:
        cut = {} if max_length is None else {"truncation": True, "max_length": max_length}
        rows = theirs[mark](texts, **cut, **ASKED)
        assert len(rows["input_ids"]) == len(one)
        for row, (text, expected) in enumerate(zip(texts, one, strict=True)):
            check_row(expected, rows, row)
            check_words(tokenizer, expected, rows, row, (text,))
            alone = theirs[mark](text, **cut, **ASKED)
            assert (alone["input_ids"], alone["offset_mapping"]) == (expected.input_ids, expected.spans)


@laws
@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=3), st.sampled_from(KINDS), st.none() | st.integers(3, 24))
@example([("", "가\xa0가"), ("", "나 나")], "none", None)  # spaces that tear words apart
def test_pairs_have_the_same_ids_three_ways(ours, theirs, pairs, mark, max_length):
    tokenizer, (firsts, seconds) = ours[mark], map(list, zip(*pairs, strict=True))
    one = [tokenizer.encode(first, second, max_length=max_length) for first, second in pairs]
    assert tokenizer.encode_batch(firsts, seconds, max_length=max_length) == one
    cut = {} if max_length is None else {"truncation": True, "max_length": max_length}
    rows = theirs[mark](firsts, seconds, **cut, **ASKED)
    for row, (pair, expected) in enumerate(zip(pairs, one, strict=True)):
        check_row(expected, rows, row)
        check_words(tokenizer, expected, rows, row, pair)


@laws
@given(question=st.none() | TEXT, text=TEXT, room=st.integers(1, 12), stride=st.integers(0, 11))
def test_windows_are_the_same_two_ways(ours, theirs, question, text, room, stride):
    tokenizer, stride = ours["none"], min(stride, room - 1)
    max_length, given, strategy = room + 2, (text,), "only_first"
    if question is not None:
        max_length += 1 + len(tokenizer.encode_pieces(question))
        given, strategy = (question, text), "only_second"
    expected = tokenizer.encode(*given, max_length=max_length, stride=stride)
    cut = {"truncation": strategy, "max_length": max_length, "stride": stride, "return_overflowing_tokens": True}
    rows = theirs["none"](*given, **cut, **ASKED)
    assert rows["overflow_to_sample_mapping"] == [0] * len(expected)
    for row, window in enumerate(expected):
        check_row(window, rows, row)


@laws
@given(text=SPECIAL_TEXT | TEXT, pair=st.none() | SPECIAL_TEXT, mark=st.sampled_from(KINDS))
def test_special_tokens_in_a_text_are_the_same_two_ways(ours, theirs, text, pair, mark):
    """Many texts at once have none, so two ways are compared."""
    texts = (text,) if pair is None else (text, pair)
    expected = ours[mark].encode(*texts, special_tokens=True)
    rows = theirs[mark]([text], None if pair is None else [pair], split_special_tokens=False, **ASKED)
    check_row(expected, rows, 0)
    later = [[word.start() for word in re.finditer(r"\S+", text)][1:] for text in texts]
    columns = zip(rows.word_ids(0), expected.boundaries, expected.spans, expected.token_type_ids, strict=True)
    for eojeol, level, (start, _), segment in columns:
        assert level == CONTINUATION or eojeol == bisect_right(later[segment], start)
    cut = theirs[mark](*texts, split_special_tokens=False, truncation=True, max_length=7)
    assert cut["input_ids"] == ours[mark].encode(*texts, special_tokens=True, max_length=7).input_ids


@laws
@given(text=TEXT, mark=st.sampled_from(KINDS))
def test_ids_are_decoded_alike(ours, theirs, text, mark):
    """To white space, which the exported one collapses."""
    ids = ours[mark].encode(text).input_ids
    (many,) = ours[mark].encode_batch([text])
    decoded = ours[mark].decode(ids)
    assert ours[mark].decode(many.input_ids) == decoded
    assert theirs[mark].decode(ids, skip_special_tokens=True) == " ".join(decoded.split())
    assert theirs[mark].convert_tokens_to_ids(theirs[mark].tokenize(text)) == ids[1:-1]
