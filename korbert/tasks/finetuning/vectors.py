"""Caches vectors of a frozen encoder for rows of pieces, in files that later runs reuse.

A file holds one layer: `vectors-<made from>-layer-<place>-<content>.npy`, (P, D), the pieces of all rows concatenated,
or one pooled vector per row. The first digest covers the encoder's config and weights, the rows, the number format and
the hardware (CPU, device, precision); the second is that of the file's bytes, to detect damage. Files are
memory-mapped: memory holds only what a batch needs.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from korbert.errors import ModelError
from korbert.modeling import AnyConfig, digest_of, mean_pooling
from korbert.system import broadcast, intact, sha256_of, sync, track
from korbert.training import Examples, autocast, by_length, model_inputs, numerics, to_device

_BATCH_SIZE = 64
_ROWS_AT_ONCE = 128  # whose vectors are in memory while mean and deviation are computed
_PRECISION: Final = "fp32"  # of the encoder


class KeptVectors(nn.Module):
    """Stand-in for an encoder with cached vectors: all_layers looks a row up by its pieces. It has no weights.

    config: that of the encoder. origin: the encoder.
    """

    def __init__(
        self, origin: nn.Module, layers: Mapping[int, NDArray[np.floating]], places: Mapping[bytes, slice]
    ) -> None:
        """layers: layer -> the vectors of all rows, (P, D). places: key of a row -> the slice of its vectors."""
        super().__init__()
        self.config: AnyConfig = origin.config  # type: ignore[assignment]
        self._origin = (origin,)  # in a tuple, so that its weights are not registered here
        self._layers = layers
        self._places = places

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
        places = [
            self._places[_key(row_ids[:length], row_levels[:length], length - int(row_types[:length].sum()))]
            for row_ids, row_levels, row_types, length in zip(ids, levels, types, lengths, strict=True)
        ]
        width = max(place.stop - place.start for place in places)
        vectors = np.zeros((len(only), len(places), width, self.config.hidden_size), dtype=np.float32)
        for layer_vectors, layer in zip(vectors, only, strict=True):
            for row, place in zip(layer_vectors, places, strict=True):
                row[: place.stop - place.start] = self._layers[layer][place]
        return torch.from_numpy(vectors).to(input_ids.device)

    def spread(self, examples: Examples, only: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of each dimension over the cached vectors of the rows: (K, D) both."""
        places = [self._places[_key(*row)] for row in _rows(examples)]
        sums = np.zeros((2, len(only), self.config.hidden_size))
        for number, layer in enumerate(only):
            for start in range(0, len(places), _ROWS_AT_ONCE):
                part = [self._layers[layer][place] for place in places[start : start + _ROWS_AT_ONCE]]
                vectors = np.concatenate(part).astype(np.float64)
                sums[:, number] += vectors.sum(axis=0), np.square(vectors).sum(axis=0)
        mean, square = sums / max(sum(place.stop - place.start for place in places), 1)
        deviation = np.sqrt(np.maximum(square - mean**2, 0))
        return torch.from_numpy(mean).float(), torch.from_numpy(deviation).float()


