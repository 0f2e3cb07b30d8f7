"""One text's morphemes to pieces: the record Pieces, and pieces_of, which fills it.

Part of exported folders, as morphemes.py says.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any

from korbert.tokenization.morphemes import Analysis
from korbert.tokenization.vocabulary import Vocabulary, marked

# What begins at a piece (uint8 in files). A level includes those below: a sentence begins an eojeol and a morpheme.
CONTINUATION = 0  # nothing: the morpheme goes on; special tokens too
MORPHEME = 1
EOJEOL = 2
SENTENCE = 3

Span = tuple[int, int]  # half-open, in code points of the text as given


@dataclass(slots=True)
class Pieces:
    """A text as pieces, without special tokens: parallel lists of P entries.

    boundaries: CONTINUATION to SENTENCE. spans: the characters each piece stands for; all pieces of a fused morpheme
    (한다: 하, ᆫ다) have its whole span. morphemes: index into the analysis. tags: of that morpheme.
    """

    ids: list[int]
    pieces: list[str]
    boundaries: list[int]
    spans: list[Span]
    morphemes: list[int]
    tags: list[str]

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def joined(cls, parts: Iterable["Pieces"]) -> "Pieces":
        """The parts one behind the other. Numbers of morphemes stay as they are."""
        nothing = cls([], [], [], [], [], [])
        columns = zip(*(part._columns() for part in [nothing, *parts]), strict=True)
        return cls(*(list(chain.from_iterable(column)) for column in columns))

    def __getitem__(self, part: slice) -> "Pieces":
        return Pieces(*(column[part] for column in self._columns()))

    def _columns(self) -> tuple[list[Any], ...]:
        return self.ids, self.pieces, self.boundaries, self.spans, self.morphemes, self.tags


def pieces_of(analysis: Analysis, text: str | None, vocabulary: Vocabulary) -> Pieces:
    """The pieces of an analyzed text. tokenizer.py does the same to many texts, in columns.

    text: as it was analyzed. None where it is no longer at hand: a morpheme is then taken for a slice of the text where
    the lengths agree.
    """
    mark, names = vocabulary.mark, vocabulary.pieces
    ids: list[int] = []
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
        own = vocabulary.ids[key]
        if len(own) == 1:
            spans.append((start, end))
        else:
            spans += vocabulary.spans(key, form, start, end, text)
        for id in own:
            ids.append(id)
            pieces.append(names[id])
            levels.append(level)
            morphemes.append(number)
            tags.append(tag)
            level = CONTINUATION
        last_sentence, last_eojeol = sentence, eojeol
    return Pieces(ids, pieces, levels, spans, morphemes, tags)
