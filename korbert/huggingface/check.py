"""Compares an exported folder, loaded the way users load it, with our model. Needs `transformers`."""

import importlib
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from korbert._transformers import quietly
from korbert.errors import ModelError
from korbert.extras import package
from korbert.modeling.models import EmbeddingModel, Model, PretrainingModel, QuestionAnsweringModel
from korbert.modeling.onnx_export import TEXTS
from korbert.tokenization import Tokenizer, pad_batch

TOLERANCE = 1e-5  # of float32 scores; relative to the largest one if that is above 1

_INPUTS = ("input_ids", "attention_mask", "token_type_ids", "boundaries")


def compare(model: Model, tokenizer: Tokenizer, folder: Path) -> dict[str, float]:
    """The largest absolute difference of each output between `model` and the exported `folder`.

    Uses the Auto classes. ModelError for a difference above TOLERANCE, and if the tokenizer of the folder gives other
    columns.
    """
    with _remote_code_in(folder.parent), quietly():
        library = package("transformers", "export: the check")
        reads = library.AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
        for text, pair in [*((text, None) for text in TEXTS), TEXTS[:2]]:
            ours = tokenizer.encode(text, pair, special_tokens=isinstance(model, PretrainingModel))
            others = reads(text, pair)
            if any(getattr(ours, name) != column for name, column in others.items()):
                raise ModelError(
                    f"export: its tokenizer encodes {text[:40]!r} as {others['input_ids']}, ours as {ours.input_ids}:"
                    " report this"
                )
        # The exported model, by the Auto class of its head.
        (kind,) = json.loads((folder / "config.json").read_text(encoding="utf-8"))["architectures"]
        head = re.search(r"For\w+", kind)
        auto = getattr(library, f"AutoModel{head.group() if head else ''}")
        theirs, report = auto.from_pretrained(folder, trust_remote_code=True, output_loading_info=True)
        if wrong := {key: sorted(keys) for key, keys in report.items() if keys}:
            raise ModelError(f"export: {kind} does not take all weights: {wrong}: report this as a fault")
        theirs.eval()
        longest = min(model.config.max_position_embeddings, 300)
        pairs = [*[None] * len(TEXTS), TEXTS[1]]
        rows = pad_batch(tokenizer.encode_batch([*TEXTS, TEXTS[0]], pairs, max_length=longest), tokenizer.pad_id)
        batch = {name: torch.from_numpy(rows[name]) for name in _INPUTS}
        return _output_differences(model, theirs, batch, reads.model_input_names)


def _output_differences(
    model: Model, theirs: Any, batch: Mapping[str, Tensor], inputs: Sequence[str]
) -> dict[str, float]:
    """The difference of each output. inputs: that their model takes."""
    head, known = type(theirs).__name__, {name: column for name, column in batch.items() if name in inputs}
    names = {"prediction_logits": "mlm_logits", "seq_relationship_logits": "nsp_logits", "sop_logits": "nsp_logits"}
    if head.endswith("ForMultipleChoice"):  # (B, choices, T): one choice each
        known = {name: column[:, None] for name, column in known.items()}
    if head.endswith("ForMaskedLM"):
        names["logits"] = "mlm_logits"
    with torch.inference_mode():
        others = {names.get(key, key): value for key, value in theirs(**known).items()}
        outputs = model.encoder(**batch) if isinstance(model, EmbeddingModel) else model(**batch)
    if isinstance(model, PretrainingModel):  # some classes lack the second head
        ours = dict(zip(["mlm_logits"] + ["nsp_logits"] * ("nsp_logits" in others), outputs, strict=False))
    elif isinstance(model, QuestionAnsweringModel):
        ours = dict(zip(("start_logits", "end_logits"), outputs, strict=True))
    else:
        ours = {"last_hidden_state" if isinstance(model, EmbeddingModel) else "logits": outputs}
    real, differences = batch["attention_mask"].bool(), {}
    for name, expected in ours.items():
        got = others[name]
        if expected.shape[:2] == real.shape:  # one output per piece: padding does not count
            expected, got = expected[real], got[real]
        differences[name] = difference = float((expected - got).abs().max())
        if not difference <= TOLERANCE * max(1.0, float(expected.abs().max())):  # refuses NaN, too
            raise ModelError(f"export: {name} differs by {difference:.1e} from the model's: report this as a fault")
    return differences


@contextmanager
def _remote_code_in(cache: Path) -> Iterator[None]:
    """Code that `transformers` copies goes to `cache`, and is removed from sys.modules afterwards."""
    modules: Any = importlib.import_module("transformers.dynamic_module_utils")
    usual, path = modules.HF_MODULES_CACHE, list(sys.path)
    modules.HF_MODULES_CACHE = str(cache / "modules")
    loaded = _take_remote_code()
    try:
        yield
    finally:
        _take_remote_code()
        sys.modules.update(loaded)
        modules.HF_MODULES_CACHE, sys.path[:] = usual, path


def _take_remote_code() -> dict[str, ModuleType]:
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith("transformers_modules")}
