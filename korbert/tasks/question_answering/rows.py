"""Gold answers in rows of korbert.tasks.files."""

import unicodedata

from korbert.messages import Message
from korbert.records import is_empty
from korbert.tasks.files import GoldAnswer, TaskRow


def right_answers(row: TaskRow) -> list[GoldAnswer]:
    """The answers of a row with `context` and `answers`, each with its position; empty for none.

    `answers` are those of cells.answers, or the same pairs read back from predictions.jsonl.

    A question has no answer if `answers` is None or has no visible text, or if `impossible` is true, whatever its
    answers: KLUE-MRC's rows in `datasets` hold plausible ones there. An answer without a position is placed at its
    first occurrence in the context. ValueError for an answer not in the context, and for no answer if `impossible` is
    false.
    """
    answers = [(text, start) for text, start in row.get("answers") or () if not is_empty(text)]
    if row.get("impossible"):
        return []
    if not answers and row.get("impossible") is False:
        raise ValueError(Message("the question has no answer, but is not marked as impossible"))
    right = []
    context = row["context"]
    for text, start in answers:
        spelled = [text, *(unicodedata.normalize(form, text) for form in ("NFC", "NFD"))]  # macOS writes NFD
        if start is None:
            match = next((spelling for spelling in map(str.strip, spelled) if spelling in context), None)
            if match is None:
                raise ValueError(Message("the context has no {answer!r:.60}", answer=text.strip()))
            start = context.index(match)
        else:
            match = next((spelling for spelling in spelled if context.startswith(spelling, start)), None)
            if match is None:
                raise ValueError(
                    Message(
                        "the context has {there!r:.60} at {start}, the answer is {answer!r:.60}",
                        there=context[start : start + len(text)], start=start, answer=text,
                    )
                )  # fmt: skip
        right.append(GoldAnswer(match, start))
    return right
