"""Text to ids and back to characters: Kiwi's morphemes, each cut into pieces of a vocabulary, each with its span."""

import gc
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, pairwise
from pathlib import Path
from typing import TypeVar, overload

import numpy as np

from korbert.errors import ModelError, SettingsError
from korbert.folders import tokenizer_folder
from korbert.tokenization import folder as folders
from korbert.tokenization import probe as probes
from korbert.tokenization.analyzer import Analyses, Analysis, Analyzer, changes
from korbert.tokenization.encoding import (
    CONTINUATION,
    EOJEOL,
    MORPHEME,
    SENTENCE,
    Encoding,
    Frame,
    Pieces,
    Span,
    assemble,
    assemble_many,
    windows,
)
from korbert.tokenization.pieces import PieceTable
from korbert.tokenization.settings import AnalyzerOptions, VocabularySettings
from korbert.tokenization.spans import piece_spans
from korbert.tokenization.special import encode_with_special
from korbert.tokenization.vocabulary import FIRST_BYTE, FIRST_PIECE, MARK, SPECIAL, marked

__all__ = ["Tokenizer"]

_T = TypeVar("_T")


class Tokenizer:
    """A vocabulary, and the analyser options and versions it belongs to: one digest, the same ids on every machine.

    tokenizer = Tokenizer.load("artifacts/demo/vocab/tokenizer")
    encoding = tokenizer.encode("학교에 간다")
    encoding.pieces  # ["[CLS]", "학교", "에", "가", "ᆫ다", "[SEP]"]
    encoding.spans  # [(0, 0), (0, 2), (2, 3), (4, 5), (4, 6), (0, 0)]
    """

    pad_id, unk_id, cls_id, sep_id, mask_id = range(len(SPECIAL))

    def __init__(
        self,
        model: bytes,
        settings: VocabularySettings,
        analyzer_options: AnalyzerOptions,
        versions: Mapping[str, str],
        accepted: Mapping[str, str] | None = None,
        probe: bytes | None = None,
    ) -> None:
        """See build. accepted, probe: as folder.Parts has them."""
        own = {
            name: getattr(settings, name) for name in VocabularySettings.model_fields
        }  # a stage's settings have more
        self.settings = VocabularySettings(**own)
        self.analyzer_options = analyzer_options
        self.versions = dict(versions)
        self._parts = folders.Parts(model, self.settings, analyzer_options, self.versions, dict(accepted or {}), probe)
        self.digest = folders.digest(self._parts)
        self.analyzer = Analyzer(analyzer_options)
        self._table = PieceTable(model, self.settings)
        self._frame = Frame(self.cls_id, self.sep_id)

    @classmethod
    def build(
        cls,
        model: bytes,
        settings: VocabularySettings,
        analyzer_options: AnalyzerOptions,
        versions: Mapping[str, str],
    ) -> "Tokenizer":
        """A tokenizer from what vocabulary.learn gave.

        analyzer_options, versions: of the Analyzer whose forms were counted. Raises ModelError for a foreign model.
        """
        return cls(model, settings, analyzer_options, versions)

    @classmethod
    def load(cls, folder: str | Path, *, accept_kiwi: bool | None = None) -> "Tokenizer":
        """The tokenizer of a folder that `save` wrote, of a model's, or of an artifact's that has one.

        Raises ModelError where a file is absent or was changed, and where another Kiwi is installed than the one the
        vocabulary was counted with: its morphemes would differ. accept_kiwi: take it all the same, which `save` then
        records; None: where $KORBERT_ACCEPT_KIWI is set.
        """
        return cls(*folders.read(tokenizer_folder(folder), accept_kiwi=accept_kiwi))

    def save(self, folder: str | Path) -> None:
        """Writes vocabulary.model, pieces.txt, korbert_tokenizer.json and, with whole words, words.tsv."""
        folders.write(Path(folder), self._parts, self._table.pieces)

    def take_probe(self) -> None:
        """Encodes some sentences with the installed Kiwi, to be saved, and compared with what another makes of them."""
        self._parts = self._parts._replace(probe=probes.recorded(self._ids))

    def compare_probe(self) -> probes.Difference | None:
        """How the pieces of those sentences differ with the installed Kiwi; None for a tokenizer without them."""
        return None if self._parts.probe is None else probes.compared(self._parts.probe, self._ids)

    def _ids(self, text: str) -> list[int]:
        return self.encode_pieces(text).ids

    def __reduce__(self) -> tuple[type["Tokenizer"], tuple[object, ...]]:
        return type(self), tuple(self._parts)

    @property
    def vocab_size(self) -> int:
        """Entries, special ones, bytes and words included: every id is below."""
        return len(self._table.pieces)

    @overload
    def encode(
        self,
        text: str,
        pair: str | None = None,
        *,
        max_length: int | None = None,
        stride: None = None,
        special_tokens: bool = False,
    ) -> Encoding: ...
    @overload
    def encode(
        self, text: str, pair: str | None = None, *, max_length: int, stride: int, special_tokens: bool = False
    ) -> list[Encoding]: ...
    def encode(
        self,
        text: str,
        pair: str | None = None,
        *,
        max_length: int | None = None,
        stride: int | None = None,
        special_tokens: bool = False,
    ) -> Encoding | list[Encoding]:
        """[CLS] text [SEP], or [CLS] text [SEP] pair [SEP].

        max_length: in pieces, special tokens included; of a pair, the longer text loses its last pieces first. With
        stride, all windows over the last text, which overlap by that many pieces. special_tokens: "[MASK]" in the text
        is the mask, and the like; otherwise it is text. Raises SettingsError for a max_length or stride that cannot be.
        """
        first = self.encode_pieces(text, special_tokens=special_tokens)
        second = None if pair is None else self.encode_pieces(pair, special_tokens=special_tokens)
        if stride is None:
            return assemble(first, second, self._frame, max_length)
        if max_length is None:
            raise SettingsError(f"stride {stride} without max_length: say how long a window may be")
        return windows(first, second, self._frame, max_length, stride)

    def encode_pieces(self, text: str, *, special_tokens: bool = False) -> Pieces:
        """The pieces of a text without [CLS] and [SEP]. special_tokens: as in encode."""
        if special_tokens:
            return encode_with_special(text, self.encode_pieces)
        return self.pieces(self.analyzer.analyze(text), text)

    def encode_batch(
        self,
        texts: Sequence[str],
        pairs: Sequence[str | None] | None = None,
        *,
        max_length: int | None = None,
        workers: int = 1,
    ) -> list[Encoding]:
        """As encode() does each, in order. workers: threads of Kiwi's, which work while ours does; 0: ours alone."""
        if pairs is None:
            with _no_collecting():
                batches = self._pieces_of_many(texts, workers)
                return [one for found in batches for one in assemble_many(*found, self._frame, max_length)]
        if len(pairs) != len(texts):
            raise SettingsError(f"{len(texts)} texts and {len(pairs)} pairs: give each text one, or None")
        segments = chain.from_iterable(
            (text,) if pair is None else (text, pair) for text, pair in zip(texts, pairs, strict=True)
        )
        found = self.pieces_of_many(segments, workers=workers)
        with _no_collecting():
            return [
                assemble(next(found), None if pair is None else next(found), self._frame, max_length) for pair in pairs
            ]

    def pieces_of_many(self, texts: Iterable[str], *, workers: int = 1) -> Iterator[Pieces]:
        """Each text as pieces, without special tokens, in order and reading only some hundred texts ahead."""
        for found, bounds in self._pieces_of_many(texts, workers):
            yield from (found[begin:end] for begin, end in pairwise(bounds))

    def pieces(self, analysis: Analysis, text: str | None) -> Pieces:
        """The pieces of an analysed text, without special tokens.

        text: as it was given to the analyser. None where it is no longer at hand: a morpheme is then taken for a slice
        of the text where the lengths agree.
        """
        mark, names = self.settings.mark, self._table.pieces
        found: list[int] = []
        pieces: list[str] = []
        levels: list[int] = []
        spans: list[Span] = []
        morphemes: list[int] = []
        tags: list[str] = []
        last_sentence = last_eojeol = -1
        columns = analysis.tags, analysis.starts, analysis.ends, analysis.sentences, analysis.eojeols
        for number, (form, tag, start, end, sentence, eojeol) in enumerate(zip(analysis.forms, *columns, strict=True)):
            initial = eojeol != last_eojeol
            level = SENTENCE if sentence != last_sentence else EOJEOL if initial else MORPHEME
            key = form if mark == "none" else marked(form, initial, mark)
            ids = self._table.ids[key]
            if len(ids) == 1:
                spans.append((start, end))
            else:
                spans += self._spans(key, form, (start, end), text)
            for id in ids:
                found.append(id)
                pieces.append(names[id])
                levels.append(level)
                morphemes.append(number)
                tags.append(tag)
                level = CONTINUATION
            last_sentence, last_eojeol = sentence, eojeol
        return Pieces(found, pieces, levels, spans, morphemes, tags)

    def _pieces_of_many(self, texts: Iterable[str], workers: int) -> Iterator[tuple[Pieces, list[int]]]:
        for batch in self.analyzer.analyze_batches(texts, workers=workers):
            yield self._pieces(batch)

    def _pieces(self, analyses: Analyses) -> tuple[Pieces, list[int]]:
        """What `pieces` gives of each of N texts, in one, and N + 1 numbers, where those of each begin and end."""
        bounds = analyses.bounds
        eojeols = changes(analyses.eojeols, bounds)
        levels = np.where(eojeols, EOJEOL, MORPHEME)
        levels[changes(analyses.sentences, bounds)] = SENTENCE
        keys = self._keys(analyses.forms, eojeols.tolist())
        found = list(map(self._table.ids.__getitem__, keys))
        lengths = np.fromiter(map(len, found), np.int64, len(found))
        ends = np.append(0, np.cumsum(lengths))  # of the pieces of each morpheme
        of = np.repeat(np.arange(len(found)), lengths)  # the morpheme of each piece
        begins = np.append(True, of[1:] != of[:-1])[: len(of)]
        ids = list(chain.from_iterable(found))
        spans = list(zip(analyses.starts.tolist(), analyses.ends.tolist(), strict=True))
        many = np.flatnonzero(lengths != 1).tolist()  # morphemes of several pieces, or none
        texts = (np.searchsorted(bounds, many, "right") - 1).tolist()

        def spans_of(index: int, text: str) -> list[Span]:
            return self._spans(keys[index], analyses.forms[index], spans[index], text)

        pieces = Pieces(
            ids=ids,
            pieces=list(map(self._table.pieces.__getitem__, ids)),
            boundaries=np.where(begins, levels[of], CONTINUATION).tolist(),
            spans=_spread(spans, [(i, spans_of(i, analyses.texts[one])) for i, one in zip(many, texts, strict=True)]),
            morphemes=(of - np.repeat(bounds[:-1], np.diff(ends[bounds]))).tolist(),
            tags=_spread(analyses.tags, [(i, [analyses.tags[i]] * len(found[i])) for i in many]),
        )
        return pieces, ends[bounds].tolist()

    def _spans(self, key: str, form: str, span: Span, text: str | None) -> list[Span]:
        """One span a piece: its own characters, or the whole span where the form is no slice of the text."""
        start, end = span
        slices = self._table.slices(key, form)
        if text is None and len(form) != end - start:
            return [span] * len(slices)
        return piece_spans(form, slices, start, form if text is None else text[start:end])

    def ids_of(self, key: str) -> tuple[int, ...]:
        """The ids of what is looked up for a morpheme: `marked(form, ...)`, or the form itself with mark "none"."""
        return self._table.ids[key]

    def encode_forms(self, forms: Sequence[str], eojeol_initial: Sequence[bool]) -> list[tuple[int, ...]]:
        """The ids of each form, remembered; eojeol_initial says which forms begin an eojeol."""
        return list(map(self._table.ids.__getitem__, self._keys(forms, eojeol_initial)))

    def _keys(self, forms: Sequence[str], eojeol_initial: Sequence[bool]) -> Sequence[str]:
        mark = self.settings.mark
        if mark == "none":
            return forms
        return [marked(form, initial, mark) for form, initial in zip(forms, eojeol_initial, strict=True)]

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """The piece of each id. Raises ModelError for an id that is none."""
        names = self._table.pieces
        found = list(ids)
        if found and not (min(found) >= 0 and max(found) < len(names)):
            wrong = next(id for id in found if not 0 <= id < len(names))
            raise ModelError(f"id {wrong} is not in the vocabulary of {len(names)}: the ids are of another tokenizer")
        return [names[id] for id in found]

    def decode(self, ids: Sequence[int], boundaries: Sequence[int] | None = None) -> str:
        """Readable text, not the original: forms run together (가 + ᆫ다 -> 간다, but 하 + 었 -> 하었).

        Spaces stand where an eojeol begins, as far as the mark or `boundaries` tell. Of the special tokens only [MASK]
        is shown. Never cut answers from this: cut the text by spans.
        """
        names = self.tokens(ids)
        levels = boundaries if boundaries is not None else [CONTINUATION] * len(names)
        text = bytearray()
        for id, piece, level in zip(ids, names, levels, strict=True):
            if id < FIRST_BYTE and id != self.mask_id:
                continue
            begins = piece.startswith(MARK) and self.settings.mark == "eojeol"
            if text and (begins or level >= EOJEOL):
                text += b" "
            text += bytes([id - FIRST_BYTE]) if FIRST_BYTE <= id < FIRST_PIECE else piece.removeprefix(MARK).encode()
        return unicodedata.normalize("NFC", text.decode("utf-8", errors="replace"))


@contextmanager
def _no_collecting() -> Iterator[None]:
    """Python's search for cycles rests: there are none among lists of pieces, and their number alone would start it
    over and over, which takes as long as making them does."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _spread(column: Sequence[_T], replaced: Sequence[tuple[int, Sequence[_T]]]) -> list[_T]:
    """The column with each named entry replaced by several."""
    found: list[_T] = []
    begin = 0
    for index, entries in replaced:
        found += column[begin:index]
        found += entries
        begin = index + 1
    found += column[begin:]
    return found
