"""Small models of each family, as model folders and as folders of `transformers`."""

import json
import re
from pathlib import Path
from typing import Any

import torch
import transformers

from korbert.huggingface.exporting import export
from korbert.modeling import (
    EmbeddingModel,
    EncoderConfig,
    Network,
    PretrainingModel,
    QuestionAnsweringModel,
    save_model,
)
from korbert.modeling.adapters.onnx_export import TEXTS
from korbert.tokenization import Tokenizer, pad_batch
from tests.korbert.tiny import stirred

TOLERANCE = 1e-5  # of float32 scores; relative to the largest one if that is above 1

OWN = ("boundary_embedding", "overlap_embedding", "piece_weights")
FAMILIES: dict[str, dict[str, Any]] = {
    "bert": {"architecture": "bert"},
    "albert": {"architecture": "bert", "embedding_size": 12, "layer_groups": 1},
    "modernbert": {"architecture": "modern"},
    "korbert-modernbert": {"architecture": "modern", **dict.fromkeys(OWN, True)},
}


def small(tokenizer: Tokenizer, family: str = "bert", **others: Any) -> EncoderConfig:
    sizes = {
        "hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2, "intermediate_size": 24,
        "vocab_size": tokenizer.vocab_size, "max_position_embeddings": 320,
    }  # fmt: skip
    return EncoderConfig.model_validate(sizes | FAMILIES[family] | others)


def saved(folder: Path, model: Network, tokenizer: Tokenizer) -> Path:
    save_model(folder, stirred(model), tokenizer)
    return folder


def exported(folder: Path, model: Network, tokenizer: Tokenizer) -> Path:
    """The export, in `theirs` beside the model folder `ours`."""
    export(saved(folder / "ours", model, tokenizer), folder / "theirs")
    return folder / "theirs"


def tokenizer_of(folder: Path, **options: Any) -> Any:
    return transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=True, **options)


def differences(model: Any, tokenizer: Tokenizer, folder: Path) -> dict[str, float]:
    """The largest difference of each output between a model and its export, none above TOLERANCE.

    The export is loaded as users do; it has to take all weights, and its tokenizer to give the same columns.
    """
    reads = tokenizer_of(folder)
    for text, pair in [*((text, None) for text in TEXTS), TEXTS[:2]]:
        ours = tokenizer.encode(text, pair, special_tokens=isinstance(model, PretrainingModel))
        others = reads(text, pair)
        assert {name: getattr(ours, name) for name in others} == dict(others)
    (kind,) = json.loads((folder / "config.json").read_text(encoding="utf-8"))["architectures"]
    head = re.search(r"For\w+", kind)
    auto = getattr(transformers, f"AutoModel{head.group() if head else ''}")
    theirs, report = auto.from_pretrained(folder, trust_remote_code=True, output_loading_info=True)
    assert not any(report.values()), report
    theirs.eval()

    longest, pairs = min(model.config.max_position_embeddings, 300), [*[None] * len(TEXTS), TEXTS[1]]
    rows = pad_batch(tokenizer.encode_batch([*TEXTS, TEXTS[0]], pairs, max_length=longest), tokenizer.pad_id)
    columns = ("input_ids", "attention_mask", "token_type_ids", "boundaries")
    batch = {name: torch.from_numpy(rows[name]) for name in columns}
    known = {name: column for name, column in batch.items() if name in reads.model_input_names}
    if kind.endswith("ForMultipleChoice"):  # (B, choices, T): one choice each
        known = {name: column[:, None] for name, column in known.items()}
    names = {"prediction_logits": "mlm_logits", "seq_relationship_logits": "nsp_logits", "sop_logits": "nsp_logits"}
    names |= {"logits": "mlm_logits"} if kind.endswith("ForMaskedLM") else {}
    with torch.inference_mode():
        others = {names.get(key, key): value for key, value in theirs(**known).items()}
        outputs = model.encoder(**batch) if isinstance(model, EmbeddingModel) else model(**batch)
    if isinstance(model, PretrainingModel):  # some classes lack the second head
        own = dict(zip(["mlm_logits"] + ["nsp_logits"] * ("nsp_logits" in others), outputs, strict=False))
    elif isinstance(model, QuestionAnsweringModel):
        own = dict(zip(("start_logits", "end_logits"), outputs, strict=True))
    else:
        own = {"last_hidden_state" if isinstance(model, EmbeddingModel) else "logits": outputs}
    real, found = batch["attention_mask"].bool(), {}
    for name, expected in own.items():
        got = others[name]
        if expected.shape[:2] == real.shape:  # one output per piece: padding does not count
            expected, got = expected[real], got[real]
        found[name] = float((expected - got).abs().max())
        assert found[name] <= TOLERANCE * max(1.0, float(expected.abs().max())), name
    return found


def compared(folder: Path, model: Network, tokenizer: Tokenizer) -> dict[str, float]:
    """The differences of a new export, in `theirs` beside the model folder `ours`."""
    return differences(model, tokenizer, exported(folder, model, tokenizer))