def keep_vectors(
    encoder: Any, examples: Sequence[Examples], layers: Sequence[int], *, pooling: Literal["mean", "first"] | None,
    folder: Path, device: torch.device, numbers: Literal["float16", "float32"] = "float16",
    description: str = "vectors",
) -> KeptVectors:  # fmt: skip
    """Caches the vectors of all distinct rows in a folder; missing or damaged layers are computed.

    layers: indices, 0 being the embeddings. pooling: keep one vector per row; None: one per piece. numbers: their
    format. With several connected processes, one computes. ModelError if a vector is not finite in that format.
    """
    distinct = {_key(*row): row for part in examples for row in _rows(part)}
    has_pairs = any(part.seconds is not None for part in examples)
    seconds = np.array([second for *_, second in distinct.values()], dtype=np.int64) if has_pairs else None
    flat = ((ids, levels) for ids, levels, _ in distinct.values())
    rows = Examples.of_rows(flat, np.zeros(len(distinct)), examples[0].pad_id, seconds)
    offsets = np.cumsum([0, *(rows.lengths if pooling is None else np.ones_like(rows.lengths))])
    places = [slice(*ends) for ends in pairwise(offsets.tolist())]
    hardware = numerics(device, _PRECISION, torch.get_num_threads())
    facts = json.dumps([encoder.config.model_dump(mode="json"), hardware, pooling, numbers])
    name = f"vectors-{digest_of(facts.encode() + b''.join(distinct), encoder.state_dict())[:32]}-layer-"

    def make() -> dict[int, Path]:
        paths = {layer: intact(folder, f"{name}{layer}") for layer in layers}
        missing = {layer: folder / f".{name}{layer}.tmp" for layer, path in paths.items() if path is None}
        if missing:
            folder.mkdir(parents=True, exist_ok=True)
            for path in missing.values():  # left by a killed run
                path.unlink(missing_ok=True)
            shape = (places[-1].stop, encoder.config.hidden_size)
            maps = {layer: np.lib.format.open_memmap(path, "w+", numbers, shape) for layer, path in missing.items()}
            _compute(encoder, rows, maps, places, pooling, device, description)
        # A file gets its name when it is whole on the disk.
        for layer, temporary in missing.items():
            sync(temporary)
            paths[layer] = temporary.replace(folder / f"{name}{layer}-{sha256_of(temporary)[:16]}.npy")
        return {layer: path for layer, path in paths.items() if path}

    cached = {layer: np.load(path, mmap_mode="r") for layer, path in broadcast(make).items()}
    return KeptVectors(encoder, cached, dict(zip(distinct, places, strict=True)))


def _compute(
    encoder: Any, rows: Examples, maps: Mapping[int, NDArray[np.floating]], places: Sequence[slice],
    pooling: Literal["mean", "first"] | None, device: torch.device, description: str,
) -> None:  # fmt: skip
    """Writes the vectors of some layers to files.

    maps: layer -> its memory-mapped file. places: the slice of each row's vectors in a file.
    """
    encoder.eval()
    progress = track(description, len(rows), "rows")
    with torch.inference_mode(), autocast(device, _PRECISION), progress as advance:
        for numbers in by_length(rows.lengths, _BATCH_SIZE):
            batch = to_device(rows.batch(numbers), device)
            layers = encoder.all_layers(**model_inputs(batch), only=list(maps)).float()  # (K, B, T, D)
            for hidden, file in zip(layers, maps.values(), strict=True):
                if pooling == "first":
                    hidden = hidden[:, :1]
                elif pooling == "mean":
                    hidden = mean_pooling(hidden, batch["attention_mask"])[:, None]
                with np.errstate(over="ignore"):
                    vectors = hidden.cpu().numpy().astype(file.dtype)
                if not np.isfinite(vectors).all():
                    raise ModelError(
                        'the encoder gives vectors that {numbers} cannot hold: features.keep = "float32"',
                        numbers=file.dtype,
                    )
                for number, row in zip(numbers, vectors, strict=True):
                    file[places[number]] = row[: places[number].stop - places[number].start]
            advance(len(numbers))
    for file in maps.values():
        file.flush()  # type: ignore[attr-defined]


def _rows(examples: Examples) -> Iterator[tuple[NDArray[np.int32], NDArray[np.uint8], int]]:
    """Yields ids and levels of each row, and where its second text begins; for a single text, the row's length."""
    seconds = np.diff(examples.offsets) if examples.seconds is None else examples.seconds
    for (start, end), second in zip(pairwise(examples.offsets.tolist()), seconds.tolist(), strict=True):
        yield examples.input_ids[start:end], examples.boundaries[start:end], second


def _key(ids: NDArray[np.integer], levels: NDArray[np.integer], second: int) -> bytes:
    """Digest of everything the encoder sees of a row."""
    digest = hashlib.blake2b(second.to_bytes(4, "little"), digest_size=16)
    digest.update(ids.astype("<i4").tobytes())
    digest.update(levels.astype(np.uint8).tobytes())
    return digest.digest()
