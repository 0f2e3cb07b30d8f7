"""The tokenizer of an exported folder in the hands of `transformers`; test_three_ways.py holds its ids to ours."""

import ast
import pickle
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from korbert.huggingface.exporting import export
from korbert.modeling.config import EncoderConfig
from korbert.modeling.models import ReadingModel
from korbert.modeling.storage import save_model
from korbert.tokenization import AnalyzerOptions, Tokenizer, VocabularySettings, learn, marked

TEXTS = [
    "아버지가 방에 들어가신다.",
    "어제 학교에 갔다가 친구를 만났는데, 정말 반가웠어!",
    "첫 줄이다.\n\n둘째 줄:\r\n셋째 줄\t끝",
    unicodedata.normalize("NFD", "한글 자모가 풀려 있다. Déjà vu"),
    "학\u200b교에 \u200d가\ufeff다",
    "가족 👨‍👩‍👧‍👦 국기 🇰🇷 엄지 👍🏻 끝",
    "大韓民國 漢字 𠀀 ｆｕｌｌ ½ ＡＢＣ",
    "ㅋㅋㅋㅋ ㅠㅠ ᄒᆞᆫ글 " + "ㅎ" * 1200,
    "밑줄▁친▁말과 ▁ 표",
    "https://example.com/한글?q=1 abc@example.com #태그 @사람",
    "깨진 \ud83d 글자 \x00 \x7f",
    "[MASK] 는 글자다 [SEP] [RESERVED3] <0x41> <unk>",
    "",
    "  \n ",
]


def exported(folder: Path, tokenizer: Tokenizer, architecture: str = "bert") -> Path:
    config = EncoderConfig.model_validate(
        {
            "architecture": architecture,
            "vocab_size": tokenizer.vocab_size,
            "hidden_size": 8,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "intermediate_size": 8,
            "max_position_embeddings": 64,
        }
    )
    save_model(folder / "ours", ReadingModel(config), tokenizer)
    export(folder / "ours", folder / "theirs")
    return folder / "theirs"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, tiny_tokenizer: Tokenizer) -> Path:
    return exported(tmp_path_factory.mktemp("export"), tiny_tokenizer)


@pytest.fixture(scope="module")
def theirs(folder: Path) -> Any:
    return transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=True)


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_ids_are_ours(tiny_tokenizer: Tokenizer, theirs: Any, text: str) -> None:
    ours = tiny_tokenizer.encode(text)
    got = theirs(text, return_special_tokens_mask=True)
    assert got["input_ids"] == ours.input_ids
    assert got["special_tokens_mask"] == ours.special_tokens_mask
    assert got["attention_mask"] == ours.attention_mask


def test_ids_are_ours_where_kiwi_sees_through_mistakes(tmp_path: Path, tiny_tokenizer: Tokenizer) -> None:
    chosen = VocabularySettings(size=900)
    counts = [
        (text, 20)
        for text in ("이렇", "게", "왜", "안", "되", "ᆫ대", "스파게티", "가", "맛있", "다", "좋", "었", "어요")
    ]
    counts += [(f"가나{number:03}", 10) for number in range(400)]
    options = AnalyzerOptions(typos="basic", space_tolerance=1)
    ours = Tokenizer(learn(counts, chosen), chosen, options, tiny_tokenizer.versions)
    theirs = transformers.AutoTokenizer.from_pretrained(exported(tmp_path, ours), trust_remote_code=True)
    for text in (*TEXTS, "이렇게 외않됀대?", "스파게티 가 맛 있다", "정말 좋앗어요"):
        assert theirs(text)["input_ids"] == ours.encode(text).input_ids
    assert "맛있" in ours.encode("스파게티 가 맛 있다").pieces


@pytest.mark.parametrize("max_length", [64, 30, 21, 20, 9, 8])
def test_pairs_are_ours(tiny_tokenizer: Tokenizer, theirs: Any, max_length: int) -> None:
    for first, second in [(TEXTS[0], TEXTS[1]), (TEXTS[1], TEXTS[0]), (TEXTS[1], TEXTS[1]), (TEXTS[0], "")]:
        ours = tiny_tokenizer.encode(first, second, max_length=max_length)
        got = theirs(first, second, truncation=True, max_length=max_length, return_special_tokens_mask=True)
        assert got["input_ids"] == ours.input_ids
        assert got["token_type_ids"] == ours.token_type_ids
        assert got["special_tokens_mask"] == ours.special_tokens_mask


