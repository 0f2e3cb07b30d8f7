"""The entries of a vocabulary: forms to ids, and the characters that each piece of a form stands for.

Ids: 0 to 4 are SPECIAL, 5 to 127 reserved, 128 to 383 the bytes, 384 and up pieces, the last ones whole words. Special
and reserved entries are control symbols, which no text matches. Part of exported folders, as morphemes.py says.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

from korbert.tokenization.repair import repair

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
RESERVED = 123  # entries for tasks to come
FIRST_BYTE = len(SPECIAL) + RESERVED  # 128
FIRST_PIECE = FIRST_BYTE + 256  # 384
MARK = "▁"  # where a morpheme or an eojeol begins, as in SentencePiece; typed in a text it is spelled in bytes
TYPED = "\uffff"  # a ▁ of the text in a key, so that it is not a mark

Span = tuple[int, int]  # half-open, in code points of the text as given

_TYPED_IDS = tuple(FIRST_BYTE + byte for byte in MARK.encode())
_REMEMBERED = 500_000  # forms; later ones are looked up each time, so that a corpus of any size fits into memory


def marked(form: str, eojeol_initial: bool, mark: str) -> str:
    """The key of a form: 학교 -> ▁학교 where the mark is to stand. A ▁ of the form itself becomes TYPED."""
    if MARK in form:
        form = form.replace(MARK, TYPED)
    return MARK + form if mark == "morpheme" or (mark == "eojeol" and eojeol_initial) else form


def unmarked(piece: str) -> str:
    """The characters of a piece."""
    return piece.removeprefix(MARK)


def word_entries(words: Iterable[str], mark: str) -> list[str]:
    """The keys of whole words in the order of their ids, which are the last ones of the vocabulary."""
    return list(dict.fromkeys(marked(word, initial, mark) for word in words for initial in (True, False)))


def slices(form: str, sizes: Sequence[int]) -> list[Span]:
    """The characters of a form that each of its pieces stands for. sizes: UTF-8 bytes of each piece.

    Pieces that are bytes of one character all have that character. White space of the form has no piece, and a mark no
    character.
    """
    owners = [index for index, char in enumerate(form) if not char.isspace() for _ in char.encode()]  # by byte
    spans: list[Span] = []
    begin = 0
    for size in sizes:
        end = begin + size
        first = owners[begin] if begin < len(owners) else len(form)
        stop = owners[end - 1] + 1 if end > begin else first
        spans.append((first, stop))
        begin = end
    return spans


def piece_spans(form: str, cuts: Sequence[Span], start: int, surface: str) -> list[Span]:
    """The span of each piece in the text: its own characters; the whole morpheme where its form is not a slice of it.

    cuts: as `slices` gives them. surface: the characters of the morpheme, which begin at `start`.
    """
    if surface == form:
        return [(start + low, start + high) for low, high in cuts]
    repaired = repair(surface)
    if repaired is not None and repaired.text == form:
        parts = (repaired.span(low, high) for low, high in cuts)
        return [(start + low, start + high) for low, high in parts]
    return [(start, start + len(surface))] * len(cuts)


class Processor(Protocol):
    """What is used of a SentencePieceProcessor."""

    def vocab_size(self) -> int: ...
    def id_to_piece(self, id: list[int]) -> list[str]: ...
    def encode(self, input: str) -> list[int]: ...


class Vocabulary:
    """A SentencePiece model and whole words. pieces: by id. ids: by key, which is the form, or `marked` of it."""

    def __init__(self, processor: Processor, mark: str, words: Iterable[str]) -> None:
        learned = processor.vocab_size()
        entries = word_entries(words, mark)
        self.mark = mark
        self.pieces: list[str] = [*processor.id_to_piece(list(range(learned))), *entries]
        self.ids = _Ids(processor, {key: (id,) for id, key in enumerate(entries, learned)}, mark)
        self._slices: dict[str, tuple[Span, ...]] = {}

    def bytes_of(self, id: int) -> bytes:
        """The UTF-8 that a piece stands for, its mark left out."""
        if FIRST_BYTE <= id < FIRST_PIECE:
            return bytes([id - FIRST_BYTE])
        return unmarked(self.pieces[id]).encode()

    def spans(self, key: str, form: str, start: int, end: int, text: str) -> list[Span]:
        """The span of each piece of ids[key]. start, end: of the morpheme in the text."""
        cuts = self._slices.get(key)
        if cuts is None:
            cuts = tuple(slices(form, [len(self.bytes_of(id)) for id in self.ids[key]]))
            if len(self._slices) < _REMEMBERED:
                self._slices[key] = cuts
        return piece_spans(form, cuts, start, text[start:end])


class _Ids(dict[str, tuple[int, ...]]):
    """The ids of each key, remembered."""

    def __init__(self, processor: Processor, words: dict[str, tuple[int, ...]], mark: str) -> None:
        super().__init__(words)
        self._processor = processor
        typed = f"{TYPED}{MARK}" if mark == "none" else TYPED
        self._typed = re.compile(rf"([{typed}])|\s+")

    def __missing__(self, key: str) -> tuple[int, ...]:
        # A ▁ of the text is spelled in bytes, and white space has no piece.
        parts = filter(None, self._typed.split(key)) if self._typed.search(key) else [key]
        encode = self._processor.encode
        ids = tuple(id for part in parts for id in (_TYPED_IDS if self._typed.match(part) else encode(part)))
        if len(self) < _REMEMBERED:
            self[key] = ids
        return ids
