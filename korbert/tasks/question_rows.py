"""Gold answers in rows of korbert.tasks.files."""

from korbert.tasks.files import Row, cells
from korbert.tasks.questions import Answer

__all__ = ["right_answers"]


def right_answers(row: Row) -> list[Answer]:
    """The answers of a row with `context` and `answers`, each with its position; empty for none.

    `answers` are those of cells.answers, or the same pairs read back from predictions.jsonl.

    A question has no answer if `answers` is None or has no visible text, or if `impossible` is true, whatever its
    answers: KLUE-MRC's rows in `datasets` hold plausible ones there. An answer without a position is placed at its
    first occurrence in the context. ValueError for an answer not in the context, and for no answer if `impossible` is
    false.
    """
    given = [(text, start) for text, start in row.get("answers") or () if not cells.is_empty(text)]
    if row.get("impossible"):
        return []
    if not given and row.get("impossible") is False:
        raise ValueError("a question without answer that is not said to have none")
    right = []
    for text, start in given:
        context = row["context"]
        if start is None:
            text = text.strip()
            start = context.find(text)
            if start < 0:
                raise ValueError(f"the context has no {text!r:.60}")
        answer = Answer(text, start)
        if (there := context[slice(*answer.span)]) != text:
            raise ValueError(f"the context has {there!r:.60} at {start}, the answer is {text!r:.60}")
        right.append(answer)
    return right