def test_batches_are_padded(tiny_tokenizer: Tokenizer, theirs: Any) -> None:
    batch = theirs(TEXTS[:3], padding=True, return_tensors="pt")
    lengths = [len(tiny_tokenizer.encode(text)) for text in TEXTS[:3]]
    assert batch["input_ids"].shape == (3, max(lengths))
    assert batch["attention_mask"].sum(dim=1).tolist() == lengths
    assert torch.equal(batch["input_ids"] == 0, batch["attention_mask"] == 0)


@pytest.mark.parametrize(
    "text",
    [
        "오늘 [MASK] 정말 좋다",
        "[MASK]은 수도다.[MASK]",
        "[CLS] 끝 [SEP][PAD]",
        "https://example.com/[MASK]/가 나는 [MASK]이다",
        "https://a.com/[MASK][SEP]" * 1_000,
    ],
)
def test_special_tokens_in_text_where_asked_for(tiny_tokenizer: Tokenizer, theirs: Any, text: str) -> None:
    got = theirs(text, split_special_tokens=False)["input_ids"]
    assert got == tiny_tokenizer.encode(text, special_tokens=True).input_ids
    assert tiny_tokenizer.mask_id not in theirs(text)["input_ids"]


def test_special_tokens_in_all_texts_where_asked_for(tiny_tokenizer: Tokenizer, folder: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=True, split_special_tokens=False)
    assert tiny_tokenizer.mask_id in tokenizer("오늘 [MASK] 좋다")["input_ids"]


def test_special_tokens_within_a_morpheme(tiny_tokenizer: Tokenizer, theirs: Any) -> None:
    got = theirs("https://example.com/[MASK]/가", split_special_tokens=False)["input_ids"]
    assert got.count(tiny_tokenizer.mask_id) == 1
    assert len(got) > 8


def test_special_tokens_have_their_ids(tiny_tokenizer: Tokenizer, theirs: Any) -> None:
    assert [theirs.pad_token_id, theirs.unk_token_id, theirs.cls_token_id, theirs.sep_token_id] == [0, 1, 2, 3]
    assert theirs.mask_token_id == tiny_tokenizer.mask_id
    assert len(theirs) == theirs.vocab_size == len(theirs.get_vocab()) == tiny_tokenizer.vocab_size
    assert theirs.convert_ids_to_tokens(list(range(len(theirs)))) == tiny_tokenizer.tokens(range(len(theirs)))
    assert theirs.model_max_length == 64


def test_decoding(theirs: Any) -> None:
    ids = theirs("학교에 간다 👍🏻")["input_ids"]
    assert theirs.decode(ids) == "[CLS] 학교에간다👍🏻 [SEP]"
    assert theirs.decode(ids, skip_special_tokens=True) == "학교에간다👍🏻"


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_offsets_are_ours(tiny_tokenizer: Tokenizer, theirs: Any, text: str) -> None:
    ours = tiny_tokenizer.encode(text)
    got = theirs(text, return_offsets_mapping=True)
    assert got["offset_mapping"] == ours.spans
    pair, both = tiny_tokenizer.encode("질문은?", text), theirs("질문은?", text, return_offsets_mapping=True)
    assert both["offset_mapping"] == pair.spans
    assert both["token_type_ids"] == pair.token_type_ids
    inner = [
        segment for segment, special in zip(both.sequence_ids(), pair.special_tokens_mask, strict=True) if not special
    ]
    kinds = [kind for kind, special in zip(pair.token_type_ids, pair.special_tokens_mask, strict=True) if not special]
    assert inner == kinds


def test_offsets_are_padded_with_their_row(theirs: Any) -> None:
    batch = theirs(TEXTS[:2], padding=True, return_offsets_mapping=True, return_tensors="pt")
    assert batch["offset_mapping"].shape == (*batch["input_ids"].shape, 2)
    assert batch["offset_mapping"][batch["attention_mask"] == 0].sum() == 0
    left = theirs(TEXTS[:2], padding=True, padding_side="left", return_offsets_mapping=True)
    assert left["offset_mapping"][0][:2] == [(0, 0), (0, 0)]
    assert left.sequence_ids(0)[:2] == [None, None]


