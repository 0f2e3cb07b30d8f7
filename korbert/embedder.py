"""What every model can do: vectors of texts and of their parts."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib.util import find_spec
from typing import Unpack, get_args, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from korbert.errors import SettingsError
from korbert.modeling import EmbeddingModel, LinearModel, Network, OnnxEncoder, digest_of, quantizable, quantize
from korbert.system import EXTRAS, cores, package
from korbert.tasks.passages import MANY_TEXTS
from korbert.tokenization import AnyTokenizer, Encoding, encode_beginnings, with_prompt
from korbert.training import (
    Batch,
    Examples,
    InferencePrecision,
    NotFinite,
    Scoring,
    choose_precision,
    device_of,
    has_instructions,
    outputs,
)
from korbert.vectors import (
    POOLINGS,
    Side,
    TextParts,
    Unit,
    VectorArgs,
    VectorSettings,
    hidden_of,
    parts_of,
    to_unit_length,
    weights_of,
)

TEXTS_AT_ONCE = 4_096  # texts to embed whose pieces are in memory

_Vectors = NDArray[np.float32]


def inference_precision(network: Network, precision: InferencePrecision) -> InferencePrecision:
    """Resolves the precision of batches. auto: the fastest here, which is int8 on a CPU with VNNI and ONNX Runtime.

    SettingsError if the network, the hardware or the installed packages do not support it.
    """
    is_quantizable = quantizable(network)
    if (
        precision == "auto"
        and is_quantizable
        and has_instructions("avx512_vnni")
        and all(map(find_spec, EXTRAS["onnx"]))
    ):
        return "int8"
    if precision != "int8":
        return choose_precision(device_of(network), precision)
    if not is_quantizable:
        raise SettingsError("precision 'int8': is for encoders of korbert on a CPU: take auto, bf16 or fp32")
    for name in EXTRAS["onnx"]:
        package(name, "precision int8")
    return "int8"


def as_texts(value: object, name: str) -> tuple[list[str], bool]:
    """The texts as a list, and whether a single one was given. name: of the argument, for errors.

    A table of pandas is its column `text`. Raises SettingsError for a table without one, and for anything else but a
    string or an iterable of strings.
    """
    if isinstance(value, str):
        return [value], True
    if hasattr(value, "columns"):  # a table iterates over the names of its columns
        if "text" not in value.columns:
            columns = ", ".join(map(str, value.columns))
            raise SettingsError(
                "{name} is a table with the columns {columns}: give one of them, or call it 'text'",
                name=name,
                columns=columns,
            )
        value = value["text"]  # type: ignore[index]
    if isinstance(value, bytes | bytearray | Mapping) or not isinstance(value, Iterable):
        raise SettingsError("{name} is {shown}: give a string, or a list of strings", name=name, shown=_display(value))
    texts = list(value)
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise SettingsError(
                "{name}[{place}] is {shown}: give only strings", name=name, place=place, shown=_display(text)
            )
    return texts, False


def _display(value: object) -> str:
    return "None" if value is None else f"{type(value).__name__} {value!r:.40}"


class Embedder:
    """A network with its tokenizer; korbert.Model explains the rest."""

    def __init__(self, network: Network, tokenizer: AnyTokenizer, name: str, precision: InferencePrecision) -> None:
        self.network = network.eval()
        self.tokenizer = tokenizer
        self.name = name
        self.precision = inference_precision(network, precision)

    @property
    def device(self) -> torch.device:
        return device_of(self.network)

    @property
    def max_length(self) -> int:
        """Pieces of a text that `embed` reads, special tokens included; the rest is cut off."""
        return int(self.network.config.max_position_embeddings)

    @cached_property
    def fast_network(self) -> Network:
        """The network that batches run through: for precision int8, with an encoder in 8 bits."""
        return quantize(self.network) if self.precision == "int8" else self.network

    @property
    def scoring(self) -> Scoring:
        """Device and precision of batches."""
        return {"device": self.device, "precision": "fp32" if self.precision == "int8" else self.precision}

    @contextmanager
    def _naming_errors(self, what: str = "") -> Iterator[None]:
        """Adds the name of the model to a NotFinite error. what: the numbers that are not finite; "": as it says."""
        try:
            yield
        except NotFinite as error:
            raise NotFinite(what or error.what, self.name) from None

    def vector_settings(self, **asked: Unpack[VectorArgs]) -> VectorSettings:
        """Merges settings with the model's defaults. SettingsError for values that the model does not support."""
        trained: VectorArgs = {}
        if isinstance(self.network, EmbeddingModel | LinearModel):
            trained = {"pooling": self.network.pooling}
        settings = VectorSettings.of({**trained, **asked})
        last = self.network.config.num_hidden_layers
        if len(set(settings.layer_indices(last))) < len(settings.layer):
            raise SettingsError("layer {layer}: name each layer once", layer=list(settings.layer))
        if settings.size is not None and settings.size > (width := self.width(settings)):
            raise SettingsError(
                "size {size}: the vectors have {width} numbers: take that many or fewer",
                size=settings.size,
                width=width,
            )
        if not settings.reads_last(last) and isinstance(self.network.encoder, OnnxEncoder):
            raise SettingsError("layer: an encoder in an ONNX file has only its last layer: omit layer")
        return settings

    def width(self, settings: VectorSettings) -> int:
        """Numbers per vector, before it is corrected and cut."""
        layers = len(settings.layer) if settings.mix == "concat" else 1
        return int(self.network.config.hidden_size) * layers * POOLINGS[settings.pooling].width

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) over everything that determines vectors: config, encoder weights, tokenizer, maximum length,
        prompts."""
        prompts = [self.prompt(side) for side in get_args(Side)]
        facts = [self.network.config.model_dump(mode="json"), self.tokenizer.digest, self.max_length]
        facts += prompts if any(prompts) else []
        made_from = json.dumps(facts, sort_keys=True)
        encoder = self.network.encoder
        if isinstance(encoder, OnnxEncoder):
            return hashlib.sha256(f"{made_from}{encoder.sha256}".encode()).hexdigest()
        return digest_of(made_from.encode(), encoder.state_dict())

    def prompt(self, side: Side | None) -> str:
        """The prompt before texts of that side of a search; empty if there is none."""
        return ""

    def embed(self, texts: str | Iterable[str], batch_size: int = 64, **asked: Unpack[VectorArgs]) -> _Vectors:
        """The vector of a text, (D,), or of many texts, (N, D), in order. Any text is valid, even an empty one.

        Vectors have length 1, after any cut to `size`; normalize=False leaves them as they are pooled.

        In `modern` encoders the outputs of layers below the last are not normalized: each layer normalizes its input.

        Args:
            texts: A text, or several.
            batch_size: Texts at once in the model; up to rounding, vectors do not depend on it.
            **asked: Fields of VectorSettings: layer, mix, pooling, special_tokens, normalize, side, size. Those left
                out are the model's defaults.

        Raises:
            SettingsError: The texts are no strings, or the model does not support a setting.
            ModelError: A vector is not finite.
        """
        listed, single = as_texts(texts, "texts")
        settings = self.vector_settings(**asked)
        parts = []
        for start in range(0, max(1, len(listed)), TEXTS_AT_ONCE):
            part = listed[start : start + TEXTS_AT_ONCE]
            workers = cores() if len(part) > MANY_TEXTS else 0
            encodings = encode_beginnings(self.tokenizer, part, self.max_length, workers=workers)
            parts.append(self.pool_encoded(encodings, settings, batch_size))
        vectors = np.concatenate(parts)
        return vectors[0] if single else vectors

    def pool_encoded(self, encodings: Sequence[Encoding], settings: VectorSettings, batch_size: int = 64) -> _Vectors:
        """As embed, for texts already encoded, truncated to `max_length`: (N, D), computed shortest first."""
        pooling = POOLINGS[settings.pooling]
        if prompt := self.prompt(settings.side):
            pieces = self.tokenizer.encode_pieces(prompt)
            encodings = [with_prompt(pieces, encoding, self.max_length) for encoding in encodings]
        network = self.fast_network if settings.reads_last(self.network.config.num_hidden_layers) else self.network

        def vector_of(model: nn.Module, batch: Batch) -> Tensor:
            hidden = hidden_of(model, batch, settings).float()
            return pooling.pool(hidden, weights_of(batch["attention_mask"], settings.special_tokens))  # (B, D)

        vectors = np.zeros((0, self.width(settings)), np.float32)
        if encodings:
            rows = ((encoding.input_ids, encoding.boundaries) for encoding in encodings)
            examples = Examples.of_rows(rows, [0] * len(encodings), self.tokenizer.pad_id)
            with self._naming_errors("vectors"):
                vectors = outputs(network, examples, vector_of, batch_size, **self.scoring)
        if settings.size is not None:
            vectors = vectors[:, : settings.size]
        return to_unit_length(vectors) if settings.normalize else vectors

    @overload
    def similarity(self, a: str, b: str, **asked: Unpack[VectorArgs]) -> float: ...  # type: ignore[overload-overlap]
    @overload
    def similarity(self, a: str | Iterable[str], b: str | Iterable[str], **asked: Unpack[VectorArgs]) -> _Vectors: ...
    def similarity(
        self, a: str | Iterable[str], b: str | Iterable[str], **asked: Unpack[VectorArgs]
    ) -> float | _Vectors:
        """Cosine of the vectors of a and b, -1 to 1; of lists, (N, M): that of each text of a with each of b.

        A single text and a list give (M,) or (N,).

        Args:
            **asked: As in `embed`.
        """
        first, second = (to_unit_length(self.embed(texts, **asked)) for texts in (a, b))
        cosines = first @ second.T
        return float(cosines) if isinstance(a, str) and isinstance(b, str) else np.asarray(cosines)

    @overload
    def parts(self, texts: str, unit: Unit = "morpheme", **asked: Unpack[VectorArgs]) -> TextParts: ...  # type: ignore[overload-overlap]
    @overload
    def parts(self, texts: Iterable[str], unit: Unit = "morpheme", **asked: Unpack[VectorArgs]) -> list[TextParts]: ...
    def parts(
        self, texts: str | Iterable[str], unit: Unit = "morpheme", **asked: Unpack[VectorArgs]
    ) -> TextParts | list[TextParts]:
        """The vectors of the pieces, morphemes or eojeols of a text, with their spans; a list for many texts.

        asked: layer and mix, as in `embed`. Parts beyond max_length are missing; one cut by max_length has the mean of
        its pieces before the cut.
        """
        listed, single = as_texts(texts, "texts")
        settings = self.vector_settings(**asked)
        with self._naming_errors():
            parts = parts_of(self.network, self.tokenizer, listed, unit, settings, self.max_length)
        return parts[0] if single else parts
