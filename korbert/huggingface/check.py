"""Compares an exported folder, loaded the way users load it, with our model. Needs `transformers`."""

import importlib
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from korbert.errors import ModelError
from korbert.huggingface.sentences import pooled
from korbert.modeling.config import BOUNDARY_LEVELS
from korbert.modeling.models import (
    ChoiceModel,
    ClassificationModel,
    DetectionModel,
    EmbeddingModel,
    Model,
    PretrainingModel,
    ReadingModel,
    TaggingModel,
)
from korbert.tokenization import Tokenizer, pad_batch
from korbert.tokenization.vocabulary import FIRST_PIECE

__all__ = ["TEXTS", "TOLERANCE", "compare", "transformers"]

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
    TOLERANCE, and if the tokenizer of the folder gives other ids.
    """
    fills = isinstance(model, PretrainingModel)
    with _quietly(folder.parent):
        reads = transformers().AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
        for text in TEXTS:
            ours, others = tokenizer.encode(text, special_tokens=fills).input_ids, reads(text)["input_ids"]
            if ours != others:
                raise ModelError(
                    f"export: its tokenizer encodes {text[:40]!r} as {others}, ours as {ours}: report this"
                )
        differences = _compare_outputs(model, tokenizer, reads, folder)
        if use := _USES.get(model.kind):
            use(model, tokenizer, reads, folder)
    return differences


def _compare_outputs(model: Model, tokenizer: Tokenizer, reads: Any, folder: Path) -> dict[str, float]:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (kind,) = config["architectures"]
    if "auto_map" in config:
        modules: Any = importlib.import_module("transformers.dynamic_module_utils")
        their_class = modules.get_class_from_dynamic_module(f"modeling_korbert.{kind}", folder)
    else:
        their_class = getattr(transformers(), kind)
    theirs, report = their_class.from_pretrained(folder, output_loading_info=True)
    if wrong := {key: sorted(keys) for key, keys in report.items() if keys}:
        raise ModelError(f"export: {kind} does not take all weights: {wrong}: report this as a fault")
    theirs.eval()

    # Texts and pairs in one padded batch; random ids of three lengths.
    longest = min(model.config.max_position_embeddings, 300)
    batches = [_rows(tokenizer, [*TEXTS, TEXTS[0]], [None] * len(TEXTS) + [TEXTS[1]], longest)]
    generator = torch.Generator().manual_seed(0)
    for length in sorted({min(8, longest), min(65, longest), longest}):
        ids = torch.randint(tokenizer.vocab_size, (2, length), generator=generator)
        half = length // 2
        ids[:, half:] = ids[:, : length - half].flip(1)  # in both segments
        segments = (torch.arange(length) >= half).long().expand(2, length)
        levels = torch.randint(BOUNDARY_LEVELS, (2, length), generator=generator)
        columns = ids, torch.ones_like(ids), segments, levels
        batches.append(dict(zip(_INPUTS, columns, strict=True)))

    differences: dict[str, float] = {}
    for batch in batches:
        with torch.inference_mode():
            others = _their_outputs(theirs, batch, reads)
            ours = _our_outputs(model, batch)
        if "nsp_logits" not in others:  # some classes lack that head
            ours.pop("nsp_logits", None)
        real = batch["attention_mask"].bool()
        for name, expected in ours.items():
            got = others[name]
            if expected.shape[:2] == real.shape:  # one output per piece: padding does not count
                expected, got = expected[real], got[real]
            differences[name] = max(_difference(name, expected, got), differences.get(name, 0.0))
    return differences


def _difference(name: str, expected: Tensor, got: Tensor) -> float:
    difference = float((expected - got).abs().max())
    if not difference <= TOLERANCE * max(1.0, float(expected.abs().max())):  # refuses NaN, too
        raise ModelError(f"export: {name} differs by {difference:.1e} from the model's: report this as a fault")
    return difference


def transformers() -> ModuleType:
    """Imports the package. ModelError, with the install command, if it is missing."""
    try:
        return importlib.import_module("transformers")
    except ImportError:
        raise ModelError("export: the check needs transformers: pip install 'korbert[hf]'") from None


@contextmanager
def _quietly(cache: Path) -> Iterator[None]:
    """Silences `transformers`. Code that it copies goes to `cache`, and is removed from sys.modules afterwards."""
    logging: Any = importlib.import_module("transformers.utils.logging")
    modules: Any = importlib.import_module("transformers.dynamic_module_utils")
    shown, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    usual, path = modules.HF_MODULES_CACHE, list(sys.path)
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    modules.HF_MODULES_CACHE = str(cache / "modules")
    loaded = _take_remote_code()
    try:
        yield
    finally:
        _take_remote_code()
        sys.modules.update(loaded)
        modules.HF_MODULES_CACHE, sys.path[:] = usual, path
        logging.set_verbosity(verbosity)
        if shown:
            logging.enable_progress_bar()


def _take_remote_code() -> dict[str, ModuleType]:
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith("transformers_modules")}


def _use_filler(model: PretrainingModel, tokenizer: Tokenizer, theirs: Any, folder: Path) -> None:
    """Our candidates have the probabilities of the fill-mask pipeline."""
    from korbert.model import Model

    text, top = "오늘 [MASK] 정말 좋다.", 5
    (ours,) = Model(model, tokenizer).fill(text, top=top)
    candidates = _pipeline("fill-mask", folder)(text, top_k=FIRST_PIECE + top)  # special tokens and bytes, too
    scores = {candidate["token"]: candidate["score"] for candidate in candidates}
    got = torch.tensor([scores.get(one.id, math.nan) for one in ours])
    _difference("the fill-mask pipeline", torch.tensor([one.probability for one in ours]), got)


def _use_classifier(model: ClassificationModel, tokenizer: Tokenizer, theirs: Any, folder: Path) -> None:
    """A text and a pair have the numbers of the text-classification pipeline, and its tokenizer the pair's segments."""
    pipeline = _pipeline("text-classification", folder)
    for text, pair in (("정말 재미있는 영화였다.", None), ("정말 재미있는 영화였다.", "다시 보고 싶다.")):
        with torch.inference_mode():
            logits = model(**_rows(tokenizer, [text], [pair]))[0]
        expected = {
            "single_label_classification": logits.softmax(dim=0),
            "multi_label_classification": logits.sigmoid(),
            "regression": logits,
        }[model.problem_type]
        scores = {one["label"]: one["score"] for one in pipeline({"text": text, "text_pair": pair}, top_k=None)}
        got = torch.tensor([scores.get(label, math.nan) for label in model.labels])
        _difference("the text-classification pipeline", expected, got)


