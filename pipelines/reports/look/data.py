"""Data for the page that shows a text (page.py), as JSON values: prediction, attention, neurons, guesses, vectors."""

import base64
import zlib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, SupportsFloat

import numpy as np
import torch
from numpy.typing import NDArray

from korbert.errors import ModelError, SettingsError
from korbert.messages import Message
from korbert.model import Model
from korbert.modeling import ClassificationModel, LinearModel, TransformersEncoder
from korbert.pipelines.inference.predicting import json_of
from korbert.system import JsonObject
from korbert.tasks.kinds.classification import Classification
from korbert.tasks.kinds.question_answering import QuestionAnswering
from korbert.tasks.kinds.texts import LinearExamples, TextKind
from korbert.tasks.passages import encode_passages
from korbert.tasks.reasons import margins_of, morpheme_weights
from korbert.tasks.token_classification import owners
from korbert.tokenization import AnyTokenizer, Pieces
from korbert.vectors import UNITS, Attention, TextParts, attribute, to_unit_length
from korbert.vectors.attention import attention

_MOST_NEURONS = 1_200_000  # query and key values on a page, one byte each
_MOST_LABELS = 3  # with integrated gradients
_AROUND = 20  # characters of a sentence on each side of a word
_SHORT = 128  # pieces of a text up to which a service computes integrated gradients


def look_data(
    loaded: Model, text: str, pair: str | None = None, *, whole: bool = False, attributed: bool = True
) -> JsonObject:
    """Data of the page for a text or a pair, as JSON values (docs/formats.md).

    loaded: from korbert.load. whole: include what takes many forward passes: the guesses at every position (one pass
    each; on a service, the page asks for them one by one), the label attribution of a long text (50 passes), and the
    attribution of the next likely labels. attributed: include what each piece adds to a label.

    Raises ModelError for a text that is too long. Without attention, models that read texts to their end and encoders
    of transformers still have data: then data["missing"]["attention"] is the reason.
    """
    model = loaded.network
    tokenizer = loaded.tokenizer
    data: dict[str, Any] = {
        "model": model_facts(loaded),
        "texts": [text] if pair is None else [text, pair],
        "missing": {},
    }
    reading = loaded.kind if isinstance(loaded.kind, QuestionAnswering) and pair is not None else None
    attentions = None
    try:
        attentions = attention(model, tokenizer, text, pair)
    except ModelError as error:
        if reading is None and "tag" not in loaded.can and not isinstance(model.encoder, TransformersEncoder):
            raise
        data["missing"]["attention"] = error.message
    encoded = [tokenizer.encode_pieces(content, special_tokens=True) for content in data["texts"]]
    data["stretches"] = [stretches_of(content, pieces) for content, pieces in zip(data["texts"], encoded, strict=True)]
    if attentions is not None:
        data["segments"] = attentions.encoding.token_type_ids
        data["special"] = attentions.encoding.special_tokens_mask
        data["tags"] = attentions.encoding.tags
        data["units"] = {
            unit: {
                "groups": attentions.groups(unit).tolist(),
                "labels": attentions.labels(unit),
                "spans": attentions.spans(unit),
            }
            for unit in UNITS
        }
        data["weights"] = pack_bytes(np.rint(255 * np.sqrt(attentions.weights)).astype(np.uint8))
        data["neurons"] = _neurons(attentions, data["missing"])
    data["vectors"] = _layers(model, tokenizer, data["texts"])
    if "fill" in loaded.can and whole:
        data["guesses"] = [
            None
            if guess is None
            else {"own": _round_short(guess.own), "best": [[name, _round_short(p)] for name, p in guess.guesses]}
            for guess in loaded.expect(text, pair)
        ]
    # Attribution needs 50 passes, so a page asks for it in a second request.
    if attributed and isinstance(model, ClassificationModel) and model.kind == "classification":
        data["label"] = _label(model, tokenizer, data, whole)
    elif isinstance(model, LinearModel) and "special" in data:
        data["label"] = _reasons(loaded, data["texts"], encoded, len(data["special"]))
    if reading is not None:
        data["reading"] = _reading(loaded, reading, text, pair)
    else:
        try:
            data["prediction"] = _prediction(loaded, text, pair)
        except (SettingsError, ModelError) as error:  # a pair for a model of texts, or rows of more than texts
            data["missing"]["prediction"] = error.message
    return data


def word_rows(found: Sequence[TextParts]) -> list[tuple[str, str, str, list[float]]]:
    """Returns for each occurrence of a word: text before, the word, text after, its cosines with all occurrences."""
    vectors = to_unit_length(np.concatenate([parts.vectors for parts in found]))
    cosines = iter(np.clip(vectors @ vectors.T, -1, 1).tolist())
    return [
        (
            "…" * (start > _AROUND) + parts.text[max(0, start - _AROUND) : start],
            parts.text[start:end],
            parts.text[end : end + _AROUND] + "…" * (len(parts.text) > end + _AROUND),
            next(cosines),
        )
        for parts in found
        for start, end in parts.spans
    ]


