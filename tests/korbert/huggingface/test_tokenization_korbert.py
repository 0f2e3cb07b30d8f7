"""The tokenizer of an exported folder in the hands of `transformers`; test_three_ways.py holds its ids to ours."""

import ast
import os
import pickle
import subprocess
import sys

import datasets
import pytest
import torch
import transformers
from exported import exported, small, tokenizer_of

from korbert.modeling.models import QuestionAnsweringModel
from korbert.tokenization import Tokenizer
from korbert.tokenization.pieces import EOJEOL, SENTENCE

TEXTS = [
    "아버지가 방에 들어가신다.",
    "어제 학교에 갔다가 친구를 만났는데, 정말 반가웠어!",
    "첫 줄이다.\n\n둘째 줄:\r\n셋째 줄\t끝",
]
WORDS = ["어제", "학교에", "갔다가", "친구를", "만났다."]
MARKERS = ["[E1]", "[/E1]", "[E1]:인물"]  # the last one begins like the first


def folder_of(folder, tokenizer, family="bert"):
    return exported(folder, QuestionAnsweringModel(small(tokenizer, family, max_position_embeddings=64)), tokenizer)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tiny_tokenizer):
    return folder_of(tmp_path_factory.mktemp("export"), tiny_tokenizer)


@pytest.fixture(scope="module")
def theirs(folder):
    return tokenizer_of(folder)


def test_special_tokens_have_their_ids(tiny_tokenizer, theirs, folder):
    assert [theirs.pad_token_id, theirs.unk_token_id, theirs.cls_token_id, theirs.sep_token_id] == [0, 1, 2, 3]
    assert theirs.mask_token_id == tiny_tokenizer.mask_id
    assert tiny_tokenizer.mask_id in tokenizer_of(folder, split_special_tokens=False)("오늘 [MASK] 좋다")["input_ids"]
    assert len(theirs) == theirs.vocab_size == len(theirs.get_vocab()) == tiny_tokenizer.vocab_size
    assert theirs.convert_ids_to_tokens(list(range(len(theirs)))) == tiny_tokenizer.tokens(range(len(theirs)))
    assert theirs.model_max_length == 64
    # They can be left out.
    got = theirs("학교에 간다", add_special_tokens=False, return_special_tokens_mask=True, return_length=True)
    assert got["input_ids"] == tiny_tokenizer.encode_pieces("학교에 간다").ids
    assert (set(got["special_tokens_mask"]), got["length"]) == ({0}, len(got["input_ids"]))
    assert theirs("", add_special_tokens=False)["input_ids"] == []


def test_batches_and_their_offsets_are_padded(tiny_tokenizer, theirs):
    """Windows over many texts, too, which name their text."""
    batch = theirs(TEXTS, padding=True, return_offsets_mapping=True, return_tensors="pt")
    lengths = [len(tiny_tokenizer.encode(text)) for text in TEXTS]
    assert batch["offset_mapping"].shape == (3, max(lengths), 2) == (*batch["input_ids"].shape, 2)
    assert batch["attention_mask"].sum(dim=1).tolist() == lengths
    assert torch.equal(batch["input_ids"] == 0, batch["attention_mask"] == 0)
    assert batch["offset_mapping"][batch["attention_mask"] == 0].sum() == 0
    left = theirs(TEXTS[:2], padding=True, padding_side="left", return_offsets_mapping=True)
    assert (left["offset_mapping"][0][:2], left.sequence_ids(0)[:2]) == ([(0, 0), (0, 0)], [None, None])
    contexts, cut = [" ".join(TEXTS[:2] * 3), TEXTS[0]], {"max_length": 16, "stride": 4}
    asked = {"truncation": "only_second", "padding": "max_length", "return_overflowing_tokens": True}
    rows = theirs(["언제?"] * 2, contexts, return_offsets_mapping=True, **asked, **cut)
    ours = [tiny_tokenizer.encode("언제?", text, **cut) for text in contexts]
    assert rows["overflow_to_sample_mapping"] == [0] * len(ours[0]) + [1] * len(ours[1])
    for row, window in enumerate([*ours[0], *ours[1]]):
        assert rows["input_ids"][row][: len(window)] == window.input_ids
        assert rows["offset_mapping"][row][: len(window)] == window.spans
        assert len(rows["input_ids"][row]) == 16


