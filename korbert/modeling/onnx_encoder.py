"""Runs an encoder with ONNX Runtime behind the interface of Encoder. onnx_export.py makes the graph."""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from korbert.errors import ModelError
from korbert.extras import package
from korbert.modeling.config import EncoderConfig, check_row

_MOST_PIECES = 4_096  # per pass: attention holds a length x length matrix per row and head
_LEAST_PIECES = 512  # per pass, if there are several: its fixed cost equals that of about 50 pieces
_ABSENT = ("all_layers", "attentions", "embeddings", "flat", "layers", "token_weight")


class OnnxEncoder(nn.Module):
    """An encoder as an ONNX graph: last layer only, no weights to train or copy, CPU only.

    graph: the path of a file, or its bytes. name: of the model, in errors. sha256: of the file. embeddings: (V, E), of
    the pieces, for a graph without them.
    SettingsError if the package is not installed; ModelError if the graph is broken.
    """

    def __init__(
        self,
        config: EncoderConfig,
        graph: str | bytes,
        name: str,
        *,
        sha256: str = "",
        embeddings: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.config = config
        self.sha256 = sha256
        self.nothing = nn.Parameter(torch.empty(0), requires_grad=False)  # carries the device, as weights would
        self.pieces = embeddings
        self._threads = torch.get_num_threads()  # of passes beside each other
        runtime = package("onnxruntime", f"{name}: this model")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1  # a product is too small to be shared
        options.log_severity_level = 3
        try:
            self.session: Any = runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # its errors share no base class
            reason = " ".join(str(error).split())[:300]
            raise ModelError(f"{name}: ONNX Runtime cannot run it ({reason}): export the model anew") from None

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        boundaries: Tensor | None = None,
        *,
        lengths: Sequence[int] | None = None,
    ) -> Tensor:
        """As Encoder.forward: (B, T) integers -> (B, T, D), 0 at padding. Short texts share rows."""
        batch, length = input_ids.shape
        check_row(self.config, length, is_limited=True, has_boundaries=boundaries is not None)
        zeros = torch.zeros_like(input_ids)
        tensors = {
            "input_ids": input_ids,
            "token_type_ids": zeros if token_type_ids is None else token_type_ids,
            "boundaries": zeros if boundaries is None else boundaries,
        }
        columns = {name: tensor.long().numpy().ravel() for name, tensor in tensors.items()}
        ends = [length] * batch if lengths is None else lengths
        mask = torch.arange(length) < torch.tensor(ends)[:, None] if attention_mask is None else attention_mask.bool()
        places = np.flatnonzero(mask.numpy())  # of all pieces, text after text
        sizes = mask.sum(dim=1).numpy()  # (B,)
        starts = np.cumsum(sizes) - sizes  # of the texts, in `places`
        names = {entry.name for entry in self.session.get_inputs()}
        hidden = np.zeros((batch * length, self.config.hidden_size), np.float32)

        def run(texts: NDArray[np.intp]) -> None:
            own = sizes[texts]
            begins, shape = _packed(own)
            numbers = np.repeat(np.arange(len(texts)), own)  # of the text of each piece
            offsets = np.arange(len(numbers)) - np.repeat(np.cumsum(own) - own, own)
            source, target = places[starts[texts][numbers] + offsets], begins[numbers] + offsets
            part = {name: np.zeros(shape, np.int64) for name in ("attention_mask", *columns)}
            part["attention_mask"].ravel()[target] = numbers + 1
            for name, column in columns.items():
                part[name].ravel()[target] = column[source]
            if self.pieces is not None:
                part["vectors"] = self.pieces.detach().numpy()[part["input_ids"]]
            (result,) = self.session.run(None, {name: part[name] for name in names})
            hidden[source] = result.reshape(-1, result.shape[-1])[target]

        passes = _passes(sizes, self._threads)
        if len(passes) == 1:
            run(passes[0])
        else:
            with ThreadPoolExecutor(self._threads) as pool:
                list(pool.map(run, passes))
        return torch.from_numpy(hidden).view(batch, length, -1)

    def state_dict(self, *args: object, **kwargs: object) -> NoReturn:
        """ModelError: there are no weights to save, copy or compare."""
        raise self._error("no weights to save or to train")

    def __getattr__(self, name: str) -> Any:
        if name in _ABSENT:
            raise self._error("only its last layer")
        return super().__getattr__(name)

    def _error(self, what: str) -> ModelError:
        return ModelError(f"an encoder in an ONNX file gives {what}: take the model that it was exported from")


def _passes(sizes: NDArray[np.int64], threads: int) -> list[NDArray[np.intp]]:
    """Splits texts of these sizes into passes of similar sizes, and of about equally many pieces."""
    order = np.argsort(sizes, kind="stable")
    order = order[sizes[order] > 0]
    ends = np.cumsum(sizes[order])
    total = int(sizes.sum())
    number = max(math.ceil(total / _MOST_PIECES), min(threads, total // _LEAST_PIECES))
    parts = np.split(order, np.searchsorted(ends, total * np.arange(1, number) / number))
    return [part for part in parts if len(part)]


def _packed(sizes: NDArray[np.int64]) -> tuple[NDArray[np.int64], tuple[int, int]]:
    """Packs texts into rows as wide as the longest, longest first, each into the first row with room.

    Returns where each begins in the matrix of rows, and the matrix's shape.
    """
    width = int(sizes.max())
    begins, used = np.zeros(len(sizes), np.int64), list[int]()
    for text in np.argsort(-sizes, kind="stable"):
        size = int(sizes[text])
        row = next((row for row, end in enumerate(used) if end + size <= width), len(used))
        if row == len(used):
            used.append(0)
        begins[text] = row * width + used[row]
        used[row] += size
    return begins, (len(used), width)
