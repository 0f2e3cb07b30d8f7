"""The files that make a folder of `transformers` a model of sentence-transformers."""

import json
from collections.abc import Mapping
from pathlib import Path

import torch.nn.functional as F
from torch import Tensor

from korbert.modeling.heads import mean_of_pieces
from korbert.modeling.models import EmbeddingModel

_POOLING = "1_Pooling/config.json"
FILES = ("modules.json", "sentence_bert_config.json", "config_sentence_transformers.json", _POOLING)


def sentence_files(model: EmbeddingModel, max_length: int, prompts: Mapping[str, str]) -> Mapping[str, object]:
    """Path in the folder -> its JSON. The modules are encoder, pooling and, if the model normalizes, normalization.

    max_length: pieces of a text, special tokens included. prompts: "query" and "document" -> what stands before them.
    """
    steps = [("", "Transformer"), ("1_Pooling", "Pooling")] + [("2_Normalize", "Normalize")] * model.normalize
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{name}"}
        for number, (path, name) in enumerate(steps)
    ]
    pooling = {
        "word_embedding_dimension": model.config.hidden_size,
        "pooling_mode_cls_token": model.pooling == "first",
        "pooling_mode_mean_tokens": model.pooling == "mean",
        "pooling_mode_max_tokens": False,
        "pooling_mode_mean_sqrt_len_tokens": False,
    }
    bert = {"max_seq_length": max_length, "do_lower_case": False}
    more = {"similarity_fn_name": "cosine", **({"prompts": prompts} if any(prompts.values()) else {})}
    return dict(zip(FILES, (modules, bert, more, pooling), strict=True))


def pooled(folder: Path, hidden: Tensor, attention_mask: Tensor) -> Tensor:
    """Pools as these files prescribe: pieces (B, T, D), mask (B, T) -> (B, D)."""
    pooling = json.loads((folder / _POOLING).read_text(encoding="utf-8"))
    vectors = hidden[:, 0] if pooling["pooling_mode_cls_token"] else mean_of_pieces(hidden, attention_mask)
    modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    return F.normalize(vectors, dim=-1) if len(modules) == 3 else vectors
