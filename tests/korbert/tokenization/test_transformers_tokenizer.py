"""Tokenizers of transformers behind our interface: ids as theirs, spans in the text as given."""

import json
import pickle
import shutil
from pathlib import Path

import pytest
import transformers
from foreign_folders import foreign_tokenizer, python_tokenizer

from korbert.errors import ModelError
from korbert.tokenization import Tokenizer, TransformersTokenizer, load_tokenizer
from korbert.tokenization.transformers_tokenizer import saved_files

KINDS = ["wordpiece", "jamo", "funnel", "bytes", "plain bytes", "unigram", "albert", "deberta"]
TEXTS = [
    "나는 어제 학교에 갔다가 친구를 만났는데, 정말 반가웠어!", "  학교에\t간다.\n\n서울에  간다 ",
    "진짜 ㅋㅋㅋ 👍🏻 강추 👩‍👩‍👧 2020년作", "뷁쀍 학교 쀍뷁에 Café ＡＢ", "[MASK] </s> 학교", "Cafe\u0301 간다",
    "", "   ",
]  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    made = {}
    for kind in KINDS:
        folder = made[kind] = tmp_path_factory.mktemp("tokenizer")
        foreign_tokenizer(kind).save_pretrained(folder)
        types = {"funnel": "funnel", "unigram": "xlm-roberta", "albert": "albert", "deberta": "deberta-v2"}
        types |= {"bytes": "roberta", "plain bytes": "modernbert"}
        (folder / "config.json").write_text(json.dumps({"model_type": types.get(kind, "bert")}), encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def tokenizers(folders):
    return {kind: TransformersTokenizer.of_folder(folder) for kind, folder in folders.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_ids_are_theirs(folders, tokenizers, kind):
    theirs = transformers.AutoTokenizer.from_pretrained(folders[kind])
    ours = tokenizers[kind]
    special = set(theirs.all_special_ids)
    for text in TEXTS:
        given = theirs(text, split_special_tokens=True, add_special_tokens=False)["input_ids"]
        given = [theirs.unk_token_id if id in special else id for id in given]
        assert ours.encode_pieces(text).ids == given
        assert ours.encode(text).input_ids == [theirs.cls_token_id, *given, theirs.sep_token_id]
        assert ours.encode(text, special_tokens=True).input_ids == theirs(text)["input_ids"]
        assert (
            ours.encode(text, "친구를 만난다", special_tokens=True).input_ids
            == theirs(text, "친구를 만난다")["input_ids"]
        )
    assert [one.input_ids for one in ours.encode_batch(TEXTS)] == [ours.encode(text).input_ids for text in TEXTS]
    assert [one.ids for one in ours.pieces_of_many(TEXTS)] == [ours.encode_pieces(text).ids for text in TEXTS]
    assert (ours.pad_id, ours.mask_id) == (theirs.pad_token_id, theirs.mask_token_id)
    assert (ours.unk_id, ours.cls_id, ours.sep_id) == (theirs.unk_token_id, theirs.cls_token_id, theirs.sep_token_id)
    assert ours.vocab_size == len(theirs)


@pytest.mark.parametrize("kind", KINDS)
def test_spans_cover_the_visible_text(tokenizers, kind):
    tokenizer = tokenizers[kind]
    mask = tokenizer.tokens([tokenizer.mask_id])[0]
    asked = tokenizer.encode_pieces(f"학교에 {mask} 간다", special_tokens=True)
    assert asked.spans[asked.ids.index(tokenizer.mask_id)] == (4, 4 + len(mask))
    for text in TEXTS:
        pieces = tokenizer.encode_pieces(text)
        covered = {place for start, end in pieces.spans for place in range(start, end)}
        seen = {place for place, char in enumerate(text) if not char.isspace()}
        dropped = {place for place in seen if text[place] in "\u200d\u0301"}
        assert covered - dropped == seen - dropped, (kind, text)
        starts = [start for start, end in pieces.spans if end > start]
        assert starts == sorted(starts)
        assert len(pieces.ids) == len(pieces.spans) == len(pieces.boundaries) == len(pieces.morphemes)
        begins = [place for place, level in enumerate(pieces.boundaries) if level]
        assert len(begins) == len(text.split())
        assert [text[pieces.spans[place][0] :].split()[0] for place in begins] == text.split()


@pytest.mark.parametrize(
    ("kind", "text", "found"),
    [
        ("wordpiece", "학교에 뷁👍🏻 간다.", "학교에|뷁👍🏻|간다|."),
        ("funnel", "학교에 뷁👍🏻 간다.", "학교에|뷁👍🏻|간다|."),
    ],
)
def test_spans_of_known_texts(tokenizers, kind, text, found):
    assert "|".join(text[start:end] for start, end in tokenizers[kind].encode_pieces(text).spans) == found


@pytest.mark.parametrize("kind", KINDS)
def test_lengths_windows_and_lone_surrogates(tokenizers, kind):
    tokenizer = tokenizers[kind]
    text = "나는 어제 학교에 갔다가 친구를 만났는데"
    whole = tokenizer.encode(text)
    assert tokenizer.encode(text, max_length=6).input_ids == [*whole.input_ids[:5], tokenizer.sep_id]
    pair = tokenizer.encode(text, text, max_length=10)
    assert len(pair) == 10
    assert sum(pair.special_tokens_mask) == tokenizer.frame.special
    shown = {span for window in tokenizer.encode(text, max_length=8, stride=2) for span in window.spans}
    assert shown == set(whole.spans)
    assert max(end for _, end in tokenizer.encode_pieces("학교에 \ud800 간다").spans) == 8
    with pytest.raises(ModelError, match="is not in the vocabulary"):
        tokenizer.tokens([10**6])


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_tokenizer_is_loaded(folders, tokenizers, kind, tmp_path):
    tokenizer = tokenizers[kind]
    tokenizer.save(tmp_path / "one")
    again = load_tokenizer(tmp_path / "one")
    assert isinstance(again, TransformersTokenizer)
    assert again.digest == tokenizer.digest
    again.save(tmp_path / "two")
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()
    for text in TEXTS:
        assert again.encode_pieces(text) == tokenizer.encode_pieces(text)
        assert pickle.loads(pickle.dumps(tokenizer)).encode_pieces(text) == tokenizer.encode_pieces(text)
    assert str(tmp_path) not in "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "one").glob("*.json"))
    moved = Path(shutil.copytree(folders[kind], tmp_path / kind))
    assert TransformersTokenizer.of_folder(moved).digest == tokenizer.digest


def test_damaged_folders_are_refused(tokenizers, tmp_path):
    tokenizers["wordpiece"].save(tmp_path)
    with pytest.raises(ModelError, match="is a tokenizer of transformers: use"):
        Tokenizer.load(tmp_path)
    path = tmp_path / "tokenizer.json"
    path.write_bytes(path.read_bytes().replace("학".encode(), "힉".encode(), 1))
    with pytest.raises(ModelError, match="a file was changed since it was saved"):
        load_tokenizer(tmp_path)
    path.unlink()
    with pytest.raises(ModelError, match="cannot be read"):
        load_tokenizer(tmp_path)
    (tmp_path / "korbert_tokenizer.json").write_text('{"kind": "transformers", "format": 9}', encoding="utf-8")
    with pytest.raises(ModelError, match="is not the record of a tokenizer of transformers, format 1"):
        load_tokenizer(tmp_path)


def test_code_of_a_folder_is_never_run(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    settings = {"auto_map": {"AutoTokenizer": ["own.Own", None]}, "tokenizer_class": "Own"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    (tmp_path / "own.py").write_text("raise SystemExit('was run')", encoding="utf-8")
    with pytest.raises(ModelError, match="auto_map: the tokenizer needs code of its folder, which is never run"):
        TransformersTokenizer.of_folder(tmp_path)
    (tmp_path / "config.json").unlink()
    with pytest.raises(ModelError, match="cannot be read"):
        TransformersTokenizer.of_folder(tmp_path)


def test_tokenizers_in_python_have_no_offsets_and_are_refused(tmp_path):
    python_tokenizer(tmp_path).save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "roberta"}', encoding="utf-8")
    with pytest.raises(
        ModelError, match=r"tokenizer_config\.json: its tokenizer \(PhobertTokenizer\) gives no offsets"
    ):
        TransformersTokenizer.of_folder(tmp_path)


def test_other_frames_and_folders_without_a_tokenizer_are_refused(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}', encoding="utf-8")
    with pytest.raises(ModelError, match=r"has no tokenizer \(tokenizer.json, vocab.txt, ..\): put its files there"):
        TransformersTokenizer.of_folder(tmp_path)
    transformers.GPT2Tokenizer(foreign_tokenizer("bytes").get_vocab(), []).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="its tokenizer puts special tokens around texts as in"):
        TransformersTokenizer.of_folder(tmp_path)


def test_a_tokenizer_that_changes_when_it_is_saved_is_refused(folders, monkeypatch):
    def spoilt(folder):
        tokenizer, files = saved_files(folder)
        return tokenizer, files | {
            "tokenizer.json": files["tokenizer.json"].replace("학교에".encode(), "힉교에".encode())
        }

    monkeypatch.setattr("korbert.tokenization.transformers_tokenizer.saved_files", spoilt)
    with pytest.raises(ModelError, match="its tokenizer gives other ids once saved"):
        TransformersTokenizer.of_folder(folders["wordpiece"])