@pytest.mark.parametrize(("max_length", "stride"), [(64, 8), (16, 4), (12, 0)])
def test_windows_are_ours(tiny_tokenizer: Tokenizer, theirs: Any, max_length: int, stride: int) -> None:
    contexts = [" ".join(TEXTS[:2] * 3), TEXTS[0]]
    got = theirs(
        ["언제?"] * 2,
        contexts,
        truncation="only_second",
        max_length=max_length,
        stride=stride,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
        padding="max_length",
    )
    ours = [tiny_tokenizer.encode("언제?", text, max_length=max_length, stride=stride) for text in contexts]
    assert got["overflow_to_sample_mapping"] == [0] * len(ours[0]) + [1] * len(ours[1])
    for row, window in enumerate([*ours[0], *ours[1]]):
        assert got["input_ids"][row][: len(window)] == window.input_ids
        assert got["offset_mapping"][row][: len(window)] == window.spans
        assert len(got["input_ids"][row]) == max_length


def test_windows_of_one_text(tiny_tokenizer: Tokenizer, theirs: Any) -> None:
    got = theirs(TEXTS[1], truncation=True, max_length=9, stride=2, return_overflowing_tokens=True)
    ours = tiny_tokenizer.encode(TEXTS[1], max_length=9, stride=2)
    assert got["input_ids"] == [window.input_ids for window in ours]
    with pytest.raises(ValueError, match=r"leaves 7 pieces for a window, which is no more than stride 7"):
        theirs(TEXTS[1], truncation=True, max_length=9, stride=7, return_overflowing_tokens=True)
    with pytest.raises(ValueError, match="only_first"):
        theirs(TEXTS[1], TEXTS[1], truncation=True, max_length=9, stride=2, return_overflowing_tokens=True)


@pytest.mark.parametrize("strategy", ["only_first", "only_second", "longest_first"])
@pytest.mark.parametrize("side", ["right", "left"])
def test_every_way_to_truncate(tiny_tokenizer: Tokenizer, theirs: Any, strategy: str, side: str) -> None:
    first, second = (tiny_tokenizer.encode_pieces(text).ids for text in (TEXTS[1], TEXTS[2]))
    theirs.truncation_side = side
    try:
        got = theirs(TEXTS[1], TEXTS[2], truncation=strategy, max_length=28)["input_ids"]
    finally:
        theirs.truncation_side = "right"
    assert len(got) == 28
    end = got.index(theirs.sep_token_id)
    kept = {"first": got[1:end], "second": got[end + 1 : -1]}
    for name, whole in (("first", first), ("second", second)):
        part = kept[name]
        assert part == (whole[: len(part)] if side == "right" else whole[len(whole) - len(part) :])
    if strategy != "longest_first":
        whole = {"only_first": "second", "only_second": "first"}[strategy]
        assert kept[whole] == {"first": first, "second": second}[whole]


def test_what_cannot_be_cut_so_short_is_refused(theirs: Any) -> None:
    with pytest.raises(ValueError, match=r"max_length 9: only_second can take 1 pieces away, not \d+"):
        theirs(TEXTS[1], "글", truncation="only_second", max_length=9)


def test_places_are_found_both_ways(theirs: Any) -> None:
    text = "이걸 학교에서 했다"
    got = theirs(text, return_offsets_mapping=True)
    place = got.char_to_token(text.index("학"))
    assert got.token_to_chars(place).start == text.index("학")
    assert got.word_ids()[place] == got.char_to_word(text.index("학")) == got.token_to_word(place) == 1
    assert got.word_to_chars(1) == (3, 7)
    span = got.word_to_tokens(1)
    assert span.start == place
    assert got.tokens()[span.start : span.end] == [
        t for t, w in zip(got.tokens(), got.word_ids(), strict=True) if w == 1
    ]
    assert got.char_to_token(2) is None  # a space
    assert got.token_to_chars(0) is None
    assert got.token_to_sequence(place) == 0


def test_words_and_ids_go_without_offsets(theirs: Any) -> None:
    assert theirs(["학교", "에"], is_split_into_words=True)["input_ids"][0] == theirs.cls_token_id
    assert theirs([400, 401])["input_ids"] == [theirs.cls_token_id, 400, 401, theirs.sep_token_id]
    with pytest.raises(NotImplementedError, match="return_offsets_mapping needs texts"):
        theirs(["학교", "에"], is_split_into_words=True, return_offsets_mapping=True)