def stretches_of(text: str, encoded: Pieces) -> list[tuple[str, list[tuple[str, str]]]]:
    """Splits the text into stretches, each character in one, with the pieces (and tags) that cover them, if any.

    Pieces whose spans overlap, and pieces without characters, share a stretch: 했 with 하 and 었.
    """
    groups: list[tuple[int, int, list[tuple[str, str]]]] = []
    for piece, tag, (start, end) in zip(encoded.pieces, encoded.tags, encoded.spans, strict=True):
        if groups and (start < groups[-1][1] or start == end == groups[-1][1]):
            low, high, names = groups.pop()
            groups.append((min(low, start), max(high, end), [*names, (piece, tag)]))
        else:
            groups.append((start, end, [(piece, tag)]))

    stretches: list[tuple[str, list[tuple[str, str]]]] = []
    position = 0
    for low, high, names in [*groups, (len(text), len(text), [])]:
        if position < low:  # a gap between the groups, such as a space
            stretches.append((text[position:low], []))
        if names:
            stretches.append((text[max(position, low) : high], names))
        position = max(position, high)
    return stretches


def pack_bytes(array: NDArray[np.integer]) -> JsonObject:
    """An array of bytes for the page: its shape, and its bytes compressed with zlib, in base64."""
    return {"shape": list(array.shape), "data": base64.b64encode(zlib.compress(array.tobytes(), 6)).decode()}


def model_facts(loaded: Model) -> JsonObject:
    """Name, kind and sizes of the model. The name is the folder name, as a server does not show paths."""
    config = loaded.network.config
    path = Path(loaded.name)
    return {
        "name": path.parent.name if path.name == "model" else path.name,
        "kind": loaded.network.kind,
        "architecture": getattr(config, "model_type", config.architecture),
        "layers": config.num_hidden_layers,
        "width": config.hidden_size,
    }


def _neurons(attentions: Attention, missing: dict[str, str]) -> JsonObject | None:
    """Queries and keys as signed bytes; None if missing["neurons"] gives a reason."""
    if attentions.queries is None or attentions.keys is None:
        missing["neurons"] = Message("Encoders of transformers do not expose their queries and keys.")
        return None
    if attentions.queries.size + attentions.keys.size > _MOST_NEURONS:
        missing["neurons"] = Message("Queries and keys are left out: with so many pieces, the page would be too large.")
        return None
    return {"queries": _pack_signed(attentions.queries), "keys": _pack_signed(attentions.keys)}


def _pack_signed(array: NDArray[np.float32]) -> JsonObject:
    """Packs (A, B, ...) as signed bytes; `scale` is the largest absolute value of each [a, b], which becomes 127."""
    maxima = np.maximum(np.abs(array).max(axis=tuple(range(2, array.ndim)), keepdims=True), 1e-9)
    scale = maxima.reshape(array.shape[:2])
    return pack_bytes(np.rint(127 * array / maxima).astype(np.int8)) | {
        "scale": [[_round_short(x) for x in row] for row in scale]
    }


def _layers(model: Any, tokenizer: AnyTokenizer, texts: Sequence[str]) -> JsonObject | None:
    """The mean vector of each text, encoded alone, in every layer; cosines between layers and between texts.

    None for an encoder whose layers have rows of different lengths.
    """
    device = next(model.parameters()).device
    layer_means = []
    for text in texts:
        encoding = tokenizer.encode(text, special_tokens=True)
        ids, boundaries = (torch.tensor([row], device=device) for row in (encoding.input_ids, encoding.boundaries))
        try:
            with torch.inference_mode():
                layers = model.encoder.all_layers(ids, boundaries=boundaries)
        except ModelError:  # an encoder such as Funnel, with shorter rows in some layers
            return None
        layer_means.append(layers[:, 0].float().mean(dim=1).cpu().numpy())
    vectors = np.stack(layer_means)  # (texts, L + 1, D)
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)
    return {
        "vectors": _pack_signed(vectors),
        "between_layers": [[[_round_short(x) for x in row] for row in means @ means.T] for means in unit],
        "between_texts": [_round_short(x) for x in (unit[0] * unit[1]).sum(axis=-1)] if len(texts) > 1 else None,
    }