def _use_chooser(model: ChoiceModel, tokenizer: Tokenizer, theirs: Any, folder: Path) -> None:
    """The Auto classes on a text and two continuations: transformers has no pipeline for these."""
    texts, choices = ["아버지가 방에 들어가신다."] * 2, ["불을 켜신다.", "그리고 문을 닫고 주무신다."]
    chooser = transformers().AutoModelForMultipleChoice.from_pretrained(folder, trust_remote_code=True).eval()
    rows = theirs(texts, choices, padding=True, return_tensors="pt")
    with torch.inference_mode():
        expected = model(**_rows(tokenizer, texts, choices))[:, 0]
        got = chooser(**{key: column[None] for key, column in rows.items()}).logits[0]
    _difference("the score of a choice", expected, got)


def _use_reader(model: ReadingModel, tokenizer: Tokenizer, theirs: Any, folder: Path) -> None:
    """The Auto classes on a question and a context: transformers 5 has no pipeline for these."""
    question, context = "한글은 언제 만들어졌나?", "세종은 1443년에 한글을 만들었다."
    given = _rows(tokenizer, [question], [context])
    reader = transformers().AutoModelForQuestionAnswering.from_pretrained(folder, trust_remote_code=True).eval()
    with torch.inference_mode():
        expected, got = model(**given), reader(**theirs(question, context, return_tensors="pt"))
    for name, ours, others in zip(("start", "end"), expected, (got.start_logits, got.end_logits), strict=True):
        _difference(f"the {name} of an answer", ours, others)


