"""Corrections of vectors: removing their common component, or whitening them."""

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from korbert.durable import write_whole
from korbert.errors import SettingsError
from korbert.vectors.names import CorrectionName

_Vectors = NDArray[np.float32]
_LEAST = 1e-9  # smallest variance, as a share of the largest, of a direction that is not rounding noise


@dataclass(frozen=True)
class Correction:
    """(vectors - mean) @ matrix. way: how it was fitted. mean: (D,) float32; matrix: (D, K) float32."""

    way: CorrectionName
    mean: _Vectors
    matrix: _Vectors

    @classmethod
    def fit(cls, way: CorrectionName, vectors: _Vectors) -> "Correction":
        """Fits on vectors (N, D). SettingsError for fewer than two, and for an unknown way."""
        if way not in _FITS:
            raise SettingsError(f"correction {way!r}: take {' or '.join(get_args(CorrectionName))}")
        if len(vectors) < 2:
            raise SettingsError(f"correction {way}: is fitted on {len(vectors)} texts: give two at least")
        mean, matrix = _FITS[way](vectors.astype(np.float64))
        return cls(way, mean.astype(np.float32), matrix.astype(np.float32))

    def __call__(self, vectors: _Vectors) -> _Vectors:
        """(N, D) -> (N, K). SettingsError for vectors of another size."""
        if vectors.shape[-1] != len(self.mean):
            raise SettingsError(
                f"the correction is of vectors of {len(self.mean)} numbers, these have {vectors.shape[-1]}:"
                " fit it with the same layers and pooling"
            )
        return np.asarray((vectors - self.mean) @ self.matrix, dtype=np.float32)

    def save(self, path: str | Path) -> None:
        """Writes an .npz file."""
        data = io.BytesIO()
        np.savez(data, way=np.array(json.dumps(self.way)), mean=self.mean, matrix=self.matrix)
        write_whole(Path(path), data.getvalue())

    @classmethod
    def load(cls, path: str | Path) -> "Correction":
        """Loads a file written by `save`. SettingsError for any other file."""
        try:
            with Path(path).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                return cls(json.loads(str(file["way"])), file["mean"], file["matrix"])
        except Exception as error:  # zipfile, zlib, numpy, json: each has its own errors
            raise SettingsError(f"{path}: cannot be read as a correction ({error}): fit it again") from None


def _common(vectors: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Removes the component along the first singular vector (Arora et al. 2017, algorithm 1)."""
    _, _, directions = np.linalg.svd(vectors.T @ vectors)
    first = directions[0]
    return np.zeros(len(first)), np.eye(len(first)) - np.outer(first, first)


def _whitened(vectors: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Mean 0, covariance 1, directions of the largest variance first (Su et al. 2021, algorithm 1).

    Directions without variance are left out, as there are with fewer texts than dimensions.
    """
    mean = vectors.mean(axis=0)
    directions, variances, _ = np.linalg.svd(np.cov(vectors, rowvar=False, bias=True).reshape(len(mean), -1))
    kept = variances > _LEAST * max(variances[0], np.finfo(np.float64).tiny)
    return mean, directions[:, kept] / np.sqrt(variances[kept])


_FITS: Mapping[str, Callable[[NDArray[np.float64]], tuple[NDArray[Any], NDArray[Any]]]] = {
    "common": _common,
    "whiten": _whitened,
}
