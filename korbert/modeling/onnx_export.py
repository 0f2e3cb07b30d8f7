"""Model folders whose encoder is an ONNX file, which ONNX Runtime computes faster than PyTorch on a processor.

1. PaddedEncoder computes what Encoder does, in operators of ONNX, for rows that are padded to one length.
2. `export_onnx` writes it beside the head and the tokenizer, and compares what it has written with the model.

Such a folder is read like any other (storage.load_model); OnnxEncoder runs the file.
"""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from korbert.durable import sha256_of
from korbert.errors import ModelError, SettingsError
from korbert.folders import model_folder
from korbert.modeling.attention import rotation
from korbert.modeling.encoder import Encoder
from korbert.modeling.features import FeatureModel
from korbert.modeling.models import DetectionModel, EncoderModel, Model, PretrainingModel
from korbert.modeling.onnx_encoder import OnnxEncoder, package
from korbert.modeling.storage import ONNX_FILE, load_model, read_config, write_files
from korbert.tokenization import AnyTokenizer, pad_batch
from korbert.vectors.counts import PieceCounts

__all__ = ["TOLERANCE", "PaddedEncoder", "export_onnx"]

TOLERANCE = 1e-4  # of vectors in 32 bits, or of the largest number where that is above 1

_OPSET = 23  # the first with Attention and RotaryEmbedding
_UNSEEN = -1e9  # added to the scores of pieces that are not seen; finite, as a mean over nothing is NaN

_TEXTS = (
    "아버지가 방에 들어가신다.",
    "나는 어제 학교에 갔다가 친구를 만났는데, 정말 반가웠어!",
    "대한민국의 수도는 서울이다.\n인구는 약 940만 명이다.",
    "진짜 재밌었음ㅋㅋㅋㅋ 강추 👍🏻 2020년作",
    "우리나라의 옛 이야기에는 호랑이가 자주 나온다. " * 40,
    "",
)


class PaddedEncoder(nn.Module):
    """The vectors of an Encoder in eval mode, computed by operators that ONNX has.

    Products whose results are used apart have weights apart: cutting a result costs more time than a second product.
    """

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.config = config = encoder.config
        self.encoder = encoder
        self.qkv = nn.ModuleList(_split(layer.attention.qkv, 3) for layer in encoder.layers)  # type: ignore[union-attr, arg-type]
        if config.architecture == "modern":
            self.up = nn.ModuleList(_split(layer.up, 2) for layer in encoder.layers)  # type: ignore[arg-type]
            places = torch.arange(config.max_position_embeddings)
            for name, theta in (("global", config.global_rope_theta), ("local", config.local_rope_theta)):
                cosines, sines = rotation(places, config.head_size, theta)
                self.register_buffer(f"{name}_cosines", cosines)
                self.register_buffer(f"{name}_sines", sines)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        token_type_ids: Tensor | None = None,
        boundaries: Tensor | None = None,
    ) -> Tensor:
        """All tensors: (B, T) int64. Returns (B, T, D); vectors at padding mean nothing.

        token_type_ids, boundaries: where the encoder has such embeddings, and nowhere else.
        """
        config, encoder = self.config, self.encoder
        modern = config.architecture == "modern"
        batch, length = input_ids.shape
        places = torch.arange(length)

        parts = encoder.embeddings
        hidden = parts.token(input_ids)
        if parts.token_type is not None:
            hidden = hidden + parts.token_type(token_type_ids)
        if parts.position is not None:
            hidden = hidden + parts.position(places)
        if parts.boundary is not None:
            hidden = hidden + parts.boundary(boundaries)
        hidden = parts.projection(parts.norm(hidden))

        seen = attention_mask.bool()[:, None, None, :].expand(batch, 1, length, length)
        if config.causal:
            seen = seen & (places <= places[:, None])
        near = (places[:, None] - places).abs() <= config.local_attention // 2
        masks = {True: torch.where(seen, 0.0, _UNSEEN), False: torch.where(seen & near, 0.0, _UNSEEN)}

        for number in range(config.num_hidden_layers):
            own = number // config.layers_share
            layer: Any = encoder.layers[own]
            whole = config.is_global(number)
            normed = layer.attention_norm(hidden) if modern else hidden
            query, key, value = (product(normed) for product in self.qkv[own])  # type: ignore[union-attr]
            if modern:
                query, key = self._turned(query, places, whole), self._turned(key, places, whole)
            heads = config.num_attention_heads
            mixed = torch.onnx.ops.attention(query, key, value, masks[whole], q_num_heads=heads, kv_num_heads=heads)[0]
            hidden = hidden + layer.attention.output(mixed)
            if modern:
                normed = layer.feed_forward_norm(hidden)
                content, gate = (product(normed) for product in self.up[own])  # type: ignore[union-attr]
                hidden = hidden + layer.down(F.gelu(content) * gate)
            else:
                hidden = layer.attention_norm(hidden)
                hidden = layer.feed_forward_norm(hidden + layer.down(F.gelu(layer.up(hidden))))
        normed = encoder.final_norm(hidden)
        return normed

    def _turned(self, states: Tensor, places: Tensor, whole: bool) -> Tensor:
        """Queries or keys, (B, T, D), turned by their positions."""
        name = "global" if whole else "local"
        turned: Tensor = torch.onnx.ops.rotary_embedding(
            states,
            self.get_buffer(f"{name}_cosines"),
            self.get_buffer(f"{name}_sines"),
            places.expand(states.shape[0], -1),
            num_heads=self.config.num_attention_heads,
        )
        return turned


