"""Forms to ids: the learned model, the whole words before it, and the characters each piece stands for."""

import re
from typing import Any

from korbert.errors import ModelError
from korbert.tokenization.settings import VocabularySettings
from korbert.tokenization.spans import slices
from korbert.tokenization.vocabulary import FIRST_BYTE, FIRST_PIECE, MARK, TYPED, processor_of, unmarked, word_entries

__all__ = ["PieceTable"]

_REMEMBERED = 500_000  # forms; later ones are looked up each time, so that a corpus of any size fits into memory
_TYPED_MARK = tuple(FIRST_BYTE + byte for byte in MARK.encode())


class PieceTable:
    """All entries of a vocabulary. `pieces`: by id; `ids`: from what is looked up (vocabulary.marked) to its ids."""

    def __init__(self, model: bytes, settings: VocabularySettings) -> None:
        processor = processor_of(model)
        if settings.mark != "none" and processor.id_to_piece(processor.piece_to_id(MARK)) != MARK:
            raise ModelError(
                f"the vocabulary has no {MARK}, but mark is {settings.mark!r}: learn it with the same settings"
            )
        words = word_entries(settings)
        learned = processor.vocab_size()
        self.pieces: list[str] = [*processor.id_to_piece(list(range(learned))), *words]
        self.ids = _Ids(
            processor, {word: (learned + place,) for place, word in enumerate(words)}, settings.mark != "none"
        )
        self._slices: dict[str, tuple[tuple[int, int], ...]] = {}

    def slices(self, key: str, form: str) -> tuple[tuple[int, int], ...]:
        """The characters of the form that each piece of ids[key] stands for. The bytes of a character all have it."""
        found = self._slices.get(key)
        if found is None:
            found = tuple(slices(form, [self._size(id) for id in self.ids[key]]))
            if len(self._slices) < _REMEMBERED:
                self._slices[key] = found
        return found

    def _size(self, id: int) -> int:
        """Bytes that a piece takes."""
        return 1 if FIRST_BYTE <= id < FIRST_PIECE else len(unmarked(self.pieces[id]).encode())


class _Ids(dict[str, tuple[int, ...]]):
    """Remembers the ids of each form."""

    def __init__(self, processor: Any, words: dict[str, tuple[int, ...]], has_marks: bool) -> None:
        super().__init__(words)
        self._encode = processor.encode
        self._typed = re.compile(rf"({TYPED})|\s+" if has_marks else rf"([{TYPED}{MARK}])|\s+")

    def __missing__(self, key: str) -> tuple[int, ...]:
        if self._typed.search(key):
            parts = [part for part in self._typed.split(key) if part]
            ids = tuple(id for part in parts for id in (_TYPED_MARK if self._typed.match(part) else self._encode(part)))
        else:
            ids = tuple(self._encode(key))
        if len(self) < _REMEMBERED:
            self[key] = ids
        return ids