def test_without_special_tokens(tiny_tokenizer: Tokenizer, theirs: Any) -> None:
    got = theirs("학교에 간다", add_special_tokens=False, return_special_tokens_mask=True, return_length=True)
    assert got["input_ids"] == tiny_tokenizer.encode_pieces("학교에 간다").ids
    assert set(got["special_tokens_mask"]) == {0}
    assert got["length"] == len(got["input_ids"])
    assert theirs("", add_special_tokens=False)["input_ids"] == []


def test_saved_and_loaded_again(tiny_tokenizer: Tokenizer, theirs: Any, tmp_path: Path) -> None:
    theirs.save_pretrained(tmp_path)
    again = transformers.AutoTokenizer.from_pretrained(tmp_path, trust_remote_code=True)
    assert Tokenizer.load(tmp_path).digest == tiny_tokenizer.digest
    for text in TEXTS[:4]:
        assert again(text)["input_ids"] == theirs(text)["input_ids"]
    assert again.model_max_length == 64
    assert again.split_special_tokens


def test_pickled_and_back(theirs: Any) -> None:
    assert pickle.loads(pickle.dumps(theirs))(TEXTS[1])["input_ids"] == theirs(TEXTS[1])["input_ids"]


def test_modern_has_no_token_types(tiny_tokenizer: Tokenizer, tmp_path: Path) -> None:
    folder = exported(tmp_path, tiny_tokenizer, "modern")
    theirs = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    batch = theirs("질문", "본문", return_tensors="pt")
    assert set(batch) == {"input_ids", "attention_mask"}
    transformers.AutoModel.from_pretrained(folder)(**batch)


@pytest.mark.parametrize("mark", ["eojeol", "morpheme"])
def test_marks_and_whole_words(tiny_tokenizer: Tokenizer, tmp_path: Path, mark: Any) -> None:
    options = VocabularySettings(size=425, mark=mark, words=("학교", "아버지"), character_coverage=1.0)
    forms = {"학교들": 30, "친구": 9, "들어가": 5, "에": 9, "를": 4} | dict.fromkeys("가나다라마바사아자하는은을이", 1)
    counts = [(marked(form, initial, mark), count) for form, count in forms.items() for initial in (True, False)]
    ours = Tokenizer(learn(counts, options), options, tiny_tokenizer.analyzer_options, tiny_tokenizer.versions)
    folder = exported(tmp_path, ours)
    theirs = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    assert len(theirs) == len(theirs.get_vocab()) == ours.vocab_size
    for text in TEXTS:
        assert theirs(text)["input_ids"] == ours.encode(text).input_ids, text


def test_another_kiwi_is_refused(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in folder.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    record = copy / "korbert_tokenizer.json"
    text = record.read_text(encoding="utf-8").replace('"kiwipiepy": "', '"kiwipiepy": "9')
    record.write_text(text, encoding="utf-8")
    with pytest.raises(ImportError, match=r"counted with kiwipiepy 9.*, installed is .*pip install kiwipiepy==9"):
        transformers.AutoTokenizer.from_pretrained(copy, trust_remote_code=True)


def test_the_file_stands_alone(tiny_tokenizer: Tokenizer, folder: Path) -> None:
    """No korbert, and nothing else that a user of transformers, kiwipiepy and sentencepiece does not have."""
    tree = ast.parse((folder / "tokenization_korbert.py").read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    roots = {name.split(".")[0] for name in names}
    assert roots <= sys.stdlib_module_names | {"transformers", "kiwipiepy", "sentencepiece"}
    targets = [node.targets[0] for node in tree.body if isinstance(node, ast.Assign)]
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    defined += [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
    repeated = {name for name in defined if defined.count(name) > 1}
    assert repeated == {"__all__"}  # the modules that stand in it take no name from each other
    code = (
        "import sys; sys.modules['korbert'] = None\n"
        "import transformers\n"
        f"transformers.dynamic_module_utils.HF_MODULES_CACHE = {str(folder.parent / 'cache')!r}\n"
        f"sys.path.append({str(folder.parent / 'cache')!r})\n"
        f"tokenizer = transformers.AutoTokenizer.from_pretrained({str(folder)!r}, trust_remote_code=True)\n"
        "print(tokenizer.vocab_size)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == str(tiny_tokenizer.vocab_size)