def test_impossible_lengths_are_refused(theirs):
    for pair, options, message in (
        (None, {"truncation": True, "stride": 7}, r"leaves 7 pieces for a window, which is no more than stride 7"),
        (TEXTS[1], {"truncation": True, "stride": 2}, "windows over a pair need truncation='only_first' or"),
        ("글", {"truncation": "only_second"}, r"max_length 9: only_second can take 1 pieces away, not \d+"),
    ):
        with pytest.raises(ValueError, match=message):
            theirs(TEXTS[1], pair, max_length=9, return_overflowing_tokens="stride" in options, **options)


@pytest.mark.parametrize("strategy", ["only_first", "only_second", "longest_first"])
@pytest.mark.parametrize("side", ["right", "left"])
def test_the_chosen_segment_is_truncated_at_the_chosen_side(tiny_tokenizer, theirs, strategy, side):
    first, second = (tiny_tokenizer.encode_pieces(text).ids for text in (TEXTS[1], TEXTS[2]))
    theirs.truncation_side = side
    try:
        got = theirs(TEXTS[1], TEXTS[2], truncation=strategy, max_length=28)["input_ids"]
    finally:
        theirs.truncation_side = "right"
    assert len(got) == 28
    end = got.index(theirs.sep_token_id)
    kept = (got[1:end], got[end + 1 : -1])
    for part, whole in zip(kept, (first, second), strict=True):
        assert part == (whole[: len(part)] if side == "right" else whole[len(whole) - len(part) :])
    assert (kept[0] == first) == (strategy == "only_second")
    assert (kept[1] == second) == (strategy == "only_first")


def test_characters_words_and_tokens_are_mapped(theirs):
    text = "이걸 학교에서 했다"
    got = theirs(text, return_offsets_mapping=True)
    place = got.char_to_token(text.index("학"))
    assert got.token_to_chars(place).start == text.index("학")
    assert got.word_ids()[place] == got.char_to_word(text.index("학")) == got.token_to_word(place) == 1
    assert got.word_to_chars(1) == (3, 7)
    span = got.word_to_tokens(1)
    assert span.start == place
    assert [*range(*span)] == [token for token, word in enumerate(got.word_ids()) if word == 1]
    assert got.char_to_token(2) is None  # a space
    assert (got.token_to_chars(0), got.token_to_sequence(place)) == (None, 0)
    # Ids are encoded without offsets.
    assert theirs([400, 401])["input_ids"] == [theirs.cls_token_id, 400, 401, theirs.sep_token_id]
    with pytest.raises(NotImplementedError, match="return_offsets_mapping needs texts: ids have no characters"):
        theirs([400, 401], return_offsets_mapping=True)


