"""Compares an exported folder, loaded the way users load it, with our model. Needs `transformers`."""

import importlib
import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from korbert._transformers import quietly, transformers
from korbert.errors import ModelError
from korbert.huggingface.sentence_transformers import pooled
from korbert.modeling.config import BOUNDARY_LEVELS
from korbert.modeling.models import (
    ClassificationModel,
    EmbeddingModel,
    Model,
    PretrainingModel,
    QuestionAnsweringModel,
    TokenClassificationModel,
)
from korbert.tokenization import Tokenizer, pad_batch
from korbert.tokenization.vocabulary import FIRST_PIECE

TOLERANCE = 1e-5  # of float32 scores; relative to the largest one if that is above 1

_INPUTS = ("input_ids", "attention_mask", "token_type_ids", "boundaries")

TEXTS = (
    "아버지가 방에 들어가신다.",
    "나는 어제 학교에 갔다가 친구를 만났는데, 정말 반가웠어!",
    "대한민국의 수도는 서울이다.\n인구는 약 940만 명이다.",
    "진짜 재밌었음ㅋㅋㅋㅋ 강추 👍🏻 [MASK] 2020년作",
    "ㅋ" * 700 + " 끝",
    "",
)


def compare(model: Model, tokenizer: Tokenizer, folder: Path) -> dict[str, float]:
    """The largest absolute difference of each output between `model` and the exported `folder`.

    Uses the Auto classes and, if there is one, the pipeline for this kind of model. ModelError for a difference above
    TOLERANCE, and if the tokenizer of the folder gives other columns.
    """
    with _remote_code_in(folder.parent), quietly():
        package = transformers("export: the check")
        reads = package.AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
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
        head = re.search(r"For\w+?(?=Simple$|$)", kind)
        auto = getattr(package, f"AutoModel{head.group() if head else ''}")
        theirs, report = auto.from_pretrained(folder, trust_remote_code=True, output_loading_info=True)
        if wrong := {key: sorted(keys) for key, keys in report.items() if keys}:
            raise ModelError(f"export: {kind} does not take all weights: {wrong}: report this as a fault")
        theirs.eval()
        differences: dict[str, float] = {}
        for batch in _batches(model, tokenizer):
            for name, difference in _output_differences(model, theirs, batch, reads.model_input_names):
                differences[name] = max(difference, differences.get(name, 0.0))
        if isinstance(model, EmbeddingModel):
            rows = reads(list(TEXTS), padding=True, truncation=True, max_length=32, return_tensors="pt")
            with torch.inference_mode():
                expected = model(**_rows(tokenizer, list(TEXTS), [None] * len(TEXTS), 32))
                got = pooled(folder, theirs(**rows).last_hidden_state, rows["attention_mask"])
            _difference("the vector of a text", expected, got)
        elif check := _CHECKS.get(model.pipeline):
            pipeline = package.pipeline(model.pipeline, model=str(folder), trust_remote_code=True, device="cpu")
            check(model, tokenizer, pipeline)
    return differences


def _batches(model: Model, tokenizer: Tokenizer) -> Iterator[dict[str, Tensor]]:
    """Texts and pairs in one padded batch; random ids of three lengths."""
    longest = min(model.config.max_position_embeddings, 300)
    yield _rows(tokenizer, [*TEXTS, TEXTS[0]], [None] * len(TEXTS) + [TEXTS[1]], longest)
    generator = torch.Generator().manual_seed(0)
    for length in sorted({min(8, longest), min(65, longest), longest}):
        ids = torch.randint(tokenizer.vocab_size, (2, length), generator=generator)
        half = length // 2
        ids[:, half:] = ids[:, : length - half].flip(1)  # in both segments
        segments = (torch.arange(length) >= half).long().expand(2, length)
        levels = torch.randint(BOUNDARY_LEVELS, (2, length), generator=generator)
        columns = ids, torch.ones_like(ids), segments, levels
        yield dict(zip(_INPUTS, columns, strict=True))


