import unicodedata
from itertools import product

import pytest

from korbert.errors import CorpusError, ModelError
from korbert.tokenization import Analyzer, AnalyzerOptions, Tokenizer, VocabularySettings, learn
from korbert.tokenization.tokenizer_settings import UserWord, read_user_words

TEXT = "삐까뻔쩍체로 쓴 뽀글이는 맛있다"
WORDS = (UserWord(form="삐까뻔쩍체"), UserWord(form="뽀글이", tag="NNG", score=1.5))


@pytest.fixture(scope="module")
def with_words(tiny_tokenizer):
    """A tokenizer whose Kiwi knows WORDS and whose vocabulary keeps them whole."""
    options = AnalyzerOptions(user_words=WORDS)
    settings = VocabularySettings(size=420, words=tuple(word.form for word in WORDS))
    counts = [("".join(pair), 10) for pair in product("가나다라마바사아자차", repeat=2)]
    return Tokenizer(learn(counts, settings), settings, options, tiny_tokenizer.versions)


def test_a_file_of_words_is_read(tmp_path):
    path = tmp_path / "words.tsv"
    decomposed = unicodedata.normalize("NFD", "삐까뻔쩍체")
    path.write_bytes(f"\ufeff# our names\r\n\n{decomposed}\r\n뽀글이\tNNG\t1.5\n돌\tVV-I\n".encode())
    assert read_user_words(path) == (*WORDS, UserWord(form="돌", tag="VV-I"))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("가나\n나다 라마\n", "line 2: '나다 라마' cannot be a word: a word has at least one character and no space"),
        ("\tNNP\n", "line 1: '' cannot be a word"),
        ("가나\tNOUN\n", "line 1: 'NOUN' is not a part of speech of Kiwi"),
        ("가나\tNNP\t많이\n", "line 1: score: Input should be a valid number.*, not '많이'"),
        ("가나\tNNP\tnan\n", "line 1: score: "),
        ("가나\tNNP\t1\t2\n", "line 1: 4 fields between tabs in "),
        ("가나\n# 또\n가나\tNNP\t1\n", "line 3: 가나/NNP stands in line 1 already: take one"),
        ("가나\tNNP\t1\n오팔카드,NNP,3\n", "line 2: commas in '오팔카드,NNP,3', where tabs separate the fields"),
        ("# 없다\n", "words.tsv: has no words"),
        (b"\xb0\xa1\n", r"words\.tsv, line 1: byte 0x.. is not UTF-8"),
        (None, r"words\.tsv: cannot be read"),
    ],
)
def test_a_bad_line_or_file_is_named(tmp_path, lines, message):
    path = tmp_path / "words.tsv"
    if lines is not None:
        path.write_bytes(lines if isinstance(lines, bytes) else lines.encode())
    with pytest.raises(CorpusError, match=message):
        read_user_words(path)


def test_words_are_one_morpheme_and_one_piece(tiny_tokenizer, with_words):
    assert "삐까뻔쩍체" not in tiny_tokenizer.analyzer.analyze(TEXT).forms
    encoding = with_words.encode(TEXT)
    assert {("삐까뻔쩍체", "NNP", (0, 5)), ("뽀글이", "NNG", (9, 12))} <= set(
        zip(encoding.pieces, encoding.tags, encoding.spans, strict=True)
    )


def test_kiwi_accepts_the_tags_of_user_words():
    tags = ["NNG", "NNP", "NNB", "NR", "NP", "VV", "VV-I", "VA-R", "MAG", "JKS", "EP", "XR", "SSO", "USER4"]
    words = tuple(UserWord(form=f"꺆뺣{number}", tag=tag) for number, tag in enumerate(tags))
    assert Analyzer(AnalyzerOptions(user_words=words)).analyze("학교").forms == ["학교"]


def test_words_are_saved_and_belong_to_the_digest(with_words, tmp_path):
    with_words.save(tmp_path)
    loaded = Tokenizer.load(tmp_path)
    assert loaded.digest == with_words.digest
    assert loaded.analyzer_options.user_words == WORDS
    record = (tmp_path / "korbert_tokenizer.json").read_text(encoding="utf-8")
    (tmp_path / "korbert_tokenizer.json").write_text(record.replace("1.5", "2.5"), encoding="utf-8")
    with pytest.raises(ModelError, match="the digest is"):
        Tokenizer.load(tmp_path)
    assert "user_words" not in AnalyzerOptions().model_dump()  # so that most records say nothing of them
