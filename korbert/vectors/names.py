"""Names of poolings and other choices for vectors. This imports nothing: `korbert --help` reads it."""

from typing import Literal

Mix = Literal["mean", "sum", "concat"]
PoolingName = Literal["mean", "first", "max", "mean-max"]
Unit = Literal["piece", "morpheme", "eojeol"]
Side = Literal["query", "passage"]
SearchWay = Literal["both", "vectors", "words"]