def _output_differences(
    model: Model, theirs: Any, batch: Mapping[str, Tensor], inputs: Sequence[str]
) -> Iterator[tuple[str, float]]:
    """(name, difference) of each output. inputs: that their model takes."""
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
    real = batch["attention_mask"].bool()
    for name, expected in ours.items():
        got = others[name]
        if expected.shape[:2] == real.shape:  # one output per piece: padding does not count
            expected, got = expected[real], got[real]
        yield name, _difference(name, expected, got)


def _difference(name: str, expected: Tensor, got: Tensor) -> float:
    difference = float((expected - got).abs().max())
    if not difference <= TOLERANCE * max(1.0, float(expected.abs().max())):  # refuses NaN, too
        raise ModelError(f"export: {name} differs by {difference:.1e} from the model's: report this as a fault")
    return difference


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


def _check_filler(model: PretrainingModel, tokenizer: Tokenizer, pipeline: Any) -> None:
    """Our candidates have the probabilities of the fill-mask pipeline."""
    from korbert.model import Model

    text, top = "오늘 [MASK] 정말 좋다.", 5
    (ours,) = Model(model, tokenizer).fill(text, top=top)
    candidates = pipeline(text, top_k=FIRST_PIECE + top)  # special tokens and bytes, too
    scores = {candidate["token"]: candidate["score"] for candidate in candidates}
    got = torch.tensor([scores.get(candidate.id, math.nan) for candidate in ours])
    _difference("the fill-mask pipeline", torch.tensor([candidate.probability for candidate in ours]), got)


def _check_classifier(model: ClassificationModel, tokenizer: Tokenizer, pipeline: Any) -> None:
    """A text and a pair have the numbers of the text-classification pipeline."""
    for text, pair in (("정말 재미있는 영화였다.", None), ("정말 재미있는 영화였다.", "다시 보고 싶다.")):
        with torch.inference_mode():
            logits = model(**_rows(tokenizer, [text], [pair]))[0]
        expected = {
            "single_label_classification": logits.softmax(dim=0),
            "multi_label_classification": logits.sigmoid(),
            "regression": logits,
        }[model.problem_type]
        answers = pipeline({"text": text, "text_pair": pair}, top_k=None)
        scores = {answer["label"]: answer["score"] for answer in answers}
        got = torch.tensor([scores.get(label, math.nan) for label in model.labels])
        _difference("the text-classification pipeline", expected, got)


def _check_tagger(model: TokenClassificationModel, tokenizer: Tokenizer, pipeline: Any) -> None:
    """Each piece has the label of the token-classification pipeline, and its probability."""
    text = TEXTS[2]
    with torch.inference_mode():
        probabilities, labels = model(**_rows(tokenizer, [text], [None]))[0].softmax(dim=-1).max(dim=-1)  # (T,)
    answers = {answer["index"]: answer for answer in pipeline(text, ignore_labels=[])}
    got = []
    for index in range(1, len(labels) - 1):
        is_same = answers[index]["entity"] == model.labels[int(labels[index])]
        got.append(float(answers[index]["score"]) if is_same else math.nan)
    _difference("the token-classification pipeline", probabilities[1:-1], torch.tensor(got))


_CHECKS: Mapping[str, Callable[..., None]] = {
    "fill-mask": _check_filler,
    "text-classification": _check_classifier,
    "token-classification": _check_tagger,
}
"""Pipeline -> what compares it. `transformers` has none for choices and answers."""


def _rows(
    tokenizer: Tokenizer, texts: list[str], pairs: Sequence[str | None], max_length: int | None = None
) -> dict[str, Tensor]:
    """Texts, each with its pair or alone, as one batch for our model."""
    arrays = pad_batch(tokenizer.encode_batch(texts, pairs, max_length=max_length), tokenizer.pad_id)
    return {key: torch.from_numpy(arrays[key]) for key in _INPUTS}
