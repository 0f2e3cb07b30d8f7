"""Caches vectors of a frozen encoder for rows of pieces, in files that later runs reuse.

A file holds one layer for a part of the rows: `vectors-<made from>-layer-<place>-<content>.npy`, (P, D), the pieces
of all rows concatenated, or one pooled vector per row. The first digest covers the encoder's config and weights, the
rows, the number format and the hardware (CPU, device, precision); the second is that of the file's bytes, to detect
damage. Files are memory-mapped: memory holds only what a batch needs.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from korbert.durable import intact, sha256_of, write_aside
from korbert.errors import ModelError
from korbert.modeling.config import AnyConfig
from korbert.modeling.heads import mean_of_pieces
from korbert.progress import track
from korbert.training.devices import autocast, moved, numerics
from korbert.training.examples import Examples
from korbert.training.scoring import model_inputs
from korbert.world import from_first

_PART_ROWS = 20_000  # most that an interrupted run computes again
_BATCH_PIECES = 8_192
_ROWS_AT_ONCE = 128  # for their mean and deviation
_PRECISION: Final = "fp32"  # of the encoder

_Kept = tuple[Mapping[int, NDArray[Any]], slice]
"""Layer -> the vectors of a part of the rows, (P, D), and the range in these of a row."""


@dataclass(frozen=True)
class Keeping:
    """Where and how vectors are cached.

    layers: indices, 0 being the embeddings. pooling: keep one vector per row; None: one per piece.
    """

    folder: Path
    layers: Sequence[int]
    pooling: Literal["mean", "first"] | None
    device: torch.device
    numbers: Literal["float16", "float32"] = "float16"


class KeptVectors(nn.Module):
    """Stand-in for an encoder with cached vectors: all_layers looks a row up by its pieces. It has no weights.

    config: that of the encoder. origin: the encoder.
    """

    def __init__(self, origin: nn.Module, rows: Mapping[bytes, _Kept]) -> None:
        super().__init__()
        self.config: AnyConfig = origin.config  # type: ignore[assignment]
        self._origin = (origin,)  # in a tuple, so that its weights are not registered here
        self._rows = rows

    @property
    def origin(self) -> nn.Module:
        return self._origin[0]

    def all_layers(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None,
        boundaries: Tensor | None = None, *, lengths: Sequence[int], only: Sequence[int],
    ) -> Tensor:  # fmt: skip
        """As Encoder.all_layers; (K, B, 1, D) for pooled vectors. KeyError for a row or layer that is not cached."""
        ids = input_ids.cpu().numpy()
        levels = np.zeros_like(ids) if boundaries is None else boundaries.cpu().numpy()
        types = np.zeros_like(ids) if token_type_ids is None else token_type_ids.cpu().numpy()
        rows = [
            self._of_row(_key(own[:length], level[:length], length - int(kind[:length].sum())), only)
            for own, level, kind, length in zip(ids, levels, types, lengths, strict=True)
        ]
        width = max(len(layers[0]) for layers in rows)
        vectors = np.zeros((len(only), len(rows), width, self.config.hidden_size), dtype=np.float32)
        for row, layers in enumerate(rows):
            for number, own in enumerate(layers):
                vectors[number, row, : len(own)] = own
        return torch.from_numpy(vectors).to(input_ids.device)

    def spread(self, examples: Examples, only: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of each dimension over the cached vectors of the rows: (K, D) both."""
        sums = np.zeros((2, len(only), self.config.hidden_size))
        count = 0
        keys = [_key(*row) for row in _rows(examples)]
        for start in range(0, len(keys), _ROWS_AT_ONCE):
            rows = [self._of_row(key, only) for key in keys[start : start + _ROWS_AT_ONCE]]
            for number, layer in enumerate(zip(*rows, strict=True)):
                vectors = np.concatenate(layer).astype(np.float64)
                sums[:, number] += vectors.sum(axis=0), np.square(vectors).sum(axis=0)
            count += len(vectors)
        mean, square = sums / max(count, 1)
        deviation = np.sqrt(np.maximum(square - mean**2, 0))
        return torch.from_numpy(mean).float(), torch.from_numpy(deviation).float()

    def _of_row(self, key: bytes, only: Sequence[int]) -> list[NDArray[Any]]:
        """(P, D) of each layer."""
        layers, place = self._rows[key]
        return [layers[layer][place] for layer in only]


