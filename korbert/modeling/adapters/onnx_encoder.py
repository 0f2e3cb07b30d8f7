"""Runs an encoder with ONNX Runtime, with the interface of Encoder. onnx_export.py makes the graph."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from korbert.errors import ModelError
from korbert.modeling.config import EncoderConfig, check_row
from korbert.system import package
from korbert.system.transformers_package import reason_of

_PLACES_AT_ONCE = 4_096  # rows x length per pass: attention holds a length x length matrix per row and head
_FEWEST_PLACES = 512  # of a pass, where rows are divided among threads
_PADDING = 64  # padded places per pass, at most: the fixed cost of a pass equals that of about 50 places
_ABSENT = ("all_layers", "attentions", "embeddings", "flat", "layers", "token_weight")


class OnnxEncoder(nn.Module):
    """An encoder as an ONNX graph: last layer only, no weights to train or copy, CPU only.

    graph: the path of a file, or its bytes. name: of the model, in errors. sha256: of the file. embeddings: (V, E), of
    the pieces, for a graph without them. As many passes run in parallel as PyTorch has threads at construction.
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
        self._threads = torch.get_num_threads()
        runtime = package("onnxruntime", f"{name}: this model")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1  # a pass is too small to be shared
        options.log_severity_level = 3
        try:
            self.session: Any = runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # its errors share no base class
            raise ModelError(
                "{name}: ONNX Runtime cannot run it ({reason}): export the model anew",
                name=name,
                reason=reason_of(error),
            ) from None

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        boundaries: Tensor | None = None,
        *,
        lengths: Sequence[int] | None = None,
    ) -> Tensor:
        """As Encoder.forward: (B, T) integers -> (B, T, D), 0 at padding. Rows of similar length run together."""
        batch, length = input_ids.shape
        check_row(self.config, length, is_limited=True, has_boundaries=boundaries is not None)
        ends = np.full(batch, length) if lengths is None else np.asarray(lengths)
        if attention_mask is None:
            attention_mask = torch.arange(length) < torch.from_numpy(ends)[:, None]
        tensors = {
            "input_ids": input_ids,
            "attention_mask": attention_mask,
            "token_type_ids": torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids,
            "boundaries": torch.zeros_like(input_ids) if boundaries is None else boundaries,
        }
        names = [entry.name for entry in self.session.get_inputs() if entry.name in tensors]
        columns = {name: tensors[name].long().numpy() for name in names}
        hidden = np.zeros((batch, length, self.config.hidden_size), np.float32)

        def run(rows: NDArray[np.intp]) -> None:
            longest = int(ends[rows[-1]])
            part = {name: column[rows, :longest] for name, column in columns.items()}
            if self.pieces is not None:
                part["vectors"] = self.pieces.detach().numpy()[input_ids[:, :longest].numpy()[rows]]
            hidden[rows, :longest] = self.session.run(None, part)[0]

        share = int(ends.sum()) // self._threads + length  # of each thread, with its last row
        groups = list(_groups(ends, min(_PLACES_AT_ONCE, max(_FEWEST_PLACES, share))))
        if len(groups) == 1:
            run(groups[0])
        else:
            with ThreadPoolExecutor(self._threads) as pool:
                list(pool.map(run, groups))
        return torch.from_numpy(hidden).masked_fill_(~attention_mask.bool()[:, :, None], 0.0)

    def state_dict(self, *args: object, **kwargs: object) -> NoReturn:
        """ModelError: there are no weights to save, copy or compare."""
        raise ModelError(
            "an encoder in an ONNX file has no weights to save or to train: use the model that it was exported from"
        )

    def __getattr__(self, name: str) -> Any:
        if name in _ABSENT:
            raise ModelError(
                "an encoder in an ONNX file gives only its last layer: use the model that it was exported from"
            )
        return super().__getattr__(name)


def _groups(lengths: NDArray[np.int64], max_places: int) -> Iterator[NDArray[np.intp]]:
    """Yields the numbers of rows of similar length, group by group; empty rows are left out.

    A group has at most `max_places` places, of which at most _PADDING are padding, unless it has only one row.
    """
    order = np.argsort(lengths, kind="stable")
    start = int((lengths == 0).sum())
    while start < len(order):
        stop = start + 1
        pieces = lengths[order[start]]
        while stop < len(order):
            longest = lengths[order[stop]]
            pieces += longest
            places = (stop + 1 - start) * longest
            if places > max_places or places - pieces > _PADDING:
                break
            stop += 1
        yield order[start:stop]
        start = stop
