"""Encoders in ONNX, which ONNX Runtime computes faster than PyTorch on CPU.

1. `graph_of` expresses Encoder in ONNX operators, for rows padded to one length.
2. `quantize` makes a loaded model run in 8 bits. The graph stays in memory, the piece embeddings in the model.
3. `export_onnx` writes the graph next to the head and the tokenizer, and compares the result with the model. The folder
   is read like any other (storage.load_model); OnnxEncoder runs the file.
"""

import copy
from pathlib import Path
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from korbert.errors import ModelError, ModelFailed
from korbert.folders import model_folder
from korbert.messages import Message, argument
from korbert.modeling.adapters.onnx_encoder import OnnxEncoder
from korbert.modeling.attention import rotation
from korbert.modeling.config import EncoderConfig
from korbert.modeling.embeddings import Embeddings
from korbert.modeling.encoder import BertLayer, Encoder, ModernLayer
from korbert.modeling.features import LayerReader
from korbert.modeling.files.storage import ONNX_FILE, load_model, read_config, write_files
from korbert.modeling.models import DetectionModel, EncoderModel, Network, PretrainingModel
from korbert.system import new_folder, package, sha256_of, write_bytes_atomically
from korbert.tokenization import FIRST_PIECE, AnyTokenizer, pad_batch

TOLERANCE = 1e-4  # absolute, for vectors in 32 bits; relative to the largest number if that is above 1

_OPSET = 23  # the first with Attention and RotaryEmbedding
_IR_VERSION = 10  # of the file format; packages older than the opset read it, too
_OF_RUNTIME = "com.microsoft"  # operators that are ONNX Runtime's own
_SMALLEST = 1e-9  # lower bound of a row's largest number, against a division by 0
_UNSEEN = -1e9  # added to the scores of masked pieces; finite, as a softmax over nothing is NaN

TEXTS = (  # whose vectors and scores exports are compared by
    "아버지가 방에 들어가신다.",
    "나는 어제 학교에 갔다가 친구를 만났는데, 정말 반가웠어!",
    "대한민국의 수도는 서울이다.\n인구는 약 940만 명이다.",
    "진짜 재밌었음ㅋㅋㅋㅋ 강추 👍🏻 [MASK] 2020년作",
    "ㅋ" * 700 + " 끝",
    "",
)


class _Graph:
    """An ONNX graph under construction. Values are referred to by name. bits: of the matrix products, 7, 8 or 32."""

    def __init__(self, bits: int) -> None:
        self.onnx = package("onnx", "an encoder in ONNX")
        self.bits = bits
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self._rounded: dict[str, tuple[str, str]] = {}

    def op(self, kind: str, *inputs: str, **attributes: object) -> str:
        """Adds an operator and returns the name of its result. domain: of an operator that is not of ONNX itself."""
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [name], **attributes))
        return name

    def constant(self, values: Tensor | list[int] | float) -> str:
        """Adds a constant of any shape: a Parameter, a Tensor, a list, an int or a float (float32)."""
        tensor = values if isinstance(values, Tensor) else torch.tensor(values)
        name = f"constant_{len(self.weights)}"
        array = tensor.detach().cpu().contiguous().numpy()
        self.weights.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def product(self, hidden: str, layer: nn.Module, rows: slice = slice(None)) -> str:
        """Applies nn.Linear, or only `rows` of its outputs; or nn.Identity."""
        if isinstance(layer, nn.Identity):
            return hidden
        assert isinstance(layer, nn.Linear)
        weight = layer.weight[rows]
        if self.bits <= 8:
            product = self._product_in_8_bits(hidden, weight)
        else:
            product = self.op("MatMul", hidden, self.constant(weight.T))
        return product if layer.bias is None else self.op("Add", product, self.constant(layer.bias[rows]))

    def _product_in_8_bits(self, hidden: str, weight: Tensor) -> str:
        """Multiplies hidden (B, T, I), quantized per piece, by weight (O, I), quantized per row: (B, T, O) float32."""
        zero = self.constant(torch.tensor(128, dtype=torch.uint8))
        if hidden not in self._rounded:
            pieces = self.op("Reshape", hidden, self.constant([-1, weight.shape[1]]))
            largest = self.op("ReduceMax", self.op("Abs", pieces), self.constant([1]), keepdims=0)
            scales = self.op("Mul", self.op("Max", largest, self.constant(_SMALLEST)), self.constant(1 / 127))
            zeros = self.op("Expand", zero, self.op("Shape", scales))
            rounded = self.op("QuantizeLinear", pieces, scales, zeros, axis=0)
            self._rounded[hidden] = rounded, self.op("Unsqueeze", scales, self.constant([1]))
        rounded, scales = self._rounded[hidden]
        max_integer = 2 ** (self.bits - 1) - 1
        weight_scales = weight.detach().abs().amax(dim=1).clamp(min=_SMALLEST) / max_integer  # (O,)
        integers = self.constant((weight.detach() / weight_scales[:, None]).round().to(torch.int8).T)
        parts = (rounded, integers, self.constant(1.0), self.constant(weight_scales), zero)
        product = self.op("MatMulIntegerToFloat", *parts, domain=_OF_RUNTIME)
        rows = self.op("Slice", self.op("Shape", hidden), self.constant([0]), self.constant([-1]))
        shape = self.op("Concat", rows, self.constant([len(weight)]), axis=0)
        return self.op("Reshape", self.op("Mul", product, scales), shape)

    def norm(self, hidden: str, layer: nn.Module) -> str:
        """Applies nn.LayerNorm, with or without bias; or nn.Identity."""
        if isinstance(layer, nn.Identity):
            return hidden
        assert isinstance(layer, nn.LayerNorm)
        weights = [self.constant(weight) for weight in (layer.weight, layer.bias) if weight is not None]
        return self.op("LayerNormalization", hidden, *weights, axis=-1, epsilon=layer.eps)


