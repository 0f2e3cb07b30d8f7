"""Options by which Kiwi sees through mistakes: what it says itself, with spans that are still those of the text."""

import json

import pytest
from kiwipiepy import Kiwi

from korbert.tokenization import Analyzer, AnalyzerOptions, Tokenizer, VocabularySettings, learn

TEXTS = ["나는 밥을 먹엇다", "이렇게 됬다고 외않됀대?", "스파게티 가 맛 있다", "그렇게 하면 않 돼요.\n정말 좋앗어요!"]
TOLERANT = AnalyzerOptions(typos="basic_with_continual", space_tolerance=1)


@pytest.fixture(scope="module")
def tolerant():
    return Analyzer(TOLERANT)


def test_tolerant_options_give_the_tokens_of_kiwi(tolerant):
    kiwi = Kiwi(num_workers=1, model_type="cong", load_multi_dict=False)
    kiwi.global_config.space_tolerance = 1
    for text in TEXTS:
        tokens = [token for line in text.split("\n") for token in kiwi.tokenize(line, typos="basic_with_continual")]
        found = tolerant.analyze(text)
        assert found.forms == [token.form for token in tokens]
        assert found.tags == [token.tag for token in tokens]


def test_mistakes_are_seen_through_and_spans_are_of_the_text(tolerant):
    text = "이렇게 외않됀대?"
    found = tolerant.analyze(text)
    assert found.forms == ["이렇", "게", "왜", "안", "되", "ᆫ대", "?"]
    surfaces = [text[start:end] for start, end in zip(found.starts, found.ends, strict=True)]
    assert surfaces == ["이렇", "게", "외", "않", "됀", "됀대", "?"]
    found = tolerant.analyze("스파게티 가 맛 있다")
    assert found.forms == ["스파게티", "가", "맛있", "다"]
    assert (found.starts[2], found.ends[2]) == (7, 10)
    for text in TEXTS:
        found = tolerant.analyze(text)
        covered = {place for start, end in zip(found.starts, found.ends, strict=True) for place in range(start, end)}
        assert covered >= {place for place, char in enumerate(text) if not char.isspace()}


@pytest.mark.slow  # a dialect's words take a gigabyte more
def test_a_dialect_is_analysed():
    text = "무사 경 햄수과"
    assert "수과" in Analyzer(AnalyzerOptions(dialects=("jeju",))).analyze(text).forms
    assert "수과" not in Analyzer().analyze(text).forms


def test_rare_options_are_left_out_of_the_record(tmp_path, tiny_tokenizer):
    usual = AnalyzerOptions().model_dump(mode="json")
    assert {"typos", "space_tolerance", "dialects"}.isdisjoint(usual)
    record = TOLERANT.model_dump(mode="json")
    assert record == usual | {"typos": "basic_with_continual", "space_tolerance": 1}
    assert AnalyzerOptions.model_validate(json.loads(json.dumps(record))) == TOLERANT
    settings = VocabularySettings(size=500)
    counts = [(f"가나{number:03}", 10) for number in range(300)]
    Tokenizer(learn(counts, settings), settings, TOLERANT, tiny_tokenizer.versions).save(tmp_path)
    assert Tokenizer.load(tmp_path).analyzer_options == TOLERANT