def keep_vectors(
    encoder: nn.Module, examples: Sequence[Examples], keeping: Keeping, description: str = "vectors"
) -> KeptVectors:
    """Caches the vectors of all distinct rows; missing or damaged ones are computed.

    With several connected processes, one computes. ModelError if a vector is not finite in the format of `keeping`.
    """
    distinct = {_key(*row): row for own in examples for row in _rows(own)}
    keys = list(distinct)
    pairs = any(own.seconds is not None for own in examples)
    seconds = np.array([second for _, _, second in distinct.values()], dtype=np.int64) if pairs else None
    flat = ((ids, levels) for ids, levels, _ in distinct.values())
    rows = Examples.of_rows(flat, np.zeros(len(keys)), examples[0].pad_id if examples else 0, seconds)
    made_from = _digest(encoder, keeping)
    parts: list[tuple[str, slice]] = []  # beginning of the names of its files, and its rows
    for start in range(0, len(keys), _PART_ROWS):
        part = slice(start, start + _PART_ROWS)
        digest = made_from.copy()
        digest.update(b"".join(keys[part]))
        parts.append((f"vectors-{digest.hexdigest()[:32]}", part))

    def make() -> None:
        was_training = encoder.training
        encoder.eval()
        with track(description, len(keys), "rows") as advance:
            for name, part in parts:
                missing = [layer for layer in keeping.layers if not intact(keeping.folder, f"{name}-layer-{layer}")]
                if missing:
                    _compute(encoder, rows, part, missing, name, keeping)
                advance(len(keys[part]))
        encoder.train(was_training)

    from_first(make)
    kept: dict[bytes, _Kept] = {}
    for name, part in parts:
        layers = {}
        for layer in keeping.layers:
            path = next(keeping.folder.glob(f"{name}-layer-{layer}-*.npy"), None)
            if path is None:
                raise ModelError(f"{keeping.folder}: the vectors of layer {layer} are missing: run this again")
            layers[layer] = np.load(path, mmap_mode="r")
        offsets = _offsets(rows, part, keeping)
        kept |= {key: (layers, slice(*ends)) for key, ends in zip(keys[part], pairwise(offsets), strict=True)}
    return KeptVectors(encoder, kept)


def _offsets(rows: Examples, part: slice, keeping: Keeping) -> list[int]:
    """Where the vectors of each row of a part begin in its files; behind these, where the last ones end."""
    lengths = rows.lengths[part] if keeping.pooling is None else np.ones_like(rows.lengths[part])
    offsets: list[int] = np.cumsum([0, *lengths]).tolist()
    return offsets


def _compute(encoder: Any, rows: Examples, part: slice, layers: Sequence[int], name: str, keeping: Keeping) -> None:
    """Writes the files of some layers of a part. Rows of similar length are computed together."""
    keeping.folder.mkdir(parents=True, exist_ok=True)
    offsets = _offsets(rows, part, keeping)
    asides = [keeping.folder / f".{name}-layer-{layer}.tmp" for layer in layers]
    shape = (offsets[-1], encoder.config.hidden_size)
    maps = [np.lib.format.open_memmap(path, "w+", keeping.numbers, shape) for path in asides]
    with torch.inference_mode(), autocast(keeping.device, _PRECISION):
        for numbers in _alike(rows.lengths[part]):
            batch = moved(rows.batch(numbers + part.start), keeping.device)
            computed = encoder.all_layers(**model_inputs(batch), only=layers)
            for hidden, file in zip(computed.float(), maps, strict=True):
                for number, vectors in zip(numbers, _flat(hidden, batch, keeping), strict=True):
                    file[offsets[number] : offsets[number + 1]] = vectors
    for layer, file, aside in zip(layers, maps, asides, strict=True):
        file.flush()
        path = keeping.folder / f"{name}-layer-{layer}-{sha256_of(aside)[:16]}.npy"
        write_aside(path, lambda aside: None, aside)


def _flat(hidden: Tensor, batch: Any, keeping: Keeping) -> Iterator[NDArray[Any]]:
    """Vectors to keep per row: (P, D), or (1, D). hidden: (B, T, D)."""
    lengths = batch["lengths"]
    if keeping.pooling is not None:
        pooled = hidden[:, 0] if keeping.pooling == "first" else mean_of_pieces(hidden, batch["attention_mask"])
        hidden, lengths = pooled[:, None], [1] * len(hidden)
    with np.errstate(over="ignore"):
        numbers = hidden.cpu().numpy().astype(keeping.numbers)
    if not np.isfinite(numbers).all():
        raise ModelError(f'the encoder gives vectors that {keeping.numbers} cannot hold: features.keep = "float32"')
    return (row[:length] for row, length in zip(numbers, lengths, strict=True))


def _alike(lengths: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Row numbers in batches of up to _BATCH_PIECES pieces, padding included, shortest first."""
    order = np.argsort(lengths, kind="stable")
    start = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or (end + 1 - start) * lengths[order[end]] > _BATCH_PIECES:
            yield order[start:end]
            start = end


def _rows(examples: Examples) -> Iterator[tuple[NDArray[np.int32], NDArray[np.uint8], int]]:
    """Ids and levels of each row, and the position where its second text begins: its length without one."""
    seconds = np.diff(examples.offsets) if examples.seconds is None else examples.seconds
    for (start, end), second in zip(pairwise(examples.offsets.tolist()), seconds.tolist(), strict=True):
        yield examples.input_ids[start:end], examples.boundaries[start:end], second


def _key(ids: NDArray[Any], levels: NDArray[Any], second: int) -> bytes:
    """Digest of everything the encoder sees of a row."""
    digest = hashlib.blake2b(second.to_bytes(4, "little"), digest_size=16)
    digest.update(ids.astype("<i4").tobytes())
    digest.update(levels.astype(np.uint8).tobytes())
    return digest.digest()


def _digest(encoder: Any, keeping: Keeping) -> "hashlib._Hash":
    """Digest of everything that determines the vectors, except the rows."""
    computed = numerics(keeping.device, _PRECISION, torch.get_num_threads())
    facts = [encoder.config.model_dump(mode="json"), computed, keeping.pooling, keeping.numbers]
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for name, tensor in sorted(encoder.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest
