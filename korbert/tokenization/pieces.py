"""One text to pieces: the record Pieces, pieces_of, which fills it from morphemes, and special tokens in a text.

Part of exported folders, as morphemes.py says.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import accumulate, pairwise

from korbert.tokenization.morphemes import Analysis
from korbert.tokenization.vocabulary import Span as Span
from korbert.tokenization.vocabulary import Vocabulary, marked

# What begins at a piece (uint8 in files). A level includes those below: a sentence begins an eojeol and a morpheme.
CONTINUATION = 0  # nothing: the morpheme goes on; special tokens too
MORPHEME = 1
EOJEOL = 2
SENTENCE = 3


@dataclass(slots=True)
class Pieces:
    """A text as pieces, without special tokens: parallel lists of P entries.

    boundaries: CONTINUATION to SENTENCE. spans: the characters each piece stands for; all pieces of a fused morpheme
    (한다: 하, ᆫ다) have its whole span. morphemes: index into the analysis. tags: of that morpheme.
    """

    ids: list[int] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    boundaries: list[int] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    morphemes: list[int] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def joined(cls, parts: Iterable["Pieces"]) -> "Pieces":
        """The parts one after the other. Numbers of morphemes stay as they are."""
        joined = cls()
        for part in parts:
            for column in fields(cls):
                getattr(joined, column.name).extend(getattr(part, column.name))
        return joined

    def __getitem__(self, part: slice) -> "Pieces":
        return Pieces(*(getattr(self, column.name)[part] for column in fields(Pieces)))


def pieces_of(analysis: Analysis, text: str, vocabulary: Vocabulary) -> Pieces:
    """The pieces of an analyzed text."""
    pieces = Pieces()
    last_sentence = -1
    last_eojeol = -1
    columns = analysis.tags, analysis.starts, analysis.ends, analysis.sentences, analysis.eojeols
    for number, (form, tag, start, end, sentence, eojeol) in enumerate(zip(analysis.forms, *columns, strict=True)):
        initial = eojeol != last_eojeol
        level = SENTENCE if sentence != last_sentence else EOJEOL if initial else MORPHEME
        key = form if vocabulary.mark == "none" else marked(form, initial, vocabulary.mark)
        own = vocabulary.ids[key]
        if len(own) == 1:
            pieces.spans.append((start, end))
        else:
            pieces.spans += vocabulary.spans(key, form, start, end, text)
        for id in own:
            pieces.ids.append(id)
            pieces.pieces.append(vocabulary.pieces[id])
            pieces.boundaries.append(level)
            pieces.morphemes.append(number)
            pieces.tags.append(tag)
            level = CONTINUATION
        last_sentence = sentence
        last_eojeol = eojeol
    return pieces


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
    spans = [(whole.spans[first][0], whole.spans[end - 1][1]) for first, end in pairwise(bounds)]
    runs = runs_within(spans, specials)
    parts: list[Pieces] = []
    if runs is not None:
        begin = 0
        for span, (first, after) in zip(specials, runs, strict=True):
            end = bounds[first]
            parts += whole[begin:end], _special(text, span, ids, whole.boundaries[end], whole.morphemes[end])
            begin = bounds[after]
        return Pieces.joined([*parts, whole[begin:]])
    begin = 0
    morphemes = 0
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


def runs_within(spans: Sequence[Span], stretches: Sequence[Span]) -> list[Span] | None:
    """The run of spans that makes up each stretch of the text: (first, last + 1). None where a span lies partly
    in a stretch, or a stretch has no span. Both are in the order of the text, but spans step back in contractions.
    """
    starts = list(accumulate((start for start, _ in reversed(spans)), min))[::-1]  # of each or a later one
    ends = list(accumulate((end for _, end in spans), max))  # of each or an earlier one
    runs = []
    for start, end in stretches:
        first = bisect_right(ends, start)
        last = bisect_left(starts, end)
        if first >= last or starts[first] < start or ends[last - 1] > end:
            return None
        runs.append((first, last))
    return runs


def _special(text: str, span: Span, ids: Mapping[str, int], level: int, morpheme: int) -> Pieces:
    token = text[slice(*span)]
    return Pieces([ids[token]], [token], [level], [span], [morpheme], ["SW"])


def _level(text: str, start: int) -> int:
    """What begins at a character that follows others, as far as the text tells."""
    return EOJEOL if text[start - 1].isspace() else MORPHEME
