"""Names of poolings and other choices for vectors. This imports nothing: `korbert --help` reads it."""

from typing import Literal

__all__ = ["CorrectionName", "Mix", "PoolingName", "Unit", "Way"]

Mix = Literal["mean", "sum", "concat"]
PoolingName = Literal["mean", "first", "max", "mean-max", "idf", "bm25"]
CorrectionName = Literal["common", "whiten"]
Unit = Literal["piece", "morpheme", "eojeol"]
Way = Literal["both", "vectors", "words"]