def _split(product: nn.Linear, count: int) -> nn.ModuleList:
    """Products that each give one of `count` equal parts of the result."""
    width = product.out_features // count
    found = nn.ModuleList()
    for place in range(count):
        part = nn.Linear(product.in_features, width, bias=product.bias is not None)
        rows = slice(place * width, (place + 1) * width)
        part.weight = nn.Parameter(product.weight.detach()[rows].clone())
        if product.bias is not None:
            part.bias = nn.Parameter(product.bias.detach()[rows].clone())
        found.append(part)
    return found


def export_onnx(source: str | Path, folder: str | Path, bits: Literal[8, 32] = 32) -> dict[str, float]:
    """Writes the model in `source` as a new `folder` whose encoder is an ONNX file, and compares the two.

    A pretrained model becomes an encoder without its head, for vectors alone. Counts of its pieces come along, if there
    are (korbert.vectors.PieceCounts).
    bits: 8 has ONNX Runtime multiply in 8 bits, with weights rounded now, one scale a matrix, and inputs as they come.
    Returns the largest absolute difference of the vectors of pieces, and the least cosine between those of a text, over
    sentences of unlike lengths.

    ModelError where packages are not installed, for an encoder of `transformers`, a head on features and a folder that
    is there; and in 32 bits for a difference above TOLERANCE.
    """
    for name in ("onnx", "onnxscript", "onnxruntime"):
        package(name, "export --onnx")
    source, folder = model_folder(source), Path(folder)
    if folder.exists():
        raise ModelError(f"{folder}: is there already: name a new folder")
    model, tokenizer = load_model(source)
    encoder: Any = model.encoder
    if isinstance(model, FeatureModel) or not isinstance(encoder, Encoder):
        raise ModelError(f"{source}: {_kind(model)}, which export --onnx does not write: use the model as it is")

    config = read_config(source)
    config.pop("packed", None)
    heads = {name: tensor for name, tensor in model.state_dict().items() if not name.startswith("encoder.")}
    if isinstance(model, PretrainingModel | DetectionModel):
        config |= {"kind": EncoderModel.kind, "head": {}}
        heads = {}
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".export-", dir=folder.parent) as aside:
        new = Path(aside) / "model"
        new.mkdir()
        _write_file(encoder, new / ONNX_FILE, bits)
        write_files(new, config | {"onnx": {"sha256": sha256_of(new / ONNX_FILE), "bits": bits}}, heads)
        tokenizer.save(new / "tokenizer")
        with suppress(SettingsError):  # there are none beside the source
            PieceCounts.find(None, str(source), tokenizer).save(new)
        differences = _compare(encoder, load_model(new)[0].encoder, tokenizer, bits)
        new.rename(folder)
    return differences


def _kind(model: Model) -> str:
    if isinstance(model, FeatureModel):
        return "a head on layers of a frozen encoder"
    return "an ONNX file already" if isinstance(model.encoder, OnnxEncoder) else "an encoder of transformers"


def _write_file(encoder: Encoder, path: Path, bits: int) -> None:
    import onnx

    config = encoder.config
    names = ["input_ids", "attention_mask"]
    names += ["token_type_ids"] * bool(config.type_vocab_size) + ["boundaries"] * config.boundary_embedding
    example = {name: torch.ones(3, 7, dtype=torch.long) for name in names}
    sizes = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    with _quietly(), torch.no_grad():
        program = torch.onnx.export(
            PaddedEncoder(encoder).eval(),
            kwargs=example,
            input_names=names,
            output_names=["hidden"],
            dynamic_shapes=dict.fromkeys(names, sizes),
            opset_version=_OPSET,
            dynamo=True,
            verbose=False,
        )
        assert program is not None
        written = program.model_proto
        for node in written.graph.node:
            del node.metadata_props[:]  # the lines of code that made it, with paths of this machine
        if bits == 32:
            onnx.save(written, path)
            return
        from onnxruntime.quantization import QuantType, quantize_dynamic

        quantize_dynamic(written, path, op_types_to_quantize=["MatMul", "Gemm"], weight_type=QuantType.QInt8)


def _compare(ours: Any, theirs: Any, tokenizer: AnyTokenizer, bits: int) -> dict[str, float]:
    """ModelError for a difference above TOLERANCE in 32 bits."""
    encodings = tokenizer.encode_batch(_TEXTS, max_length=ours.config.max_position_embeddings, workers=0)
    batch = {name: torch.as_tensor(rows) for name, rows in pad_batch(encodings, tokenizer.pad_id).items()}
    with torch.inference_mode():
        first, second = ours(**batch), theirs(**batch)  # (B, T, D)
    difference, largest = float((first - second).abs().max()), float(first.abs().max())
    if bits == 32 and not difference <= TOLERANCE * max(1.0, largest):
        raise ModelError(f"export --onnx: its vectors differ by {difference:.1e}, not {TOLERANCE:.0e}: report this")
    cosine = float(F.cosine_similarity(first.sum(dim=1), second.sum(dim=1)).min())
    return {"vectors": difference, "cosine": cosine}


@contextmanager
def _quietly() -> Iterator[None]:
    """No warnings and advice of PyTorch's exporter, and of the quantizer."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