def _use_tagger(model: TaggingModel, tokenizer: Tokenizer, theirs: Any, folder: Path) -> None:
    """Each piece has the label of the token-classification pipeline, and its probability."""
    text = TEXTS[2]
    with torch.inference_mode():
        shares = model(**_rows(tokenizer, [text], [None]))[0].softmax(dim=-1)  # (T, C)
    expected, labels = shares.max(dim=-1)
    found = {one["index"]: one for one in _pipeline("token-classification", folder)(text, ignore_labels=[])}
    pieces = range(1, len(labels) - 1)
    same = (found[place]["entity"] == model.labels[int(labels[place])] for place in pieces)
    got = [float(found[place]["score"]) if alike else math.nan for place, alike in zip(pieces, same, strict=True)]
    _difference("the token-classification pipeline", expected[1:-1], torch.tensor(got))


def _use_embedder(model: EmbeddingModel, tokenizer: Tokenizer, theirs: Any, folder: Path) -> None:
    """AutoModel and the pooling that the files of sentence-transformers name give our vectors."""
    encoder = transformers().AutoModel.from_pretrained(folder, trust_remote_code=True).eval()
    with torch.inference_mode():
        rows = theirs(list(TEXTS), padding=True, truncation=True, max_length=32, return_tensors="pt")
        hidden = encoder(**rows).last_hidden_state
        expected = model(**_rows(tokenizer, list(TEXTS), [None] * len(TEXTS), 32))
    _difference("the vector of a text", expected, pooled(folder, hidden, rows["attention_mask"]))


_USES: Mapping[str, Callable[..., None]] = {
    "pretraining": _use_filler,
    "classification": _use_classifier,
    "choice": _use_chooser,
    "reading": _use_reader,
    "tagging": _use_tagger,
    "embedding": _use_embedder,
}


def _pipeline(task: str, folder: Path) -> Any:
    return transformers().pipeline(task, model=str(folder), trust_remote_code=True, device="cpu")


def _rows(
    tokenizer: Tokenizer, texts: list[str], pairs: Sequence[str | None], max_length: int | None = None
) -> dict[str, Tensor]:
    """Texts, each with its pair or alone, as one batch for our model."""
    arrays = pad_batch(tokenizer.encode_batch(texts, pairs, max_length=max_length), tokenizer.pad_id)
    return {key: torch.from_numpy(arrays[key]) for key in _INPUTS}


def _our_outputs(model: Model, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    if isinstance(model, PretrainingModel):
        mlm, nsp = model(**batch)
        return {"mlm_logits": mlm, "nsp_logits": nsp}
    if isinstance(model, ClassificationModel | DetectionModel | TaggingModel):
        return {"logits": model(**batch)}
    if isinstance(model, EmbeddingModel):
        return {"last_hidden_state": model.encoder(**batch)}
    start, end = model(**batch)
    return {"start_logits": start, "end_logits": end}


def _their_outputs(theirs: Any, batch: Mapping[str, Tensor], reads: Any) -> dict[str, Tensor]:
    known = {name: column for name, column in batch.items() if name in reads.model_input_names}
    if theirs.__class__.__name__.endswith("ForMultipleChoice"):  # (B, choices, T): one choice each
        known = {key: column[:, None] for key, column in known.items()}
    outputs = theirs(**known)
    names = {"prediction_logits": "mlm_logits", "seq_relationship_logits": "nsp_logits", "sop_logits": "nsp_logits"}
    if theirs.__class__.__name__.endswith("ForMaskedLM"):
        names["logits"] = "mlm_logits"
    return {names.get(key, key): value for key, value in outputs.items()}
