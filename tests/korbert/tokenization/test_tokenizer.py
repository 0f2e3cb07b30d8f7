import json
import pickle
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from korbert.errors import ModelError, SettingsError
from korbert.tokenization import AnalyzerOptions, Tokenizer, marked
from korbert.tokenization.pieces import CONTINUATION, EOJEOL, MORPHEME, SENTENCE
from korbert.tokenization.tokenizer_base import encode_beginnings, first_pieces
from tests.korbert.learned import FRAGMENTS, MARKS, learned

INVISIBLE = set("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff\u2800")
anything = st.lists(st.sampled_from(FRAGMENTS) | st.characters(), max_size=25).map("".join)


@pytest.fixture(scope="module")
def tokenizers_by_mark(tiny_tokenizer, sample):
    return learned(tiny_tokenizer.analyzer, sample, ("대한민국", "쀍"))  # one Kiwi for all


def check_spans(tokenizer, text):
    """The laws of spans (docs/architecture.md)."""
    analysis = tokenizer.analyzer.analyze(text)
    found = tokenizer.pieces(analysis, text)
    assert {len(getattr(found, name)) for name in found.__slots__} == {len(found)}
    assert all(0 <= start <= end <= len(text) for start, end in found.spans)
    covered = {place for span in found.spans for place in range(*span)}
    unseen = [char for place, char in enumerate(text) if place not in covered]
    assert all(char.isspace() or char in INVISIBLE for char in unseen)
    taken = set()
    for id, piece, span, morpheme in zip(found.ids, found.pieces, found.spans, found.morphemes, strict=True):
        whole = text[analysis.starts[morpheme] : analysis.ends[morpheme]]
        if whole == analysis.forms[morpheme] and not 128 <= id < 384:  # unfused; bytes share their character
            assert text[slice(*span)] == piece.removeprefix("▁")
            assert taken.isdisjoint(range(*span))
            taken.update(range(*span))
    assert tokenizer.unk_id not in found.ids
    assert all(id >= 128 for id in found.ids)  # nothing in a text is special
    return found


@settings(deadline=None, max_examples=350)
@given(text=anything, mark=st.sampled_from(MARKS))
def test_spans_hold_on_any_text(tokenizers_by_mark, text, mark):
    found = check_spans(tokenizers_by_mark[mark], text)
    begins = [one != last for one, last in zip(found.morphemes, [None, *found.morphemes], strict=False)]
    assert [level != CONTINUATION for level in found.boundaries] == begins


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("쀍쀍", [(0, 1)] * 3 + [(1, 2)] * 3),  # bytes
        ("\u1108\u1170\u11b0\u1108\u1170\u11b0", [(0, 3)] * 3 + [(3, 6)] * 3),  # the same in NFD
        ("쀍\u200b쀍", [(0, 1)] * 3 + [(2, 3)] * 3),
        ("\ud800", [(0, 1)] * 3),
        ("𠀀", [(0, 1)] * 4),
    ],
)
def test_the_bytes_of_a_character_share_its_span(tiny_tokenizer, text, spans):
    assert tiny_tokenizer.encode(text).spans[1:-1] == spans


def test_boundaries_tell_what_begins_at_a_piece(tiny_tokenizer):
    encoding = tiny_tokenizer.encode("쀍 영화는 좋다. 나는 갔다")
    levels = dict(zip(reversed(encoding.pieces), reversed(encoding.boundaries), strict=True))  # of the first one
    assert encoding.boundaries[:4] == [CONTINUATION, SENTENCE, CONTINUATION, CONTINUATION]
    expected = {"영화": EOJEOL, "는": MORPHEME, "좋": EOJEOL, "나": SENTENCE, "가": EOJEOL}
    assert {piece: levels[piece] for piece in expected} == expected
    assert encoding.boundaries[-1] == CONTINUATION


@pytest.mark.parametrize("mark", MARKS)
def test_marks_tell_where_something_begins(tokenizers_by_mark, mark):
    encoding = tokenizers_by_mark[mark].encode("영화는 대한민국에서")
    begins = [piece.startswith("▁") for piece in encoding.pieces[1:-1]]
    firsts = [level >= {"none": 9, "eojeol": EOJEOL, "morpheme": MORPHEME}[mark] for level in encoding.boundaries[1:-1]]
    assert begins == firsts
    assert "".join(encoding.pieces[1:-1]).replace("▁", "") == "영화는대한민국에서"


