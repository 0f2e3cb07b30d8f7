"""Gold answers in rows of korbert.tasks.files."""

import unicodedata

from korbert.records.table import is_empty
from korbert.tasks.files import Answer, Row


def right_answers(row: Row) -> list[Answer]:
    """The answers of a row with `context` and `answers`, each with its position; empty for none.

    `answers` are those of cells.answers, or the same pairs read back from predictions.jsonl.

    A question has no answer if `answers` is None or has no visible text, or if `impossible` is true, whatever its
    answers: KLUE-MRC's rows in `datasets` hold plausible ones there. An answer without a position is placed at its
    first occurrence in the context. ValueError for an answer not in the context, and for no answer if `impossible` is
    false.
    """
    given = [(text, start) for text, start in row.get("answers") or () if not is_empty(text)]
    if row.get("impossible"):
        return []
    if not given and row.get("impossible") is False:
        raise ValueError("a question without answer that is not said to have none")
    right = []
    for text, start in given:
        context = row["context"]
        spelled = [text, *(unicodedata.normalize(form, text) for form in ("NFC", "NFD"))]  # macOS writes NFD
        if start is None:
            spelled = [one.strip() for one in spelled]
            start, text = next(((context.find(one), one) for one in spelled if one in context), (-1, text.strip()))
            if start < 0:
                raise ValueError(f"the context has no {text!r:.60}")
        there = {one: context[start : start + len(one)] for one in spelled}
        if not (fitting := [one for one in spelled if there[one] == one]):
            raise ValueError(f"the context has {there[text]!r:.60} at {start}, the answer is {text!r:.60}")
        right.append(Answer(fitting[0], start))
    return right
