"""Special tokens in a text."""

from hypothesis import given, settings
from hypothesis import strategies as st

from korbert.tokenization.pieces import EOJEOL, MORPHEME, SENTENCE

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


def test_thousands_of_special_tokens_are_found(tiny_tokenizer):
    pieces = tiny_tokenizer.encode_pieces("https://a.com/[MASK] " * 2_000, special_tokens=True)
    assert pieces.ids.count(tiny_tokenizer.mask_id) == 2_000