@pytest.mark.parametrize("mark", MARKS)
def test_pieces_spell_their_forms(tokenizers_by_mark, mark, sample):
    tokenizer = tokenizers_by_mark[mark]
    for line in (sample / "reviews.jsonl").read_text(encoding="utf-8").splitlines()[300:400]:
        text = json.loads(line)["text"]
        forms = tokenizer.analyzer.analyze(text).forms
        decoded = tokenizer.decode(tokenizer.encode(text).input_ids)
        assert decoded.replace(" ", "") == unicodedata.normalize("NFC", "".join(forms))


def test_decode_is_readable(tokenizers_by_mark):
    text = "영화는 좋다 😀 ▁쀍!"
    eojeol_encoding, encoding = tokenizers_by_mark["eojeol"].encode(text), tokenizers_by_mark["none"].encode(text)
    assert tokenizers_by_mark["eojeol"].decode(eojeol_encoding.input_ids) == text
    assert tokenizers_by_mark["none"].decode(encoding.input_ids) == text.replace(" ", "")
    assert tokenizers_by_mark["none"].decode(encoding.input_ids, encoding.boundaries) == text
    assert tokenizers_by_mark["none"].decode([0, 2, 4, 3]) == "[MASK]"
    assert tokenizers_by_mark["none"].decode([128 + 0xEC]) == "\ufffd"  # half a character


def test_words_are_one_piece_wherever_they_stand(tokenizers_by_mark):
    for mark, tokenizer in tokenizers_by_mark.items():
        entries = {marked(word, initial, mark) for word in ("대한민국", "쀍") for initial in (True, False)}
        last = tokenizer.vocab_size - len(entries)
        assert [id >= last for id in tokenizer.ids_of(marked("쀍", True, mark))] == [True]
        assert [id >= last for id in tokenizer.ids_of(marked("대한민국", False, mark))] == [True]
        assert tokenizer.vocab_size == 1_500


def test_a_form_with_spaces_has_none_in_its_pieces(tiny_tokenizer):
    assert tiny_tokenizer.ids_of("영화 감독") == tiny_tokenizer.ids_of("영화") + tiny_tokenizer.ids_of("감독")
    assert tiny_tokenizer._vocabulary.spans("영화 감독", "영화 감독", 0, 5, "영화 감독")[-1][1] == 5


def test_lengths_and_ids_without_a_meaning_are_refused(tiny_tokenizer):
    assert tiny_tokenizer.encode("", max_length=2).input_ids == [2, 3]
    assert [len(part) for part in tiny_tokenizer.encode("", max_length=8, stride=2)] == [2]
    assert tiny_tokenizer.encode_batch([]) == []
    with pytest.raises(SettingsError, match="stride 3 without max_length"):
        tiny_tokenizer.encode("나는 학교에 갔다.", stride=3)
    with pytest.raises(SettingsError, match="4 texts and 1 pairs"):
        tiny_tokenizer.encode_batch(["가"] * 4, [None])
    assert tiny_tokenizer.tokens([0, 1, 2, 3, 4, 128]) == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<0x00>"]
    for wrong in (-1, tiny_tokenizer.vocab_size):
        for read in (tiny_tokenizer.tokens, tiny_tokenizer.decode):
            with pytest.raises(ModelError, match=f"id {wrong} is not in the vocabulary of 2000"):
                read([5, wrong])


def test_a_loaded_or_pickled_tokenizer_is_the_same(tokenizers_by_mark, tmp_path):
    for mark, tokenizer in tokenizers_by_mark.items():
        tokenizer.save(tmp_path / mark)
        loaded = Tokenizer.load(tmp_path / mark)
        loaded.analyzer = tokenizer.analyzer
        text = "영화는 ▁쀍 대한민국에서 😀"
        assert loaded.parts == tokenizer.parts
        assert loaded.digest == tokenizer.digest
        assert loaded.encode(text) == tokenizer.encode(text)
        copy = pickle.loads(pickle.dumps(tokenizer))
        assert (copy.digest, copy.ids_of("영화")) == (tokenizer.digest, tokenizer.ids_of("영화"))
        lines = (tmp_path / mark / "pieces.txt").read_text(encoding="utf-8").split("\n")
        assert len(lines) == 1_501
        assert lines[4] == "4\t[MASK]"
        assert lines[1_499].startswith("1499\t")
        assert (tmp_path / mark / "words.tsv").read_text(encoding="utf-8").endswith("쀍\t1499\n")
    assert len({tokenizer.digest for tokenizer in tokenizers_by_mark.values()}) == 3


