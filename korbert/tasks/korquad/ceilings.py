"""Upper bound on KorQuAD scores for a tokenizer: the best spans that its pieces can express.

61 of 100 answers are directly followed by a particle (세종이: 세종): a tokenizer that does not cut there loses them,
whatever the model. Two ceilings: `pieces` uses whole pieces, a first and a last; `characters` also allows cutting
characters off the start of the first and the end of the last piece, where a piece is a slice of the text.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Literal, TypedDict

from korbert.errors import CorpusError
from korbert.tasks.files import Answer, Place, Row, Rows
from korbert.tasks.korquad.metrics import exact_match, f1
from korbert.tasks.question_answering.rows import right_answers
from korbert.tokenization import Pieces, Tokenizer
from korbert.tokenization.encoding import cut_within, is_slice, span_of, span_to_pieces
from korbert.tokenization.pieces import Span

_AROUND = 2  # pieces around the shortest sequence that are also tried as first and last


Cause = Literal["fused", "inside a piece", "no piece"]


class Ceiling(TypedDict):
    """Percent over all questions, by the official score. causes: how many questions each one costs."""

    exact_match: float
    f1: float
    causes: dict[str, int]


class Unreached(TypedDict):
    """An answer that a ceiling misses. best: ceiling -> its closest text. pieces: those that prevent it, with tags."""

    id: str
    answer: str
    best: dict[str, str]
    cause: Cause
    pieces: list[str]


class Oracle(TypedDict):
    """Result of `oracle`."""

    count: int
    pieces: Ceiling
    characters: Ceiling
    unreached: list[Unreached]


def oracle(rows: Rows, tokenizer: Tokenizer, *, workers: int = 1) -> Oracle:
    """The ceilings of both kinds, and the answers that one of them misses.

    rows: from korquad.read, with answers. workers: threads for Kiwi. An answer is missed for one of three causes:
    an end is inside a morpheme that shares its characters with another or is written otherwise (`fused`: 했 is 하 and
    었), inside a piece that could be cut there (`inside a piece`), or no piece stands over it (`no piece`).
    """
    contexts = list(dict.fromkeys(row["context"] for row in rows))
    pieces_of = dict(zip(contexts, tokenizer.pieces_of_many(contexts, workers=workers), strict=True))
    f1_sums = dict.fromkeys(("pieces", "characters"), 0.0)
    unreached: list[Unreached] = []
    for row, place in zip(rows, rows.places, strict=True):
        text, pieces, right = row["context"], pieces_of[row["context"]], _answers_of(row, place)
        answers = [answer.text for answer in right]
        best = _best(right, text, pieces)
        for name, reached in best.items():
            f1_sums[name] += f1(reached, answers)
        if missed := {name: reached for name, reached in best.items() if not exact_match(reached, answers)}:
            cause, names = _cause(text, pieces, right[0].span)
            unreached.append({"id": row["id"], "answer": answers[0], "best": missed, "cause": cause, "pieces": names})
    count = len(rows)

    def ceiling(name: str) -> Ceiling:
        causes = Counter[str](miss["cause"] for miss in unreached if name in miss["best"])
        exact = count - causes.total()
        return {"exact_match": 100 * exact / count, "f1": 100 * f1_sums[name] / count, "causes": dict(causes)}

    return {"count": count, "pieces": ceiling("pieces"), "characters": ceiling("characters"), "unreached": unreached}


def _answers_of(row: Row, place: Place) -> list[Answer]:
    try:
        if right := right_answers(row):
            return right
        what = "has no answer"
    except ValueError as error:
        what = str(error)
    raise CorpusError(f"{place}: question {row['id']}: {what}: mend it")


def _best(right: Sequence[Answer], text: str, pieces: Pieces) -> dict[str, str]:
    """Ceiling -> the reachable text with the best score, the shortest sequence among ties."""
    answers = [answer.text for answer in right]

    def quality(candidate: str) -> tuple[bool, float]:
        return exact_match(candidate, answers), f1(candidate, answers)

    tried: dict[str, list[str]] = {"pieces": [], "characters": []}
    offsets = sorted(range(-_AROUND, _AROUND + 1), key=abs)
    for answer in right:
        if (run := span_to_pieces(pieces.spans, *answer.span)) is None:
            continue
        for of_first, of_last in product(offsets, offsets):  # the shortest run over it first
            first, last = run[0] + of_first, run[1] + of_last
            if not 0 <= first <= last < len(pieces):
                continue
            tried["pieces"].append(text[slice(*span_of(pieces.spans, first, last))])
            tried["characters"].append(text[slice(*cut_within(text, pieces, first, last, *answer.span))])
            if all(exact_match(texts[-1], answers) for texts in tried.values()):  # nearly always at once
                return {name: texts[-1] for name, texts in tried.items()}
    return {name: max(texts, key=quality, default="") for name, texts in tried.items()}


def _cause(text: str, pieces: Pieces, answer: Span) -> tuple[Cause, list[str]]:
    """Why no two pieces yield these characters, and the pieces that cross an end of them."""
    torn = [piece for piece, (low, high) in enumerate(pieces.spans) if any(low < end < high for end in answer)]
    fused = [piece for piece in torn if not is_slice(text, pieces, piece)]
    names = [f"{pieces.pieces[piece]}/{pieces.tags[piece]}" for piece in fused or torn]
    return ("fused" if fused else "inside a piece" if torn else "no piece"), names
