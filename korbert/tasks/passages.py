"""Texts as pieces with their spans: analysed once, kept on disk, and the way from characters to pieces and back."""

import hashlib
import io
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from korbert.durable import write_whole
from korbert.progress import track
from korbert.tokenization import Tokenizer
from korbert.tokenization.encoding import Pieces, span_of, span_to_pieces

__all__ = ["Passage", "cut", "digest_of", "encode_passages", "gold_pieces"]

_TEXTS_PER_PART = 500  # what a killed run analyses again at most


@dataclass(frozen=True, slots=True)
class Passage:
    """A text and its P pieces, without special tokens.

    ids: (P,) int32; boundaries: (P,) uint8, what begins at the piece; spans: (P, 2) int32, half-open, in code points.
    """

    text: str
    ids: np.ndarray
    boundaries: np.ndarray
    spans: np.ndarray


def encode_passages(
    tokenizer: Tokenizer, texts: Sequence[str], folder: Path | None = None, *, workers: int = 1
) -> list[Passage]:
    """Each text as pieces, in order.

    folder: where finished parts are kept, under names that hold a digest of texts and tokenizer, so that nothing is
    analysed twice; None keeps nothing. workers: threads for Kiwi, where the texts are more than one part.
    """
    parts = [texts[start : start + _TEXTS_PER_PART] for start in range(0, len(texts), _TEXTS_PER_PART)]
    paths = [folder and folder / f"passages-{digest_of(tokenizer, part)}.npz" for part in parts]
    kept = [_load(path, part) if path else None for path, part in zip(paths, parts, strict=True)]
    missing = [part for part, done in zip(parts, kept, strict=True) if done is None]
    analyzed = tokenizer.pieces_of_many(chain.from_iterable(missing), workers=workers if len(missing) > 1 else 0)
    passages: list[Passage] = []
    with track("encode", len(texts), "texts") if len(missing) > 1 else nullcontext(lambda count: None) as advance:
        for part, path, done in zip(parts, paths, kept, strict=True):
            if done is not None:
                passages += done
            else:
                fresh = [_passage(text, pieces) for text, pieces in zip(part, islice(analyzed, len(part)), strict=True)]
                passages += fresh
                if path:
                    _save(path, fresh)
            advance(len(part))
    return passages


def digest_of(tokenizer: Tokenizer, texts: Sequence[str]) -> str:
    """What names a file of these texts as this tokenizer's pieces."""
    digest = hashlib.sha256(tokenizer.digest.encode())
    for text in texts:
        digest.update(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
    return digest.hexdigest()[:32]


def _passage(text: str, pieces: Pieces) -> Passage:
    return Passage(
        text,
        np.array(pieces.ids, dtype=np.int32),
        np.array(pieces.boundaries, dtype=np.uint8),
        np.array(pieces.spans, dtype=np.int32).reshape(-1, 2),
    )


def _save(path: Path, passages: Sequence[Passage]) -> None:
    packed = io.BytesIO()
    np.savez(
        packed,
        lengths=np.array([len(passage.ids) for passage in passages], dtype=np.int64),
        ids=np.concatenate([passage.ids for passage in passages]),
        boundaries=np.concatenate([passage.boundaries for passage in passages]),
        spans=np.concatenate([passage.spans for passage in passages]),
    )
    write_whole(path, packed.getbuffer())


def _load(path: Path, texts: Sequence[str]) -> list[Passage] | None:
    """None where the file is absent, or cannot be read."""
    try:
        with np.load(path) as arrays:
            ends = np.cumsum(arrays["lengths"])[:-1]
            columns = [np.split(arrays[name], ends) for name in ("ids", "boundaries", "spans")]
    except (OSError, ValueError, KeyError, BadZipFile):
        return None
    return [Passage(text, *row) for text, *row in zip(texts, *columns, strict=True)]


def gold_pieces(passage: Passage, start: int, end: int) -> tuple[int, int] | None:
    """First and last piece (both inside) of the shortest run over the characters [start, end); None where none is."""
    return span_to_pieces([tuple(span) for span in passage.spans.tolist()], start, end)


def cut(spans: np.ndarray, first: int, last: int) -> tuple[int, int]:
    """span_of for spans as an array, (P, 2): the characters that the pieces first to last (both inside) stand for."""
    return span_of(spans[first : last + 1].tolist(), 0, last - first)
