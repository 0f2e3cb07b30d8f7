"""Examples of texts: a target or a prediction in words, beginnings, marked spans, and which rows to show."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from korbert.messages import Message, join_messages
from korbert.pipelines.artifacts import formatting
from korbert.pipelines.reports.drawing.elements import Marked
from korbert.tasks.files import TaskRow

if TYPE_CHECKING:
    from korbert.tasks.kinds.kind import TaskPrediction  # whose module loads torch

_SHOWN_CHARS = 600  # of a text


def in_words(row: TaskRow, value: "TaskPrediction") -> str:
    """A target or a prediction of a row as short text."""
    match value:
        case {"choice": key} | {"label": key}:
            if key is None:  # held back
                return Message("none")
            name = row["choices"][key] if "choice" in value else key
            if "probabilities" not in value:
                return str(name)
            return f"{name} ({formatting.percent(value['probabilities'][key])})"
        case {"labels": labels}:
            return ", ".join(labels or ()) or Message("none")
        case int():
            return str(row["choices"][value])
        case float():
            return f"{value:.3f}"
        case list():
            text = row.get("text") or "".join(row.get("tokens") or ())  # tokens with spans are characters
            texts = (item if isinstance(item, str) else f"{text[item[0] : item[1]]} {item[2]}" for item in value)
            return ", ".join(texts) or Message("none")
    return str(value)


def differing(row_scores: Mapping[str, np.ndarray]) -> Iterator[tuple[str, str, list[int]]]:
    """Compares the first side with each other side, in both directions.

    Yields (better side, worse side, numbers of the rows in which it is better, largest difference first); a direction
    without such rows is left out. row_scores: side -> how right it is in each row, (N,).
    """
    first_side, *other_sides = row_scores
    for other_side in other_sides:
        for better, worse in ((first_side, other_side), (other_side, first_side)):
            gain = row_scores[better] - row_scores[worse]
            if order := [int(row) for row in np.argsort(-gain, kind="stable") if gain[row] > 0]:
                yield better, worse, order


def beginning(*texts: str) -> str:
    """Returns the texts of an example, one a line, each truncated if long."""
    return join_messages(map(_beginning, texts), "\n")


def _beginning(text: str) -> str:
    if not text.strip():
        return Message("(empty)")
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]} …"


def split_at_spans(text: str, spans: Mapping[str, Sequence[Sequence[Any]]], start: int = 0) -> Iterator[Marked]:
    """Splits a text where spans begin or end; each stretch comes with the names of the spans that cover it.

    spans: name -> half-open spans. start: offset of the first character of the text.
    """
    ends = {end for of_name in spans.values() for span in of_name for end in span[:2]}
    bounds = [start, *sorted(end for end in ends if start < end < start + len(text)), start + len(text)]
    for low, high in itertools.pairwise(bounds):
        names = [name for name, of_name in spans.items() if any(s[0] <= low and high <= s[1] for s in of_name)]
        yield text[low - start : high - start], names
