"""Folders as `transformers` writes them: small random models of each architecture, with tokenizers of their kinds."""

import json
from pathlib import Path
from typing import Any

LINES = (
    "나는 어제 학교에 갔다가 친구를 만났는데, 정말 반가웠어!",
    "대한민국의 수도는 서울이다. 인구는 약 940만 명이다.",
    "학교에 간다. 친구를 만난다. 서울에 간다.",
    "아버지가 방에 들어가신다. Café 2020년",
)
TOKENIZERS = {  # of each architecture; those of XLM and FlauBERT are in Python alone, so theirs is BERT's
    "albert": "albert", "bert": "wordpiece", "convbert": "wordpiece", "deberta-v2": "deberta",
    "distilbert": "wordpiece", "electra": "wordpiece", "flaubert": "wordpiece", "funnel": "funnel",
    "longformer": "bytes", "modernbert": "plain bytes", "roberta": "bytes", "xlm": "wordpiece",
    "xlm-roberta": "unigram",
}  # fmt: skip
_SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
_XLM = {"emb_dim": 16, "n_layers": 2, "n_heads": 2, "max_position_embeddings": 64}
CONFIGS: dict[str, dict[str, Any]] = {
    "albert": {**_SIZES, "embedding_size": 8, "max_position_embeddings": 64},
    "bert": {**_SIZES, "max_position_embeddings": 64},
    "convbert": {**_SIZES, "embedding_size": 8, "max_position_embeddings": 64},
    "deberta-v2": {
        **_SIZES, "max_position_embeddings": 64, "relative_attention": True, "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False, "type_vocab_size": 0,
    },
    "distilbert": {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32, "max_position_embeddings": 64},
    "electra": {**_SIZES, "embedding_size": 8, "max_position_embeddings": 64},
    "flaubert": _XLM,
    "funnel": {"d_model": 16, "block_sizes": [1, 1], "n_head": 2, "d_head": 8, "d_inner": 32, "num_decoder_layers": 1},
    "longformer": {**_SIZES, "max_position_embeddings": 66, "attention_window": 8, "type_vocab_size": 1},
    "modernbert": {**_SIZES, "num_hidden_layers": 3, "max_position_embeddings": 64, "local_attention": 8},
    "roberta": {**_SIZES, "max_position_embeddings": 66, "type_vocab_size": 1},
    "xlm": _XLM,
    "xlm-roberta": {**_SIZES, "max_position_embeddings": 66, "type_vocab_size": 1},
}  # fmt: skip


_BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def foreign_tokenizer(kind: str) -> Any:
    """A tokenizer of `transformers`, learned from LINES: fast ones, in Rust."""
    if kind in ("wordpiece", "funnel", "jamo"):
        return _of_words(kind)
    return _of_bytes(kind) if kind in ("bytes", "plain bytes") else _unigram(kind)


def _of_words(kind: str) -> Any:
    import transformers
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    special = ["<pad>", "<unk>", "<cls>", "<sep>", "<mask>", "<s>", "</s>"] if kind == "funnel" else _BERT
    lower = kind == "jamo"
    learned = Tokenizer(models.WordPiece(unk_token=special[1]))
    learned.normalizer = normalizers.BertNormalizer(lowercase=lower, strip_accents=lower)
    learned.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    learned.train_from_iterator(LINES, trainers.WordPieceTrainer(vocab_size=300, special_tokens=special))
    made = transformers.FunnelTokenizer if kind == "funnel" else transformers.BertTokenizer
    return made(learned.get_vocab(), do_lower_case=lower, strip_accents=lower)


def _of_bytes(kind: str) -> Any:
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    learned = Tokenizer(models.BPE())
    learned.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=alphabet)
    learned.train_from_iterator(LINES, trainer)
    model = json.loads(learned.to_str())["model"]
    roberta = transformers.RobertaTokenizer(model["vocab"], [tuple(pair) for pair in model["merges"]])
    if kind == "bytes":
        return roberta
    names = ("unk_token", "cls_token", "sep_token", "pad_token", "mask_token")
    named = {name: getattr(roberta, name) for name in names}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=roberta.backend_tokenizer, **named)


def _unigram(kind: str) -> Any:
    import transformers
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    special = {"unigram": ["<s>", "<pad>", "</s>", "<unk>"], "deberta": _BERT}.get(kind, ["<pad>", "<unk>", *_BERT[2:]])
    unknown = special[3] if kind == "unigram" else special[1]
    learned = Tokenizer(models.Unigram())
    learned.pre_tokenizer = pre_tokenizers.Metaspace()
    if kind == "albert":
        learned.normalizer = normalizers.NFKD()
    trainer = trainers.UnigramTrainer(vocab_size=200, special_tokens=special, unk_token=unknown)
    learned.train_from_iterator(LINES, trainer)
    pieces = [tuple(entry) for entry in json.loads(learned.to_str())["model"]["vocab"]]
    if kind == "unigram":
        return transformers.XLMRobertaTokenizer([*pieces, ("<mask>", 0.0)])
    return transformers.AlbertTokenizer(pieces) if kind == "albert" else transformers.DebertaV2Tokenizer(pieces)


def python_tokenizer(folder: Path) -> Any:
    """A tokenizer of `transformers` in Python, without offsets."""
    import transformers

    (folder / "vocab.txt").write_text("학교 1\n", encoding="utf-8")
    (folder / "bpe.codes").write_text("학 교</w> 1\n", encoding="utf-8")
    return transformers.PhobertTokenizer(str(folder / "vocab.txt"), str(folder / "bpe.codes"))
