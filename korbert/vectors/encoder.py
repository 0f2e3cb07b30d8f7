"""The base of all loaded models: vectors of texts and of their parts."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, Unpack, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from korbert.errors import ModelError, SettingsError
from korbert.modeling import Model, load_model
from korbert.modeling.onnx_encoder import OnnxEncoder
from korbert.processor import cores
from korbert.tasks.passages import MANY_TEXTS
from korbert.texts import as_texts
from korbert.tokenization import AnyTokenizer, Encoding
from korbert.training.devices import Batch, choose_device
from korbert.training.examples import Examples
from korbert.training.scoring import Scoring, model_inputs, outputs
from korbert.training.settings import PrecisionName
from korbert.vectors.correction import Correction
from korbert.vectors.counts import PieceCounts
from korbert.vectors.names import Unit, Way
from korbert.vectors.parts import Parts, parts_of
from korbert.vectors.pooling import POOLINGS, weights_of
from korbert.vectors.ranking import Hit
from korbert.vectors.settings import Asked, VectorSettings

if TYPE_CHECKING:
    from korbert.vectors.index import Index
    from korbert.vectors.occurrences import Occurrence

__all__ = ["TEXTS_AT_ONCE", "TextEncoder", "hidden_of", "unit"]

TEXTS_AT_ONCE = 4_096  # texts whose pieces are in memory at a time

_M = TypeVar("_M", bound=Model)
_Vectors = NDArray[np.float32]


class TextEncoder(Generic[_M]):
    """Embeds texts with any model. Base class of classifiers, readers and the others.

        >>> encoder = korbert.load("artifacts/demo/pretrain")
        >>> encoder.embed(["한 남자가 춤을 춘다.", "남자가 춤추고 있다."], layer=-2).shape
        (2, 256)
        >>> encoder.similarity("한 남자가 춤을 춘다.", "남자가 춤추고 있다.")
        0.93

    max_length: pieces of a text, special tokens included; the rest is cut off. None: the model's positions.
    name: of the model in errors; `load` sets it to the folder. precision: of the matrix products where many texts are
    processed at once; one text to fill or look at is always processed in fp32. columns: role -> the columns of the
    file that it was fine-tuned on, as far as known.
    """

    columns: Mapping[str, Sequence[str]] = MappingProxyType({})
    name = "the model"
    precision: PrecisionName = "fp32"

    def __init__(self, model: _M, tokenizer: AnyTokenizer, max_length: int | None = None) -> None:
        self.model: _M = model
        self.model.eval()
        self.tokenizer = tokenizer
        self._max_length = max_length

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto") -> Self:
        """Loads a folder written by korbert, of any kind. Raises ModelError for any other folder."""
        model, tokenizer = load_model(folder, device=choose_device(device))
        encoder = cls(model, tokenizer)  # type: ignore[arg-type]
        encoder.name = str(folder)
        return encoder

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        found: torch.device = next(self.model.parameters()).device
        return found

    @property
    def scoring(self) -> Scoring:
        """The device, and the precision for many texts."""
        return {"device": self.device, "precision": self.precision}

    @property
    def max_length(self) -> int:
        """Maximum pieces of a text, special tokens included."""
        return self._max_length or int(self.model.config.max_position_embeddings)

    @property
    def vector_defaults(self) -> Asked:
        """The `embed` settings that the model was trained with, as far as they differ from VectorSettings."""
        return {}

    def vector_settings(self, **asked: Unpack[Asked]) -> VectorSettings:
        """Merges settings with the model's defaults. SettingsError for values that the model does not support."""
        settings = VectorSettings.of({**self.vector_defaults, **asked})
        last = self.model.config.num_hidden_layers
        if len(set(settings.places(last))) < len(settings.layer):
            raise SettingsError(f"layer {list(settings.layer)}: name each layer once")
        if settings.size is not None and settings.size > (width := self.width(settings)):
            raise SettingsError(f"size {settings.size}: the vectors have {width} numbers: take that many or fewer")
        if settings.places(last) != (last,) and isinstance(self.model.encoder, OnnxEncoder):
            raise SettingsError("layer: an encoder in an ONNX file has only its last layer: omit layer")
        return settings

    def width(self, settings: VectorSettings) -> int:
        """Numbers per vector, before it is corrected and cut."""
        layers = len(settings.layer) if settings.mix == "concat" else 1
        return int(self.model.config.hidden_size) * layers * POOLINGS[settings.pooling].width

    def embed(
        self,
        texts: str | Iterable[str],
        batch_size: int = 64,
        *,
        counts: PieceCounts | None = None,
        correction: Correction | None = None,
        **asked: Unpack[Asked],
    ) -> _Vectors:
        """The vector of a text, (D,), or of many texts, (N, D), in order. Any text is valid, even an empty one.

        batch_size: texts at once in the model; up to rounding, vectors do not depend on it. asked: the fields of
        VectorSettings; others are the model's defaults. counts: of the pieces, for "idf" and "bm25"; None: those in the
        model's folder. correction: applied before vectors are cut and normalized. In `modern` encoders the outputs of
        layers below the last are not normalized: each layer normalizes its input.

        Raises SettingsError for anything but strings and for settings that the model does not support, ModelError if a
        vector is not finite.
        """
        given, single = as_texts(texts, "texts")
        parts = list(self.stream(given, batch_size, counts=counts, correction=correction, **asked))
        vectors = np.concatenate(parts)
        return vectors[0] if single else vectors

    def stream(
        self,
        texts: Iterable[str],
        batch_size: int = 64,
        *,
        counts: PieceCounts | None = None,
        correction: Correction | None = None,
        **asked: Unpack[Asked],
    ) -> Iterator[_Vectors]:
        """As embed, for any number of texts in constant memory: (n, D), up to 4,096 at a time; (0, D) for no texts."""
        settings, left, first = self.vector_settings(**asked), iter(texts), True
        while (part := list(islice(left, TEXTS_AT_ONCE))) or first:
            first = False
            workers = cores() if len(part) > MANY_TEXTS else 0
            encodings = self.tokenizer.encode_batch(part, max_length=self.max_length, workers=workers)
            yield self.pooled(encodings, settings, batch_size, counts=counts, correction=correction)

    def pooled(
        self,
        encodings: Sequence[Encoding],
        settings: VectorSettings,
        batch_size: int = 64,
        *,
        counts: PieceCounts | None = None,
        correction: Correction | None = None,
    ) -> _Vectors:
        """As embed, for texts already encoded, truncated to `max_length`: (N, D), computed shortest first."""
        if POOLINGS[settings.pooling].counts and counts is None:
            counts = self.piece_counts
        pooling, places = POOLINGS[settings.pooling], settings.places(self.model.config.num_hidden_layers)

        def vector_of(model: nn.Module, batch: Batch) -> Tensor:
            hidden = hidden_of(model, batch, settings, places).float()
            weights = weights_of(pooling, batch["input_ids"], batch["attention_mask"], settings.special_tokens, counts)
            return pooling.pool(hidden, weights)  # (B, D)

        if encodings:
            rows = ((encoding.input_ids, encoding.boundaries) for encoding in encodings)
            examples = Examples.of_rows(rows, [0] * len(encodings), self.tokenizer.pad_id)
            vectors = outputs(self.model, examples, vector_of, batch_size, **self.scoring)
        else:
            vectors = np.zeros((0, self.width(settings)), np.float32)
        if not np.isfinite(vectors).all():
            raise ModelError(f"{self.name}: its vectors are not finite: train it again with a lower learning_rate")
        if correction is not None:
            vectors = correction(vectors)
        if settings.size is not None:
            vectors = vectors[:, : settings.size]
        return unit(vectors) if settings.normalize else vectors

    @overload
    def similarity(self, a: str, b: str, **asked: Unpack[Asked]) -> float: ...  # type: ignore[overload-overlap]
    @overload
    def similarity(self, a: str | Iterable[str], b: str | Iterable[str], **asked: Unpack[Asked]) -> _Vectors: ...
    def similarity(
        self, a: str | Iterable[str], b: str | Iterable[str], **asked: Unpack[Asked]
    ) -> float | NDArray[np.float32]:
        """Cosine of the vectors of a and b, -1 to 1; of lists, (N, M): that of each text of a with each of b.

        A single text and a list give (M,) or (N,). asked: as in `embed`.
        """
        first, second = (unit(self.embed(texts, **asked)) for texts in (a, b))
        found = first @ second.T
        return float(found) if isinstance(a, str) and isinstance(b, str) else np.asarray(found)

    @overload
    def parts(self, texts: str, unit: "Unit" = "morpheme", **asked: Unpack[Asked]) -> "Parts": ...  # type: ignore[overload-overlap]
    @overload
    def parts(self, texts: Iterable[str], unit: "Unit" = "morpheme", **asked: Unpack[Asked]) -> "list[Parts]": ...
    def parts(
        self, texts: str | Iterable[str], unit: "Unit" = "morpheme", **asked: Unpack[Asked]
    ) -> "Parts | list[Parts]":
        """The vectors of the pieces, morphemes or eojeols of a text, with their spans; a list for many texts.

        asked: layer and mix, as in `embed`. Parts beyond max_length are missing; one cut by max_length has the mean of
        its pieces before the cut.
        """
        given, single = as_texts(texts, "texts")
        found = parts_of(self, given, unit, self.vector_settings(**asked))
        return found[0] if single else found

    def occurrences(self, word: str, texts: Iterable[str], **asked: Unpack[Asked]) -> "list[Occurrence]":
        """The occurrences of a word in texts, with their vectors: see korbert.vectors.occurrences."""
        from korbert.vectors.occurrences import occurrences_of

        return occurrences_of(self, word, as_texts(texts, "texts")[0], self.vector_settings(**asked))

    def similar(
        self, texts: str | Iterable[str], index: "Index | str | Path", top: int = 10, way: "Way" = "both"
    ) -> "list[list[Hit]]":
        """The texts of an index nearest to each text, nearest first: see Index.search."""
        from korbert.vectors.index import Index

        opened = index if isinstance(index, Index) else Index.load(index, self)
        return opened.search(texts, top, way)

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) over everything that determines vectors: config, encoder weights, tokenizer, maximum length."""
        encoder: nn.Module = self.model.encoder
        facts = [self.model.config.model_dump(mode="json"), self.tokenizer.digest, self.max_length]
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
        if isinstance(encoder, OnnxEncoder):
            digest.update(encoder.sha256.encode())
            return digest.hexdigest()
        for name, tensor in sorted(encoder.state_dict().items()):
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
        return digest.hexdigest()

    @cached_property
    def piece_counts(self) -> PieceCounts:
        """The counts in the model's folder, for "idf" and "bm25". SettingsError if there are none."""
        return PieceCounts.find(None, self.name, self.tokenizer)


def hidden_of(model: Any, batch: Batch, settings: VectorSettings, places: tuple[int, ...]) -> Tensor:
    """Piece vectors from the layers in the settings: (B, T, D), or (B, T, K x D) for K concatenated layers.

    places: layer indices, from 0.
    """
    if places == (model.config.num_hidden_layers,):
        last: Tensor = model.encoder(**model_inputs(batch))
        return last
    layers = model.encoder.all_layers(**model_inputs(batch), only=places)  # (K, B, T, D)
    if settings.mix == "concat":
        return torch.cat(list(layers), dim=-1)
    mixed: Tensor = layers.sum(dim=0) if settings.mix == "sum" else layers.mean(dim=0)
    return mixed


def unit(vectors: _Vectors) -> _Vectors:
    """Scales vectors, (..., D), to length 1; zero vectors stay zero."""
    lengths: Any = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12))