def test_words_are_encoded_as_their_text_and_each_has_a_piece(tiny_tokenizer, tmp_path):
    """With boundaries, and offsets within the words, as those of transformers give them."""
    with_boundaries = tokenizer_of(folder_of(tmp_path, tiny_tokenizer, "korbert-modernbert"))
    text = with_boundaries(" ".join(WORDS), return_offsets_mapping=True)
    words = with_boundaries(WORDS, is_split_into_words=True, return_offsets_mapping=True)
    assert dict(words).keys() == dict(text).keys() >= {"boundaries", "token_type_ids"}
    assert {name for name in words if words[name] != text[name]} == {"offset_mapping"}
    assert words.word_ids() == text.word_ids()
    starts = [" ".join(WORDS).index(word) for word in WORDS]
    for own, whole, word in zip(words["offset_mapping"], text["offset_mapping"], text.word_ids(), strict=True):
        assert word is None or (own[0] + starts[word], own[1] + starts[word]) == whole
    # Words that Kiwi would join are analyzed one by one.
    for words in (list("나는학교에간다"), ["서울", "에", "서", "", "살", "았", "다"], ["만나", "았다"]):
        rows = with_boundaries(words, is_split_into_words=True, return_offsets_mapping=True)
        assert {word for word in rows.word_ids() if word is not None} == {n for n, word in enumerate(words) if word}
        begun = [-1]
        for word, (start, end), level in zip(rows.word_ids(), rows["offset_mapping"], rows["boundaries"], strict=True):
            assert word is None or 0 <= start < end <= len(words[word])
            if word is not None and word != begun[-1]:
                begun.append(word)
                assert level == (SENTENCE if len(begun) == 2 else EOJEOL)
    assert with_boundaries([], is_split_into_words=True)["input_ids"] == with_boundaries("")["input_ids"]


def test_words_in_pairs_and_batches(theirs):
    first, second, whole = WORDS, WORDS[:2], {"return_token_type_ids": True}
    pair = theirs(" ".join(first), " ".join(second), **whole)
    assert dict(theirs(first, second, is_split_into_words=True, **whole)) == dict(pair)
    batch = theirs([first, second], [second, first], is_split_into_words=True, **whole)
    in_one = theirs([(first, second), (second, first)], is_split_into_words=True, **whole)
    alone = theirs([tuple(first), second], is_split_into_words=True)
    for name, column in pair.items():
        assert batch[name][0] == in_one[name][0] == column
        assert in_one[name][1] == batch[name][1]
    assert alone["input_ids"] == theirs([" ".join(first), " ".join(second)])["input_ids"]
    assert batch.word_ids(1) == theirs(" ".join(second), " ".join(first)).word_ids()
    cut = {"truncation": True, "max_length": 16, "return_overflowing_tokens": True}
    windows = theirs(first * 9, is_split_into_words=True, **cut)
    assert {word for row in range(len(windows["input_ids"])) for word in windows.word_ids(row)} == {None, *range(45)}
    with pytest.raises(ValueError, match="as many pairs as texts"):
        theirs([first, second], [second], is_split_into_words=True)


def test_added_tokens_are_found_in_texts(theirs, folder, tmp_path):
    """Markers of entities, and a word."""
    marking = tokenizer_of(folder)
    size = len(marking)
    assert marking.add_special_tokens({"extra_special_tokens": MARKERS}) == 3
    assert (marking.add_tokens(["학교에서"]), len(marking)) == (1, size + 4)
    text = "어제 [E1]:인물 이순신[/E1]을 학교에서 봤다."
    marking.save_pretrained(tmp_path)
    for tokenizer in (marking, tokenizer_of(tmp_path), pickle.loads(pickle.dumps(marking))):
        got = tokenizer(text, return_offsets_mapping=True, return_special_tokens_mask=True)
        places = dict(zip(got.tokens(), got["offset_mapping"], strict=True))
        for token in (*MARKERS[1:], "학교에서"):
            assert text[slice(*places[token])] == token
            assert tokenizer.convert_tokens_to_ids(token) in got["input_ids"]
        assert "[E1]" not in got.tokens()
        assert got.word_ids()[got.tokens().index("학교에서")] == 3
        assert sum(got["special_tokens_mask"]) == 2  # those that the tokenizer adds
        decoded = tokenizer.decode(got["input_ids"])
        assert [part for part in ("[E1]:인물 이순신 [/E1]", "학교에서") if part not in decoded] == []
        assert "[E1" not in tokenizer.decode(got["input_ids"], skip_special_tokens=True)
        assert tokenizer("[SEP]")["input_ids"] == theirs("[SEP]")["input_ids"]  # of the tokenizer itself: text
    assert marking("어제 학교에 갔다")["input_ids"] == theirs("어제 학교에 갔다")["input_ids"]
    # A model learns them.
    model = transformers.AutoModel.from_pretrained(folder)
    model.resize_token_embeddings(len(marking))
    rows = marking(["[E1]서울[/E1]에 산다"], return_tensors="pt")
    assert int(rows["input_ids"].max()) >= 2_000 - 4
    assert model(**rows).last_hidden_state.shape[1] == rows["input_ids"].shape[1]