def test_the_digest_follows_all_that_shapes_ids(tiny_tokenizer):
    model, own, options, versions = tiny_tokenizer.parts[:4]
    others = [
        Tokenizer(model, own.model_copy(update={"words": ("가",)}), options, versions),
        Tokenizer(model, own, AnalyzerOptions(split_complex=True), versions),
        Tokenizer(model, own, options, versions | {"kiwipiepy": "0.0"}),
    ]
    assert len({tiny_tokenizer.digest, *(other.digest for other in others)}) == 4
    assert Tokenizer(model, own.model_copy(update={"min_count": 7}), options, versions).digest == tiny_tokenizer.digest


SPECIAL = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}
PARTS = [*SPECIAL, "나는 ", "https://example.com/", ".com", "은", "학교에", *"a/#@ \n[]1😀"]


def test_special_tokens_in_a_text_are_text_unless_asked_for(tiny_tokenizer):
    text = "나는 [MASK] 갔다 [MASK][SEP]"
    assert tiny_tokenizer.mask_id not in tiny_tokenizer.encode(text).input_ids
    encoding = tiny_tokenizer.encode(text, special_tokens=True)
    found = [(id, span) for id, span in zip(encoding.input_ids, encoding.spans, strict=True) if id < 128]
    assert found == [(2, (0, 0)), (4, (3, 9)), (4, (13, 19)), (3, (19, 24)), (3, (0, 0))]
    assert sum(encoding.special_tokens_mask) == 2
    for literal in ("<0xEC>", "[RESERVED7]", "<unk>", "[PAD]"):
        assert all(id >= 384 or 128 + 0x20 <= id < 128 + 0x7F for id in tiny_tokenizer.encode(literal).input_ids[1:-1])


@settings(max_examples=100)
@given(st.lists(st.sampled_from(PARTS), max_size=8).map("".join))
def test_each_special_token_is_one_piece_and_no_other_character_is_lost(tiny_tokenizer, text):
    found = tiny_tokenizer.encode_pieces(text, special_tokens=True)
    rest = text
    for token, id in SPECIAL.items():
        spans = [span for piece, span in zip(found.ids, found.spans, strict=True) if piece == id]
        assert [text[slice(*span)] for span in spans] == [token] * text.count(token)
        rest = rest.replace(token, " " * len(token))
    covered = {place for start, end in found.spans for place in range(start, end)}
    assert all(place in covered for place, character in enumerate(text) if not character.isspace())
    ordinary = {place for id, span in zip(found.ids, found.spans, strict=True) if id > 4 for place in range(*span)}
    assert all(not rest[place].isspace() or text[place].isspace() for place in ordinary)
    assert found.morphemes == sorted(found.morphemes)


def test_special_tokens_within_a_morpheme_cut_it(tiny_tokenizer):
    found = tiny_tokenizer.encode_pieces("https://example.com/[MASK]/가 [SEP]끝", special_tokens=True)
    levels = dict(zip(found.spans, found.boundaries, strict=True))
    assert found.boundaries[0] == SENTENCE
    assert [levels[span] for span in [(20, 26), (26, 27), (29, 34), (34, 35)]] == [MORPHEME, MORPHEME, EOJEOL, MORPHEME]
    many = tiny_tokenizer.encode_pieces("https://a.com/[MASK] " * 2_000, special_tokens=True)
    assert many.ids.count(tiny_tokenizer.mask_id) == 2_000


ODD = ["가" * 3_000, "\u200b" * 5_000 + "학교에 간다 " * 40, " " * 4_000 + "끝", "", "\ud800" * 900, "\x00가 " * 500]


@pytest.mark.parametrize("length", [16, 32])
def test_the_first_pieces_are_those_of_the_whole_text(sample, tiny_tokenizer, length):
    lines = (sample / "wiki.jsonl").read_text(encoding="utf-8").splitlines()[:12]
    texts = [json.loads(line)["text"] for line in lines]
    texts += [*(text.replace("\n", " ") for text in texts), *ODD]  # one line each
    assert encode_beginnings(tiny_tokenizer, texts, length) == tiny_tokenizer.encode_batch(texts, max_length=length)


def test_text_behind_the_beginning_is_not_analysed(tiny_tokenizer, monkeypatch):
    seen = []
    analyze = tiny_tokenizer.analyzer.analyze
    monkeypatch.setattr(tiny_tokenizer.analyzer, "analyze", lambda text: seen.append(len(text)) or analyze(text))
    assert len(first_pieces(tiny_tokenizer, "학교에 간다 " * 100_000, 16)) >= 16
    assert sum(seen) < 1_000
