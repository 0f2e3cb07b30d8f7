"""One text to pieces: the record Pieces, pieces_of, which fills it from morphemes, and special tokens in a text.

Part of exported folders, as morphemes.py says.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

from korbert.tokenization.morphemes import Analysis
from korbert.tokenization.spans import runs_within
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


def pieces_of(analysis: Analysis, text: str, vocabulary: Vocabulary) -> Pieces:
    """The pieces of an analyzed text."""
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
        key = form if vocabulary.mark == "none" else marked(form, initial, vocabulary.mark)
        own = vocabulary.ids[key]
        if len(own) == 1:
            spans.append((start, end))
        else:
            spans += vocabulary.spans(key, form, start, end, text)
        for id in own:
            ids.append(id)
            pieces.append(vocabulary.pieces[id])
            levels.append(level)
            morphemes.append(number)
            tags.append(tag)
            level = CONTINUATION
        last_sentence, last_eojeol = sentence, eojeol
    return Pieces(ids, pieces, levels, spans, morphemes, tags)


def encode_with_special(text: str, encode: Callable[[str], Pieces], ids: Mapping[str, int]) -> Pieces:
    """The pieces of a text as `encode` gives them, but each special token in it is one piece. ids: of these tokens.

    The text is analyzed whole, so that Kiwi sees both sides of a gap, and the special tokens replace the morphemes
    that Kiwi took them for. Where one is part of a morpheme (https://example.com/[MASK]), the stretches between the
    special tokens are analyzed one by one.
    """
    longest_first = sorted(ids, key=len, reverse=True)
    specials = [match.span() for match in re.finditer("|".join(map(re.escape, longest_first)), text)]
    whole = encode(text)
    # Runs of morphemes, not of pieces: the mark of the first one is a piece without characters, which must go, too.
    bounds = [*(index for index, level in enumerate(whole.boundaries) if level != CONTINUATION), len(whole)]
    spans = [(whole.spans[first][0], whole.spans[behind - 1][1]) for first, behind in pairwise(bounds)]
    runs = runs_within(spans, specials)
    parts: list[Pieces] = []
    if runs is not None:
        begin = 0
        for span, (first, behind) in zip(specials, runs, strict=True):
            end = bounds[first]
            parts += whole[begin:end], _special(text, span, ids, whole.boundaries[end], whole.morphemes[end])
            begin = bounds[behind]
        return Pieces.joined([*parts, whole[begin:]])
    begin = morphemes = 0
    for start, end in [*specials, (len(text), len(text))]:
        if between := encode(text[begin:start]):
            between.spans = [(begin + low, begin + high) for low, high in between.spans]
            between.boundaries[0] = _level(text, between.spans[0][0])
            between.morphemes = [morphemes + number for number in between.morphemes]
            morphemes = between.morphemes[-1] + 1
            parts.append(between)
        if start < end:
            parts.append(_special(text, (start, end), ids, _level(text, start), morphemes))
            morphemes += 1
        begin = end
    pieces = Pieces.joined(parts)
    pieces.boundaries[0] = SENTENCE
    return pieces


def _special(text: str, span: Span, ids: Mapping[str, int], level: int, morpheme: int) -> Pieces:
    token = text[slice(*span)]
    return Pieces([ids[token]], [token], [level], [span], [morpheme], ["SW"])


def _level(text: str, start: int) -> int:
    """What begins at a character behind others, as far as the text tells."""
    return EOJEOL if text[start - 1].isspace() else MORPHEME