def graph_of(encoder: Encoder, bits: int = 32, *, vectors_given: bool = False) -> bytes:
    """The encoder in eval mode as the bytes of an onnx.ModelProto. Same weights, same bytes.

    Inputs are (B, T) int64: input_ids, attention_mask, and token_type_ids and boundaries if the encoder needs them
    (token_type_ids also for an overlap embedding).
    The output `hidden` is (B, T, D) float32; vectors at padding positions are undefined.
    bits: 8 quantizes matrix products: weights now, with a scale per output, and inputs at run time, with one per piece.
    7 leaves a bit of the weights free, for processors without VNNI, on which sums of two products overflow 16 bits.
    vectors_given: an input `vectors`, (B, T, E) float32, stands for the table of piece embeddings and for input_ids,
    which only an overlap embedding reads then.
    """
    config = encoder.config
    graph = _Graph(bits)
    shape = graph.op("Shape", "attention_mask")
    positions = graph.op("Range", graph.constant(0), graph.op("Gather", shape, graph.constant(1)), graph.constant(1))
    hidden, names = _add_embeddings(graph, encoder.embeddings, positions, vectors_given)
    kinds = {config.is_global(number) for number in range(config.num_hidden_layers)}
    views = {is_global: _view(graph, config, shape, positions, is_global) for is_global in sorted(kinds)}
    for number in range(config.num_hidden_layers):
        layer: Any = encoder.layers[number // config.layers_per_set]
        hidden = _layer(graph, config, layer, hidden, views[config.is_global(number)])
    hidden = graph.norm(hidden, encoder.final_norm)
    if encoder.piece_weight is not None:
        hidden = graph.op("Mul", hidden, graph.op("Sigmoid", graph.product(hidden, encoder.piece_weight)))
    graph.op("Identity", hidden)
    graph.nodes[-1].output[0] = "hidden"

    helper = graph.onnx.helper
    types = graph.onnx.TensorProto
    inputs = [helper.make_tensor_value_info(name, types.INT64, ["B", "T"]) for name in names]
    if vectors_given:
        inputs.append(helper.make_tensor_value_info("vectors", types.FLOAT, ["B", "T", config.embedding_width]))
    output = helper.make_tensor_value_info("hidden", types.FLOAT, ["B", "T", config.hidden_size])
    onnx_graph = helper.make_graph(graph.nodes, "encoder", inputs, [output], graph.weights)
    opsets = [helper.make_opsetid("", _OPSET)]
    if bits <= 8:
        opsets.append(helper.make_opsetid(_OF_RUNTIME, 1))
    model = helper.make_model(onnx_graph, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="korbert")
    return bytes(model.SerializeToString())


def _add_embeddings(
    graph: _Graph, embeddings: Embeddings, positions: str, vectors_given: bool
) -> tuple[str, list[str]]:
    """The embeddings of the pieces, (B, T, D), and the names of the integers that the encoder needs."""
    hidden = "vectors" if vectors_given else graph.op("Gather", graph.constant(embeddings.token.weight), "input_ids")
    tables = {
        "token_type_ids": embeddings.token_type,
        "boundaries": embeddings.boundary,
        positions: embeddings.position,
    }
    for ids, table in tables.items():
        if table is not None:
            hidden = graph.op("Add", hidden, graph.op("Gather", graph.constant(table.weight), ids))
    if embeddings.overlap is not None:
        # embeddings.occurs_in_both as 1.0 and 0.0, (B, T, 1): whether a piece is in both segments of its row.
        last_axis = graph.constant([2])
        middle_axis = graph.constant([1])
        same_piece, same_segment = (
            graph.op("Equal", graph.op("Unsqueeze", name, last_axis), graph.op("Unsqueeze", name, middle_axis))
            for name in ("input_ids", "token_type_ids")
        )
        matches = graph.op("And", same_piece, graph.op("Not", same_segment))  # (B, T, T)
        is_ordinary_piece = graph.op("GreaterOrEqual", "input_ids", graph.constant(FIRST_PIECE))
        matches = graph.op("And", matches, graph.op("Unsqueeze", is_ordinary_piece, last_axis))
        matches = graph.op("Cast", matches, to=graph.onnx.TensorProto.FLOAT)
        occurs_in_both = graph.op("ReduceMax", matches, last_axis, keepdims=1)
        hidden = graph.op("Add", hidden, graph.op("Mul", occurs_in_both, graph.constant(embeddings.overlap.weight)))
    hidden = graph.product(graph.norm(hidden, embeddings.norm), embeddings.projection)
    candidates = {
        "attention_mask": True,
        "input_ids": not vectors_given or embeddings.overlap is not None,
        "token_type_ids": embeddings.token_type is not None,
        "boundaries": embeddings.boundary is not None,
    }
    names = [name for name, is_needed in candidates.items() if is_needed]
    if embeddings.overlap is not None and embeddings.token_type is None:
        names.append("token_type_ids")
    return hidden, names


def _view(graph: _Graph, config: EncoderConfig, shape: str, places: str, is_global: bool) -> tuple[str, list[str]]:
    """Additive attention mask of global or local layers, (B, 1, T, T), and the inputs of RotaryEmbedding, if any."""
    batch = graph.op("Gather", shape, graph.constant([0]))
    length = graph.op("Gather", shape, graph.constant([1]))
    square = graph.op("Concat", batch, graph.constant([1]), length, length, axis=0)
    mask = graph.op("Cast", "attention_mask", to=graph.onnx.TensorProto.BOOL)
    visible = graph.op("Expand", graph.op("Unsqueeze", mask, graph.constant([1, 2])), square)
    if not is_global:
        column = graph.op("Unsqueeze", places, graph.constant([1]))  # (T, 1)
        distance = graph.op("Abs", graph.op("Sub", column, places))
        visible = graph.op(
            "And", visible, graph.op("LessOrEqual", distance, graph.constant(config.local_attention // 2))
        )
    added = graph.op("Where", visible, graph.constant(0.0), graph.constant(_UNSEEN))
    if config.architecture != "modern":
        return added, []
    theta = config.global_rope_theta if is_global else config.local_rope_theta
    turns = rotation(torch.arange(config.max_position_embeddings), config.head_size, theta)
    return added, [*map(graph.constant, turns), graph.op("Expand", places, shape)]


def _layer(
    graph: _Graph, config: EncoderConfig, layer: ModernLayer | BertLayer, hidden: str, view: tuple[str, list[str]]
) -> str:
    """A layer of the encoder: its output, (B, T, D).

    Query, key and value, and both halves of the gate, are separate products: splitting one result is slower.
    """
    modern = config.architecture == "modern"
    heads = config.num_attention_heads
    width = config.hidden_size
    added, turns = view
    normed = graph.norm(hidden, layer.attention_norm) if modern else hidden
    states = [
        graph.product(normed, layer.attention.qkv, slice(start, start + width)) for start in range(0, 3 * width, width)
    ]
    if turns:
        states[:2] = [graph.op("RotaryEmbedding", state, *turns, num_heads=heads) for state in states[:2]]
    mixed = graph.op("Attention", *states, added, q_num_heads=heads, kv_num_heads=heads)
    hidden = graph.op("Add", hidden, graph.product(mixed, layer.attention.output))
    if modern:
        normed = graph.norm(hidden, layer.feed_forward_norm)
        content = graph.product(normed, layer.up, slice(config.intermediate_size))
        gate = graph.product(normed, layer.up, slice(config.intermediate_size, None))
        gated = graph.op("Mul", graph.op("Gelu", content), gate)
        return graph.op("Add", hidden, graph.product(gated, layer.down))
    hidden = graph.norm(hidden, layer.attention_norm)
    fed = graph.product(graph.op("Gelu", graph.product(hidden, layer.up)), layer.down)
    return graph.norm(graph.op("Add", hidden, fed), layer.feed_forward_norm)


def quantizable(model: Network) -> bool:
    """Whether the model has an encoder of our own on the CPU, as `quantize` needs."""
    encoder: Any = model.encoder
    is_supported = isinstance(encoder, Encoder) and not isinstance(model, LayerReader)
    return is_supported and encoder.token_weight.device.type == "cpu"


def quantize(model: Network) -> Network:
    """A copy of a `quantizable` model whose encoder runs in 8 bits with ONNX Runtime.

    Piece embeddings and heads are shared with the model. The encoder returns only its last layer; a row's vectors do
    not depend on the other rows. SettingsError if the packages are not installed.
    """
    encoder: Any = model.encoder
    bits = 8 if torch.cpu.get_capabilities().get("avx512_vnni") else 7
    graph = graph_of(encoder, bits, vectors_given=True)
    quantized = OnnxEncoder(encoder.config, graph, "precision int8", embeddings=encoder.token_weight)
    shared: dict[int, Any] = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    return copy.deepcopy(model, {**shared, id(encoder): quantized})


def export_onnx(source: str | Path, folder: str | Path, bits: Literal[8, 32] = 32) -> dict[str, float]:
    """Exports the model in `source` to a new `folder` whose encoder is an ONNX file, and compares the two.

    A pretrained model becomes an encoder without a head, for vectors only.
    bits: of matrix products, see graph_of.
    Returns the largest absolute difference between piece vectors, and the lowest cosine between text vectors, over
    sentences of different lengths.
    SettingsError if packages are not installed, and for a folder that holds anything or lies in the source; ModelError
    for an encoder of `transformers` or a head on several layers, and in 32 bits for a difference above TOLERANCE.
    """
    for name in ("onnx", "onnxruntime"):
        package(name, "export --onnx")
    source = model_folder(source)
    with new_folder(Path(folder), source) as staging:
        model, tokenizer = load_model(source)
        encoder = model.encoder
        if isinstance(model, LayerReader) or not isinstance(encoder, Encoder):
            reason = Message("an encoder of transformers")
            if isinstance(model, LayerReader):
                reason = Message("a head on several layers of an encoder")
            elif isinstance(encoder, OnnxEncoder):
                reason = Message("already an ONNX file")
            raise ModelError(
                "{source}: {reason}, which export {option} cannot export: use the model as it is",
                source=source,
                reason=reason,
                option=argument("onnx"),
            )
        config = {name: value for name, value in read_config(source).items() if name != "packed"}
        heads = {name: tensor for name, tensor in model.state_dict().items() if not name.startswith("encoder.")}
        if isinstance(model, PretrainingModel | DetectionModel):
            config |= {"kind": EncoderModel.kind, "head": {}}
            heads = {}
        write_bytes_atomically(staging / ONNX_FILE, graph_of(encoder, bits))
        tokenizer.save(staging / "tokenizer")
        write_files(staging, config | {"onnx": {"sha256": sha256_of(staging / ONNX_FILE), "bits": bits}}, heads)
        return _compare(encoder, load_model(staging)[0].encoder, tokenizer, bits)


def _compare(encoder: Encoder, exported: nn.Module, tokenizer: AnyTokenizer, bits: int) -> dict[str, float]:
    """Compares both encoders on TEXTS; returns what export_onnx does.

    ModelFailed for a difference above TOLERANCE in 32 bits.
    """
    encodings = tokenizer.encode_batch(TEXTS, max_length=encoder.config.max_position_embeddings, workers=0)
    columns = pad_batch(encodings, tokenizer.pad_id)
    del columns["special_tokens_mask"]
    batch = {name: torch.from_numpy(rows) for name, rows in columns.items()}
    with torch.inference_mode():
        expected = encoder(**batch)  # (B, T, D)
        computed = exported(**batch)
    difference = float((expected - computed).abs().max())
    if bits == 32 and not difference <= TOLERANCE * max(1.0, float(expected.abs().max())):
        raise ModelFailed(
            "export {option}: vectors differ by {difference:.1e}, more than {tolerance:.0e}: report this",
            difference=difference,
            tolerance=TOLERANCE,
            option=argument("onnx"),
        )
    cosine = float(F.cosine_similarity(expected.sum(dim=1), computed.sum(dim=1)).min())
    return {"vectors": difference, "cosine": cosine}
