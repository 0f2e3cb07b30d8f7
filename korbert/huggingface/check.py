"""Whether an exported folder computes what our model does, to rounding. Needs `transformers`."""

import importlib
import importlib.util
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from korbert.errors import ModelError
from korbert.huggingface.layouts import CLASSES
from korbert.modeling.models import ClassificationModel, Model, PretrainingModel
from korbert.tokenization import Tokenizer, pad_batch

__all__ = ["TEXTS", "TOLERANCE", "compare", "their_tokenizer"]

TOLERANCE = 1e-5  # of float32 scores, or of the largest one where that is above 1

_INPUTS = ("input_ids", "attention_mask", "token_type_ids")

TEXTS = (
    "아버지가 방에 들어가신다.",
    "나는 어제 학교에 갔다가 친구를 만났는데, 정말 반가웠어!",
    "대한민국의 수도는 서울이다.\n인구는 약 940만 명이다.",
    "진짜 재밌었음ㅋㅋㅋㅋ 강추 👍🏻 [MASK] 2020년作",
    "ㅋ" * 700 + " 끝",
    "",
)


def compare(model: Model, tokenizer: Tokenizer, folder: Path) -> dict[str, float]:
    """The largest absolute difference of each output between `model` and what `transformers` loads from `folder`.

    ModelError where one is above TOLERANCE, and where the tokenizer of the folder gives other ids.
    """
    _compare_ids(tokenizer, folder)
    theirs = _their_model(model, folder)
    differences: dict[str, float] = {}
    for batch in _batches(model, tokenizer):
        with torch.inference_mode():
            ours, others = _our_outputs(model, batch), _their_outputs(theirs, batch)
        real = batch["attention_mask"].bool()
        for name, expected in ours.items():
            got = others[name]
            if expected.shape[:2] == real.shape:  # padding means nothing
                expected, got = expected[real], got[real]
            difference = float((expected - got).abs().max())
            if difference > TOLERANCE * max(1.0, float(expected.abs().max())):
                raise ModelError(
                    f"{folder}: {name} differs by {difference:.1e} from the model's: report this as a fault"
                )
            differences[name] = max(difference, differences.get(name, 0.0))
    return differences


def _transformers() -> ModuleType:
    try:
        return importlib.import_module("transformers")
    except ImportError:
        raise ModelError("export: the check needs transformers: pip install 'korbert[hf]'") from None


def _their_model(model: Model, folder: Path) -> Any:
    name = CLASSES[model.config.architecture, model.kind]
    with _quiet():
        theirs, report = getattr(_transformers(), name).from_pretrained(folder, output_loading_info=True)
    if wrong := {key: sorted(found) for key, found in report.items() if found}:
        raise ModelError(f"{folder}: {name} does not take all weights: {wrong}: report this as a fault")
    return theirs.eval()


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the bar that `transformers` draws while it loads."""
    logging: Any = importlib.import_module("transformers.utils.logging")
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def their_tokenizer(folder: Path) -> Any:
    """The tokenizer of an exported folder, from its own file, with no copy in the cache of `transformers`."""
    _transformers()
    path = folder / "tokenization_korbert.py"
    spec = importlib.util.spec_from_file_location("tokenization_korbert", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.KorbertTokenizer.from_pretrained(folder)


def _compare_ids(tokenizer: Tokenizer, folder: Path) -> None:
    theirs = their_tokenizer(folder)
    for text in TEXTS:
        expected, got = tokenizer.encode(text).input_ids, theirs(text)["input_ids"]
        if expected != got:
            raise ModelError(
                f"{folder}: the tokenizer cuts {text[:40]!r} into {got}, ours into {expected}: report this"
            )


def _batches(model: Model, tokenizer: Tokenizer) -> list[dict[str, Tensor]]:
    """Texts and pairs in one padded batch; random ids of three lengths."""
    longest = min(model.config.max_position_embeddings, 300)
    encodings = tokenizer.encode_batch([*TEXTS, TEXTS[0]], [None] * len(TEXTS) + [TEXTS[1]], max_length=longest)
    arrays = pad_batch(encodings, tokenizer.pad_id)
    batches = [{key: torch.from_numpy(arrays[key]) for key in _INPUTS}]
    generator = torch.Generator().manual_seed(0)
    for length in sorted({min(8, longest), min(65, longest), longest}):
        ids = torch.randint(tokenizer.vocab_size, (2, length), generator=generator)
        batches.append(dict(zip(_INPUTS, (ids, torch.ones_like(ids), torch.zeros_like(ids)), strict=True)))
    return batches


def _our_outputs(model: Model, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    if isinstance(model, PretrainingModel):
        mlm, nsp = model(**batch)
        return {"mlm_logits": mlm} | ({"nsp_logits": nsp} if model.config.architecture == "bert" else {})
    if isinstance(model, ClassificationModel):
        return {"logits": model(**batch)}
    start, end = model(**batch)
    return {"start_logits": start, "end_logits": end}


def _their_outputs(theirs: Any, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    known = batch if theirs.config.model_type == "bert" else {k: v for k, v in batch.items() if k != "token_type_ids"}
    outputs = theirs(**known)
    names = {"prediction_logits": "mlm_logits", "seq_relationship_logits": "nsp_logits"}
    if theirs.__class__.__name__.endswith("ForMaskedLM"):
        names["logits"] = "mlm_logits"
    return {names.get(key, key): value for key, value in outputs.items()}
