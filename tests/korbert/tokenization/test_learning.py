import hashlib
import re
from itertools import product

import pytest
import sentencepiece
from pydantic import ValidationError

from korbert.errors import CorpusError
from korbert.tokenization import VocabularySettings, learn, marked
from korbert.tokenization.vocabulary import FIRST_BYTE, FIRST_PIECE, RESERVED, SPECIAL, TYPED, unmarked, word_entries

SYLLABLES = "가나다라마바사아자차"
COUNTS = [("".join(pair), 5 + place % 7) for place, pair in enumerate(product(SYLLABLES, repeat=2))]
SMALL = VocabularySettings(size=420)


def pieces_of(model):
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(id) for id in range(processor.vocab_size())]


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
def test_ids_stand_where_the_format_says(model_type):
    pieces = pieces_of(learn(COUNTS, VocabularySettings(size=394), model_type))
    assert len(pieces) == 394
    assert tuple(pieces[:5]) == SPECIAL
    assert pieces[5:FIRST_BYTE] == [f"[RESERVED{number}]" for number in range(RESERVED)]
    assert pieces[FIRST_BYTE:FIRST_PIECE] == [f"<0x{byte:02X}>" for byte in range(256)]
    assert set(SYLLABLES) <= set(pieces[FIRST_PIECE:])


def test_bytes_do_not_depend_on_folder_order_or_repetition(tmp_path, monkeypatch):
    digests = set()
    for number, counts in enumerate((COUNTS, COUNTS[::-1], [(form, 1) for form, n in COUNTS for _ in range(n)])):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        model = learn(iter(counts), SMALL)
        digests.add(hashlib.sha256(model).hexdigest())
        assert str(tmp_path).encode() not in model
        assert list(folder.iterdir()) == []
    assert len(digests) == 1


def _foreign(pieces):
    forms = map(unmarked, pieces[FIRST_PIECE:])
    return [form for form in forms if len(form) > 1 and not re.search("[가-힣]", form)]


@pytest.mark.parametrize("mark", ["none", "eojeol"])
def test_entries_without_hangul_are_capped(mark):
    years = [(str(year), 200 - year % 97) for year in range(1900, 2026)]
    names = [("Korea", 90), ("korbert", 40), ("Seoul", 30), ("大韓民國", 20), ("...", 99), ("a.b", 7)]
    forms = [*COUNTS, *years, *names]
    counts = [(marked(form, initial, mark), count) for form, count in forms for initial in (True, False)]
    free = VocabularySettings(size=530, mark=mark, foreign_share=1.0, character_coverage=0.999)
    capped = free.model_copy(update={"foreign_share": 0.02})
    before, after = pieces_of(learn(counts, free)), pieces_of(learn(counts, capped))
    assert len(_foreign(before)) > 40
    assert 8 <= len(_foreign(after)) <= 0.02 * 530 + 4  # steps on the way to a piece may be others than before
    assert {piece for piece in after if len(piece) == 1} == {piece for piece in before if len(piece) == 1}
    korean = {marked(form, True, mark) for form, _ in COUNTS}
    assert len(korean.intersection(after)) > len(korean.intersection(before))
    assert learn(counts[::-1], capped) == learn(counts, capped)


@pytest.mark.parametrize(
    ("form", "initial", "mark", "expected"),
    [
        ("학교", True, "none", "학교"), ("학교", True, "eojeol", "▁학교"), ("학교", False, "eojeol", "학교"),
        ("학교", False, "morpheme", "▁학교"), ("▁가", False, "eojeol", f"{TYPED}가"),
        ("▁가", True, "morpheme", f"▁{TYPED}가"),
    ],
)  # fmt: skip
def test_forms_are_marked(form, initial, mark, expected):
    assert marked(form, initial, mark) == expected
    assert unmarked(marked("학교", initial, mark)) == "학교"


def test_the_mark_has_an_entry_even_where_no_form_shows_it():
    assert "▁" in pieces_of(learn(COUNTS, SMALL.model_copy(update={"mark": "eojeol"})))
    assert "▁" not in pieces_of(learn([*COUNTS, ("▁가나", 99)], SMALL))


