"""Texts ranked by BM25 over their morphemes (bm25s)."""

import importlib.util
import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from korbert.errors import SettingsError
from korbert.tokenization import AnyTokenizer, Encoding, Tokenizer
from korbert.tokenization.encoding import assemble
from korbert.vectors.ranking import Found

__all__ = ["Words", "has_bm25s", "read_texts", "terms_of_tags"]

_K1, _B = 1.2, 0.75  # Robertson and Zaragoza 2009, 3.2
_LEFT_OUT = ("J", "E", "S")  # particles, endings, symbols: they are in nearly every text


def has_bm25s() -> bool:
    """Whether the package is installed: korbert[search]."""
    return importlib.util.find_spec("bm25s") is not None


def read_texts(
    tokenizer: AnyTokenizer, texts: Sequence[str], max_length: int, workers: int = 0
) -> Iterator[tuple[Encoding, list[str]]]:
    """The encoding of each text, truncated to max_length, and the terms of the whole text; our tokenizer gets both from
    one analysis."""
    own = isinstance(tokenizer, Tokenizer)
    analyses: Iterable[Any] = [None] * len(texts) if own else tokenizer.analyzer.analyze_many(texts, workers=workers)
    pieces = tokenizer.pieces_of_many(texts, workers=workers)
    for found, analysis in zip(pieces, analyses, strict=True):
        if own:
            forms: dict[int, str] = {}  # of each morpheme, from its pieces
            for piece, number in zip(found.pieces, found.morphemes, strict=True):
                forms[number] = forms.get(number, "") + piece.removeprefix("▁")
            tags = dict(zip(found.morphemes, found.tags, strict=True))
            terms = terms_of_tags(list(forms.values()), [tags[number] for number in forms])
        else:
            terms = terms_of_tags(analysis.forms, analysis.tags)
        yield assemble(found, None, tokenizer.frame, max_length), terms


def terms_of_tags(forms: Sequence[str], tags: Sequence[str]) -> list[str]:
    """The search terms of a text by its morphemes: 학교/NNG 에/JKB 가/VV ᆫ다/EF -> 학교/N, 가/V.

    Letters and numbers are terms, other symbols are not. In a text without terms, all morphemes are. Recall at 1,
    compared with all forms as terms: 90.6 (89.8) for questions of KorQuAD and their paragraphs, 76.8 (71.8) for
    paraphrases of KLUE-STS, 65.4 (66.8) for question pairs.
    """
    kinds = [tag if tag in ("SL", "SH", "SN") else tag[:1] for tag in tags]
    pairs = list(zip(forms, kinds, strict=True))
    kept = [f"{form}/{kind}" for form, kind in pairs if kind not in _LEFT_OUT]
    return kept or [f"{form}/{kind}" for form, kind in pairs]


class Words:
    """A BM25 ranker of texts. rows: (N,) int64, the row of each text in the index."""

    def __init__(self, ranker: Any, rows: Any) -> None:
        self._ranker = ranker
        self._rows = rows

    @classmethod
    def of(cls, terms: Sequence[Sequence[str]], rows: Sequence[int]) -> "Words":
        """A ranker of the terms of N texts. SettingsError without bm25s."""
        ranker = _package().BM25(k1=_K1, b=_B, method="lucene")
        if any(terms):
            ranker.index([list(own) for own in terms], show_progress=False)
        return cls(ranker if any(terms) else None, np.array(rows, dtype=np.int64))

    def save(self, folder: Path) -> None:
        """Writes the files of bm25s, and rows.npy; without any terms rows.npy alone."""
        folder.mkdir()
        if self._ranker is not None:
            self._ranker.save(str(folder), show_progress=False)
        np.save(folder / "rows.npy", self._rows)

    @classmethod
    def load(cls, folder: Path) -> "Words":
        """Loads a folder written by `save`, memory-mapped. SettingsError without bm25s."""
        package = _package()
        there = (folder / "params.index.json").is_file()
        return cls(package.BM25.load(str(folder), mmap=True) if there else None, np.load(folder / "rows.npy"))

    def search(self, queries: Sequence[Sequence[str]], top: int) -> list[list[Found]]:
        """For each query's terms, the `top` texts with the highest scores above 0; ties by row."""
        found: list[list[Found]] = []
        for query in queries:
            if self._ranker is None or not query:
                found.append([])
                continue
            scores = np.asarray(self._ranker.get_scores(list(query)))
            least = max(np.partition(scores, -top)[-top], 0) if len(scores) > top else 0
            places = np.flatnonzero((scores >= least) & (scores > 0))
            best = places[np.lexsort((self._rows[places], -scores[places]))][:top]
            found.append([(int(self._rows[place]), float(scores[place])) for place in best])
        return found


def _package() -> Any:
    if not has_bm25s():
        raise SettingsError(
            "search by words needs bm25s: pip install 'korbert[search]', or search by vectors only (--way vectors)"
        )
    import bm25s

    logging.getLogger("bm25s").setLevel(logging.WARNING)  # it logs every step at DEBUG
    return bm25s