def _label(model: ClassificationModel, tokenizer: AnyTokenizer, data: JsonObject, whole: bool) -> JsonObject | None:
    """The attribution of the most likely label, with `whole` also of the next ones.

    None if it cannot be computed; then data["missing"]["label"] is the reason.
    """
    pieces = len(data["special"]) if "special" in data else 0
    if find_spec("captum") is None:
        data["missing"]["label"] = Message("Attribution of a label needs captum: pip install 'korbert[look]'")
        return None
    if not whole and pieces > _SHORT:
        data["missing"]["label"] = Message(
            "Attribution of a label over {pieces:,} pieces takes long: use korbert look.", pieces=pieces
        )
        return None
    is_binary = model.num_labels == 2 and model.problem_type == "single_label_classification"
    num_labels = _MOST_LABELS if whole and not is_binary else 1  # with two labels, the second mirrors the first
    text, *second = data["texts"]
    pair = second[0] if second else None
    attribution = attribute(model, tokenizer, text, pair, num_labels)
    return {
        "names": attribution.labels,
        "number": model.problem_type == "regression",
        "probabilities": [_round_short(x) for x in attribution.probabilities],
        "scores": [_round_short(x) for x in attribution.scores],
        "masked": [_round_short(x) for x in attribution.masked],
        "shares": [[_round_short(x) for x in row] for row in attribution.shares],
    }


def _reasons(loaded: Model, texts: Sequence[str], encoded: Sequence[Pieces], count: int) -> JsonObject | None:
    """What each piece adds to the most likely label, or to the number, of a linear model.

    encoded: the pieces of each text on the page. count: their number, special tokens included. The model reads a
    special token that a text spells, such as [MASK], as characters; what they add is that of the token's piece.
    """
    kind = loaded.task
    model = loaded.network
    assert isinstance(kind, TextKind)
    assert isinstance(model, LinearModel)
    passages = encode_passages(loaded.tokenizer, texts)
    if len(texts) != model.num_texts or not all(len(passage.ids) for passage in passages):
        return None
    row = dict(zip(kind.needs, texts, strict=True))
    prepared = kind.prepare([row], [passages], loaded.tokenizer)
    examples = prepared.examples
    assert isinstance(examples, LinearExamples)
    (prediction,) = kind.predict(model, prepared, **loaded.scoring)
    outputs = kind.outputs_of([prediction])
    best, probability, name, several = 0, outputs[0, 0], "", True
    if isinstance(kind, Classification):
        probabilities = list(prediction["probabilities"].values())
        probability, several = max(probabilities), kind.several
        best = probabilities.index(probability)
        name = kind.labels[best]
    (score,) = margins_of(outputs, best, several=several)
    shares = np.zeros(count)
    offset = 1  # after [CLS]
    text_weights = morpheme_weights(model, examples, 0, passages, best, several=several)
    for passage, weights, pieces in zip(passages, text_weights, encoded, strict=True):
        places, spans = owners(np.array(pieces.spans).reshape(-1, 2))
        numbers = np.searchsorted(spans[:, 0], owners(passage.spans)[1][:, 0], side="right") - 1
        np.add.at(shares, offset + places[numbers.clip(min=0)], weights)
        offset += len(pieces.ids) + loaded.tokenizer.frame.between
    return {
        "names": [name],
        "number": not isinstance(kind, Classification),
        "exact": True,
        "probabilities": [_round_short(probability)],
        "scores": [_round_short(score)],
        "masked": [_round_short(score - shares.sum())],
        "shares": [[_round_short(x) for x in shares]],
    }


def _reading(loaded: Model, kind: QuestionAnswering, question: str, context: str | None) -> JsonObject:
    (prepared,) = loaded.prepare_rows([{"question": question, "context": context}])
    (searched,) = kind.search(loaded.network, prepared, **loaded.scoring)
    return {
        "question": question,
        "context": context,
        "answers": [
            {"text": answer.answer, "score": _round_short(answer.score), "start": answer.start, "end": answer.end}
            for answer in kind.best_answers(searched)
        ],
    }


def _prediction(loaded: Model, text: str, pair: str | None) -> JsonObject | None:
    """What `korbert predict` or `fill` returns, and the cosine of a pair for a model of vectors; else None."""
    if "predict" in loaded.can:
        row = text if pair is None else (text, pair)
        return json_of(loaded.predict(row))
    if "tag" in loaded.can:
        return json_of(loaded.tag(text))
    if "fill" in loaded.can and "[MASK]" in text:
        return {"gaps": [list(map(vars, candidates)) for candidates in loaded.fill(text)]}
    if loaded.kind is not None and loaded.kind.operation == "embed" and pair is not None:
        return {"cosine": _round_short(loaded.similarity(text, pair))}
    return None


def _round_short(number: SupportsFloat | None) -> float | None:
    """Rounds to four significant digits."""
    return None if number is None else float(f"{float(number):.4g}")