def test_a_saved_or_pickled_tokenizer_is_the_same_and_its_hash_lasts(tiny_tokenizer, theirs, tmp_path, folder):
    theirs.save_pretrained(tmp_path)
    assert Tokenizer.load(tmp_path).digest == tiny_tokenizer.digest
    for again in (tokenizer_of(tmp_path), pickle.loads(pickle.dumps(theirs))):
        assert [again(text)["input_ids"] for text in TEXTS] == [theirs(text)["input_ids"] for text in TEXTS]
        assert again.model_max_length == 64
        assert again.split_special_tokens
    # By which datasets finds what map has made.
    theirs, hashed = tokenizer_of(folder), datasets.fingerprint.Hasher.hash
    before = hashed(theirs)
    theirs(TEXTS * 20, padding=True, return_tensors="pt")
    theirs(" ".join(TEXTS * 20))  # longer than the model takes
    theirs.decode(theirs.encode(TEXTS[0]))
    assert hashed(theirs) == before == hashed(tokenizer_of(folder))
    theirs.add_tokens(["삐까뻔쩍"])
    assert hashed(theirs) != before


def test_modern_has_no_token_types(tiny_tokenizer, tmp_path):
    folder = folder_of(tmp_path, tiny_tokenizer, "modernbert")
    batch = tokenizer_of(folder)("질문", "본문", return_tensors="pt")
    assert set(batch) == {"input_ids", "attention_mask"}
    transformers.AutoModel.from_pretrained(folder)(**batch)
    # Another Kiwi is refused.
    record = folder / "korbert_tokenizer.json"
    record.write_text(record.read_text(encoding="utf-8").replace('"kiwipiepy": "', '"kiwipiepy": "9'), encoding="utf-8")
    with pytest.raises(ImportError, match=r"counted with kiwipiepy 9.*, installed is .*pip install kiwipiepy==9"):
        tokenizer_of(folder)


ALONE = """
import sys
import datasets, transformers
sys.modules["korbert"] = None
transformers.dynamic_module_utils.HF_MODULES_CACHE = sys.argv[1]
sys.path.append(sys.argv[1])
tokenizer = transformers.AutoTokenizer.from_pretrained(sys.argv[2], trust_remote_code=True)
print(tokenizer.vocab_size, datasets.fingerprint.Hasher.hash(tokenizer))
"""


@pytest.mark.slow
def test_the_file_stands_alone(tiny_tokenizer, folder):
    """No korbert, and nothing else that a user of transformers, kiwipiepy and sentencepiece does not have."""
    tree = ast.parse((folder / "tokenization_korbert.py").read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names | {
        "transformers",
        "kiwipiepy",
        "sentencepiece",
    }
    targets = [node.targets[0] for node in tree.body if isinstance(node, ast.Assign)]
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    defined += [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
    # The modules that stand in it take no name from each other.
    assert not {name for name in defined if defined.count(name) > 1}
    printed = []
    for seed in ("1", "2"):  # processes differ in the order of sets, not in the hash by which `map` finds what it made
        run = [sys.executable, "-c", ALONE, str(folder.parent / "cache"), str(folder)]
        said = subprocess.check_output(run, text=True, env=os.environ | {"PYTHONHASHSEED": seed})
        printed.append(said.split()[-2:])
    assert printed[0] == printed[1] == [str(tiny_tokenizer.vocab_size), printed[0][1]]
