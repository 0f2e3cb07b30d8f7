"""Lines in, results out: what `korbert predict` and `korbert fill` do with a model."""

from collections.abc import Iterator
from typing import IO, Any

from korbert.errors import ModelError, SettingsError
from korbert.loading import Loaded
from korbert.tasks.classification import Classifier
from korbert.tasks.reading import Reader
from pipelines.records import Format, Keys, Record, records

__all__ = ["MAX_CHARS", "Result", "predict_lines"]

MAX_CHARS = 100_000  # of a text; a classifier sees some hundred pieces
_TEXT = (
    "text",
    "document",
    "sentence",
    "review",
    "comment",
    "content",
    "문장",
    "텍스트",
    "본문",
    "내용",
    "리뷰",
    "댓글",
)

Result = dict[str, Any]


def predict_lines(
    model: Loaded, file: IO[bytes], name: str = "input", *, form: Format = "auto", text: str | None = None
) -> Iterator[list[Result]]:
    """A result a record, in order, some at a time: {"line", "id" where it has one, "text" or "question", ...}.

    A record that cannot be read gives {"line", "error"}; a text of which the beginning alone was read has "cut".
    name, form: as pipelines.records has them; name is also what errors call the input. text: column or key of the text;
    None: the first usual name that is there. Raises SettingsError where a table has no such column, ModelError where
    the model gives scores that are no numbers, or has learned no task.
    """
    if isinstance(model, Classifier):
        keys: Keys = {"text": (text,) if text else _TEXT}
    elif isinstance(model, Reader):
        keys = {"question": ("question",), "context": ("context",)}
    else:
        raise ModelError(
            "this model fills gaps and has learned no task: use `korbert fill`, or a model of nsmc or korquad"
        )
    if isinstance(model, Reader) and text:
        raise SettingsError("--text is for a model that classifies: this one reads `context` and `question`")
    for part in records(file, name, form, keys):
        results = [_result(record, keys) for record in part]
        good = [result for result in results if "error" not in result]
        found: list[Any]
        if isinstance(model, Classifier):
            found = list(model.predict([result["text"] for result in good]))
        else:
            found = list(model.answer([result.pop("context") for result in good], [one["question"] for one in good]))
        for result, prediction in zip(good, found, strict=True):
            result.update(prediction)
        yield results


def _result(record: Record, keys: Keys) -> Result:
    """What comes before the prediction: the record's line and id, and the texts of `keys`; or its error."""
    result: Result = {"line": record.line}
    id = record.fields.get("id")
    if isinstance(id, str | int) and not isinstance(id, bool):
        result["id"] = id
    if record.error:
        return {**result, "error": record.error}
    for key, names in keys.items():
        place = next((name for name in names if name in record.fields), None)
        if place is None:
            return {**result, "error": f"has no {names[0]!r}"}
        value = record.fields[place]
        if not isinstance(value, str):
            return {**result, "error": f"{place!r} is {_KINDS.get(type(value), 'a number')}, not a string"}
        result[key] = value
    if record.cut or len(result.get("text", "")) > MAX_CHARS:
        result["text"], result["cut"] = result["text"][:MAX_CHARS], True
    return result


_KINDS = {type(None): "null", bool: "true or false", list: "a list", dict: "an object"}
