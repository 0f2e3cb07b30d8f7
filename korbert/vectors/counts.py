"""Document frequencies of the pieces of a vocabulary, and the weights of pieces by idf and BM25."""

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from korbert.durable import read_object, write_whole
from korbert.errors import SettingsError
from korbert.folders import base_folder, model_folder
from korbert.tokenization import AnyTokenizer, Tokenizer
from korbert.tokenization.vocabulary import marked

_FILE = "piece_counts.parquet"  # in a model folder
_MORPHEMES = "counts.parquet"  # of a vocab artifact
_K1, _B = 1.2, 0.75  # Robertson and Zaragoza 2009, 3.2; the defaults of most search engines


class NoCounts(SettingsError):
    """There is no file of piece counts."""


@dataclass(frozen=True)
class PieceCounts:
    """Document frequencies of pieces.

    frequencies: (V,) int64, number of documents with the piece. documents: number of all. mean_length: pieces per
    document. tokenizer: digest of the tokenizer.
    """

    frequencies: NDArray[np.int64]
    documents: int
    mean_length: float
    tokenizer: str

    @classmethod
    def of_texts(cls, texts: Iterable[str], tokenizer: AnyTokenizer) -> "PieceCounts":
        """Counts of these texts, each a document."""
        frequencies = np.zeros(tokenizer.vocab_size, dtype=np.int64)
        documents = pieces = 0
        for encoded in tokenizer.pieces_of_many(texts):
            frequencies[np.unique(np.array(encoded.ids, dtype=np.int64))] += 1
            documents, pieces = documents + 1, pieces + len(encoded)
        return cls(frequencies, documents, pieces / max(documents, 1), tokenizer.digest)

    @classmethod
    def of_morphemes(cls, path: Path, tokenizer: AnyTokenizer) -> "PieceCounts":
        """Reads counts.parquet of a vocab artifact, and the number of documents from the stage.json next to it.

        The frequency of a piece is the sum over the morphemes that contain it, at most the number of documents. It is
        an upper bound: a document with two of these morphemes counts twice. SettingsError for a tokenizer without
        morphemes.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not isinstance(tokenizer, Tokenizer):
            raise SettingsError(f"{path}: counts morphemes, and this model's tokenizer has none: count pieces in texts")
        try:
            table = pq.read_table(path, columns=["form", "count", "initial", "documents"])
            documents = int(read_object(path.with_name("stage.json"))["counts"]["documents"])
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
            raise SettingsError(
                f"{path}: cannot be read ({error}): name counts.parquet of a vocab artifact, with its stage.json"
            ) from None
        mark, frequencies, pieces = tokenizer.settings.mark, np.zeros(tokenizer.vocab_size, dtype=np.int64), 0
        for form, count, initial, number in zip(*(column.to_pylist() for column in table.columns), strict=True):
            keys = [form] if mark == "none" else [marked(form, begins, mark) for begins in (True, False)]
            for key, times in zip(keys, [initial, count - initial] if len(keys) > 1 else [count], strict=True):
                ids = tokenizer.ids_of(key)
                pieces += times * len(ids)
                frequencies[list(set(ids))] += math.ceil(number * times / max(count, 1))
        return cls(np.minimum(frequencies, documents), documents, pieces / max(documents, 1), tokenizer.digest)

    @classmethod
    def load(cls, path: Path, tokenizer: AnyTokenizer) -> "PieceCounts":
        """Loads a file written by `save`. SettingsError for any other file, or another tokenizer."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pq.read_table(path)
            facts = json.loads(table.schema.metadata[b"korbert"])
            counts = cls(table["documents"].to_numpy(), facts["documents"], facts["mean_length"], facts["tokenizer"])
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
            raise SettingsError(f"{path}: cannot be read ({error}): give a file of piece counts") from None
        if counts.tokenizer != tokenizer.digest:
            raise SettingsError(
                f"{path}: counts the pieces of tokenizer {counts.tokenizer[:12]}, the model has"
                f" {tokenizer.digest[:12]}: count again"
            )
        return counts

    @classmethod
    def find(cls, source: Path | None, model: str, tokenizer: AnyTokenizer) -> "PieceCounts":
        """Finds counts in a file or vocab artifact; None: in the model's folder, or else in the vocab artifact next to
        the model's artifact, if it made this tokenizer.

        Raises NoCounts, a SettingsError, if there are none, and as `load` and `of_morphemes`.
        """
        if source is not None:
            path = source / _MORPHEMES if source.is_dir() else source
            return cls.load(path, tokenizer) if path.name == _FILE else cls.of_morphemes(path, tokenizer)
        folder = model_folder(model)
        try:
            base = read_object(folder / "config.json")["packed"]["base"]  # a folder packed against another one
        except (OSError, ValueError, KeyError, TypeError):
            base = None
        for holder in [folder] if base is None else [folder, base_folder(folder, str(base))]:
            if (holder / _FILE).is_file():
                return cls.load(holder / _FILE, tokenizer)
        vocab = folder.absolute().parent.parent / "vocab"
        try:
            same = read_object(vocab / "tokenizer" / "korbert_tokenizer.json").get("digest") == tokenizer.digest
        except (OSError, ValueError):
            same = False
        if same and (vocab / _MORPHEMES).is_file():
            return cls.of_morphemes(vocab / _MORPHEMES, tokenizer)
        raise NoCounts(
            f"{model}: idf and bm25 need counts of pieces, and there is no {_FILE} in its folder: save one"
            " there (korbert.vectors.PieceCounts), or take another pooling"
        )

    def save(self, folder: str | Path) -> Path:
        """Writes piece_counts.parquet to a folder, such as a model's, where `find` looks for it."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        facts = {"documents": self.documents, "mean_length": self.mean_length, "tokenizer": self.tokenizer}
        table = pa.table({"documents": self.frequencies}).replace_schema_metadata({"korbert": json.dumps(facts)})
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd")
        path = Path(folder) / _FILE
        write_whole(path, memoryview(sink.getvalue()))
        return path

    def weights(self, way: Literal["idf", "bm25"], input_ids: Tensor, counted: Tensor) -> Tensor:
        """(B, T) float: the weight of each piece of rows (B, T); 0 where `counted`, (B, T) bool, is False.

        idf: ln((1 + N) / (1 + n)) + 1, for n of N documents (smoothed, as in scikit-learn). bm25: ln(1 + (N - n + 0.5)
        / (n + 0.5)) / (f + k1 (1 - b + b L / mean)), for f occurrences in a text of length L. The sum over the f
        occurrences is the BM25 weight of the word up to a factor (Robertson and Zaragoza 2009, equation 3.15).
        """
        rarity: Tensor = self._rarities[way].to(input_ids.device)[input_ids.clamp(max=len(self.frequencies) - 1)]
        if way == "bm25":
            same = (input_ids[:, :, None] == input_ids[:, None, :]) & counted[:, None, :]
            lengths = counted.sum(dim=1, keepdim=True) / max(self.mean_length, 1e-9)
            rarity = rarity / (same.sum(dim=-1) + _K1 * (1 - _B + _B * lengths))
        return rarity * counted

    @cached_property
    def _rarities(self) -> dict[str, Any]:
        documents, own = self.documents, torch.from_numpy(self.frequencies.astype(np.float64))
        return {
            "idf": (torch.log((1 + documents) / (1 + own)) + 1).float(),
            "bm25": torch.log(1 + (documents - own + 0.5) / (own + 0.5)).float(),
        }
