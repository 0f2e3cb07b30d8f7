import json
from collections import Counter

import pytest

from korbert.errors import SettingsError
from korbert.tokenization import Analyzer, AnalyzerOptions, Tokenizer, VocabularySettings, learn, marked
from korbert.tokenization.extending import extend_tokenizer, new_entries, other_options, why_not_extended
from korbert.tokenization.tokenizer_settings import UserWord

NEW = "삐까뻔쩍체"
TEXTS = ("학교에 간다", "정말 재미있는 영화였다.", "ㅋㅋㅋ 2020년作 👍", "")


def learned(mark, **options):
    """A tokenizer of a few forms; 갓 and 생 are pieces, 갓생 is none, 학교 is one."""
    forms = {"학교": 400, "갓": 40, "생": 40, "학생": 40, "영화": 40, "영화관": 40, "에": 40, "다": 40}
    counts = Counter({marked(form, initial, mark): n for form, n in forms.items() for initial in (True, False)})
    settings = VocabularySettings(size=398, mark=mark, words=("대한민국",))
    used = AnalyzerOptions.model_validate(options)
    return Tokenizer(learn(counts.items(), settings), settings, used, Analyzer().versions)


@pytest.fixture(scope="module")
def grown(tiny_tokenizer):
    """With a word that Kiwi is told of, too."""
    return extend_tokenizer(tiny_tokenizer, [NEW], AnalyzerOptions(user_words=(UserWord(form=NEW),)))


def test_a_new_word_is_the_last_entry_and_one_piece(tiny_tokenizer, grown):
    assert grown.vocab_size == tiny_tokenizer.vocab_size + 1 == grown.settings.size
    encoded = grown.encode_pieces(f"{NEW}로 썼다")
    assert (encoded.pieces[0], encoded.ids[0], encoded.spans[0]) == (NEW, tiny_tokenizer.vocab_size, (0, 5))
    before = tiny_tokenizer.encode_pieces(f"{NEW}로 썼다")
    assert before.ids[-3:] == encoded.ids[-3:]
    assert len(before) > len(encoded)


def test_texts_without_new_words_keep_their_ids(tiny_tokenizer, grown, sample):
    lines = (sample / "reviews.jsonl").read_text(encoding="utf-8").splitlines()[1500:1700]
    texts = [*TEXTS, *(json.loads(line)["text"] for line in lines)]
    assert not any(NEW in text for text in texts)
    before, after = (list(one.pieces_of_many(texts)) for one in (tiny_tokenizer, grown))
    assert [pieces.ids for pieces in after] == [pieces.ids for pieces in before]


def test_the_folder_remembers_what_was_extended(tiny_tokenizer, grown, tmp_path):
    grown.save(tmp_path / "grown")
    tiny_tokenizer.save(tmp_path / "base")
    record = json.loads((tmp_path / "grown" / "korbert_tokenizer.json").read_text(encoding="utf-8"))
    assert record["base"] == tiny_tokenizer.digest != record["digest"] == grown.digest
    assert (tmp_path / "grown" / "words.tsv").read_text(encoding="utf-8") == f"{NEW}\t2000\n"
    assert "base" not in json.loads((tmp_path / "base" / "korbert_tokenizer.json").read_text(encoding="utf-8"))
    loaded = Tokenizer.load(tmp_path / "grown")
    assert loaded.parts == grown.parts
    assert why_not_extended(loaded, Tokenizer.load(tmp_path / "base")) == ""


def test_without_new_words_it_is_the_same(tiny_tokenizer):
    known = next(piece for piece in tiny_tokenizer.tokens(range(384, 2000)) if len(piece) > 1)
    assert extend_tokenizer(tiny_tokenizer, [], AnalyzerOptions()) is tiny_tokenizer
    assert extend_tokenizer(tiny_tokenizer, [known], AnalyzerOptions()).digest == tiny_tokenizer.digest
    with pytest.raises(SettingsError, match=r"words added to .*'두 말' cannot be a word.*: change the words"):
        extend_tokenizer(tiny_tokenizer, ["두 말"], AnalyzerOptions())


@pytest.mark.parametrize("mark", ["none", "eojeol", "morpheme"])
def test_new_entries_are_the_pieces_that_stood_for_them(mark):
    base = learned(mark)
    grown = extend_tokenizer(base, ["학교", "갓생", "대한민국", "생갓", "갓생"], base.analyzer_options)
    assert grown.settings.words == ("대한민국", "갓생", "생갓")
    entries = new_entries(grown, base)
    assert len(entries) == grown.vocab_size - base.vocab_size == (4 if mark == "eojeol" else 2)
    first = base.tokens(entries[0])
    assert "".join(first) == ("갓생" if mark == "none" else "▁갓생")
    assert len(first) > 1
    for initial in (True, False):
        (id,) = grown.encode_forms(["생갓"], [initial])[0]
        assert entries[id - base.vocab_size] == base.encode_forms(["생갓"], [initial])[0]


def test_a_tokenizer_can_be_extended_again():
    base = learned("none")
    once = extend_tokenizer(base, ["갓생"], base.analyzer_options)
    twice = extend_tokenizer(once, ["생갓"], base.analyzer_options)
    assert twice.parts.base == once.digest
    assert new_entries(twice, base) == [base.ids_of("갓생"), base.ids_of("생갓")]
    assert new_entries(twice, once) == [base.ids_of("생갓")]
    assert [why_not_extended(twice, one) for one in (base, once, twice)] == ["", "", ""]
    assert why_not_extended(once, twice) == "words: they do not begin with those of the other"


OURS, THEIRS = UserWord(form="갓생", tag="NNG"), UserWord(form="혼코노")


@pytest.mark.parametrize(
    ("base", "options", "said"),
    [
        ({}, {}, ""),
        ({}, {"user_words": (OURS,)}, ""),
        ({"user_words": (THEIRS,)}, {"user_words": (THEIRS, OURS)}, ""),
        ({}, {"typos": "basic"}, "typos: 'basic', not 'none'"),
        ({"z_coda": False}, {"user_words": (OURS,)}, "z_coda: True, not False"),
        (
            {"user_words": (THEIRS,)},
            {"user_words": (OURS, THEIRS)},
            "user_words: another word, not 혼코노/NNP as word 1, before all new ones",
        ),
        ({"user_words": (THEIRS,)}, {}, "user_words: 0 words, not 혼코노/NNP as word 1, before all new ones"),
    ],
)
def test_other_options_are_named(base, options, said):
    assert other_options(AnalyzerOptions.model_validate(base), AnalyzerOptions.model_validate(options)) == said


def test_another_tokenizer_is_no_extension():
    base = learned("none")
    assert why_not_extended(learned("eojeol"), base) == "another vocabulary was learned"
    assert why_not_extended(learned("none", typos="basic"), base) == "typos: 'basic', not 'none'"
    older = Tokenizer(*base.parts._replace(versions={"kiwipiepy": "0.1"}))
    assert why_not_extended(base, older).startswith("versions: {'kiwipiepy'")
    marks = Tokenizer(*learned("eojeol").parts._replace(settings=learned("morpheme").settings))
    assert why_not_extended(marks, learned("eojeol")) == "mark: 'morpheme', not 'eojeol'"