def test_forms_that_cannot_be_listed_are_left_out():
    odd = [("가 나", 50), ("가\t9", 50), ("\n", 50), ("", 50), ("▁", 50), ("가\x00", 50), ("\ud800", 50), ("▅가", 50)]
    assert learn(COUNTS + odd, SMALL) == learn(COUNTS, SMALL)
    assert "힣" not in pieces_of(learn([*COUNTS, ("힣힣", 2)], SMALL.model_copy(update={"min_count": 3})))


def test_words_take_the_last_ids_and_are_not_learned():
    settings = SMALL.model_copy(update={"words": ("가나", "힣힣힣")})
    assert word_entries(settings.words, "none") == ["가나", "힣힣힣"]
    assert word_entries(settings.words, "eojeol") == ["▁가나", "가나", "▁힣힣힣", "힣힣힣"]
    assert word_entries(settings.words, "morpheme") == ["▁가나", "▁힣힣힣"]
    learned = pieces_of(learn(COUNTS, settings))
    assert len(learned) == 418
    assert "가나" not in learned


RARE = [(f"{one}힣{two}", 1 + place % 2) for place, (one, two) in enumerate(product(SYLLABLES, repeat=2))]


def test_too_little_text_says_which_size_is_worth_having():
    """Forms seen once or twice are no reason for an entry, though SentencePiece could make one of them."""
    with pytest.raises(CorpusError, match=r"vocab\.size 102400: too little text") as refusal:
        learn([*COUNTS, *RARE], VocabularySettings())
    assert "of its 200 forms 100 are seen 3 times or more: set vocab.size to about 500 (" in str(refusal.value)
    assert 384 + 11 + 100 <= 500  # bytes and the like, characters, forms
    learn([*COUNTS, *RARE], VocabularySettings(size=500))
    allowed = int(re.findall(r"\((\d+) is the most", str(refusal.value))[0])
    assert len(pieces_of(learn([*COUNTS, *RARE], VocabularySettings(size=allowed)))) == allowed
    with pytest.raises(CorpusError, match=rf"\({allowed} is the most that it allows"):
        learn([*COUNTS, *RARE], VocabularySettings(size=allowed + 1))
    with pytest.raises(CorpusError, match=r"set vocab\.size to about (\d+) \(\1 is the most"):
        learn([("가나", 9)], VocabularySettings())


def test_a_size_far_above_it_warns_and_is_taken(caplog):
    rare = [("".join(one), 1) for one in product(SYLLABLES, repeat=4)][::7]
    assert len(pieces_of(learn([*COUNTS, *rare], VocabularySettings(size=1_000)))) == 1_000
    assert caplog.messages == []
    assert len(pieces_of(learn([*COUNTS, *rare], VocabularySettings(size=1_001)))) == 1_001
    (told,) = caplog.messages
    assert told.startswith("vocab.size 1,001: far more than the text gives a reason for: about 500 would hold")


@pytest.mark.parametrize(
    ("counts", "settings", "message"),
    [
        ([], SMALL, r"no forms to learn from \(min_count 1\)"),
        ([("가", 1)], SMALL.model_copy(update={"min_count": 2}), r"no forms to learn from \(min_count 2\)"),
        ([(chr(code), 1) for code in range(0xAC00, 0xAC00 + 500)], SMALL, "the characters of the text alone take"),
    ],
)
def test_counts_that_give_no_vocabulary_are_refused(counts, settings, message):
    with pytest.raises(CorpusError, match=message):
        learn(counts, settings)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"words": ("두 낱말",)}, "cannot be a word"),
        ({"words": ("가▁",)}, "cannot be a word"),
        ({"words": ("가", "가")}, "is there twice"),
        ({"size": 385, "words": ("가",)}, "leave none to learn"),
    ],
)
def test_invalid_settings_are_refused(fields, message):
    with pytest.raises(ValidationError, match=message):
        VocabularySettings(**fields)


def test_a_dictionary_of_many_words_is_taken():
    """To compare every pair of words would take minutes."""
    words = tuple(map("".join, product(map(chr, range(0xAC00, 0xAC00 + 320)), repeat=2)))
    assert len(VocabularySettings(words=words, size=1 << 17).words) == 320 * 320
