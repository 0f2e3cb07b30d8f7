"""Predictions for the records of a file, for `korbert predict`.

1. The kind of the model determines the fields of a record (text, or question and context).
2. Records are read in batches (records.py); each becomes a result or an error.
3. The model predicts for the results without an error. All are returned in file order.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from korbert.durable import write_aside
from korbert.errors import CorpusError, SettingsError
from korbert.model import Model
from korbert.pipelines.inference.records import ID_NAMES, TEXT_NAMES, Keys, Record, option_of, records
from korbert.records.detection import open_plain
from korbert.records.form import Format
from korbert.records.inputs import Source
from korbert.records.table import is_empty
from korbert.tasks.files import ROLES, column_for
from korbert.tasks.kinds.texts import NO_TEXT

MAX_CHARS = 100_000  # of a text; a classifier sees a few hundred pieces
_KINDS = {type(None): "null", bool: "true or false", list: "a list", dict: "an object"}

Result = dict[str, Any]


def predict_lines(
    model: Model,
    file: Source,
    name: str = "input",
    *,
    form: Format = "auto",
    columns: Mapping[str, Sequence[str]] | None = None,
) -> Iterator[list[Result]]:
    """Yields batches of results, one per record, in order: {"line", "id" if any, "text" or "question", ...}.

    A record that cannot be read gives {"line", "error"}; "cut" marks a truncated text. name, form: as in
    records.py. columns: role -> its columns or keys; for others, those that the model was trained on, else the
    first usual name that is present; "id": the one that results have as id. Raises SettingsError if a table has no such
    column or the model reads no such role, ModelError if the model's scores are NaN or it is not fine-tuned on a task.
    """
    keys, values = fields_of(model)
    columns = dict(columns or {})
    ids = tuple(columns.pop("id", ()))
    if unread := [role for role in columns if role not in keys]:
        own = " and ".join(f"`{role}`" for role in sorted(keys))
        hint = " and ".join(map(option_of, keys))
        raise SettingsError(f"{option_of(unread[0])}: this model reads {own}: use {hint}")
    known = {role: tuple(names) for role, names in {**model.columns, **columns}.items() if role in keys}
    together = {role: names for role, names in known.items() if len(names) > 1}
    keys = {role: known[role] if role in columns else known.get(role, ()) + names for role, names in keys.items()}
    for part in records(file, name, form, {**keys, "id": ids} if ids else keys):
        results = [result_of(record, keys, values, together, ids) for record in part]
        good = [result for result in results if "error" not in result]
        for result, prediction in zip(good, _predicted(model, good, keys), strict=True):
            result.update(prediction)
        yield results


def fields_of(model: Model) -> tuple[Keys, Mapping[str, Callable[[Any], Any]]]:
    """The fields that a model reads, with their usual names, and the functions that convert them."""
    if model.kind is None:
        model.require("predict")
    elif "answer" in model.can:
        return {role: ROLES[role].names for role in ("question", "context")}, {}
    elif "predict" in model.can:
        roles = [ROLES[name] for name in (*model.kind.needs, *model.kind.takes)]
        return {role.name: role.names for role in roles}, {role.name: role.value for role in roles}
    return {"text": TEXT_NAMES}, {}


def _predicted(model: Model, good: Sequence[Result], keys: Iterable[str]) -> Sequence[Mapping[str, Any]]:
    """Predictions for results; answers take their contexts out, which may be long."""
    if "answer" in model.can:
        contexts = [result.pop("context") for result in good]
        return list(map(json_of, model.answer([result["question"] for result in good], contexts)))
    if "predict" in model.can:
        rows = [{name: result[name] for name in keys if name in result} for result in good]
        return list(map(json_of, model.results_of(rows)))
    texts = [result["text"] for result in good]
    if "tag" in model.can:
        return list(map(json_of, model.tag(texts)))
    return [{"vector": vector.tolist()} for vector in model.embed(texts)]


def json_of(result: Any) -> dict[str, Any]:
    """A result of `Model.predict`, `tag` or `answer` as a JSON object."""
    if is_dataclass(result):  # a Label, an Answer, ..; what not every one has, such as `why`, only where there is one
        named = {field.name: (getattr(result, field.name), field.default) for field in fields(result)}
        return {name: value for name, (value, default) in named.items() if value is not None or default is MISSING}
    if isinstance(result, list):
        return {"spans": list(map(vars, result))}
    if isinstance(result, dict):
        return {"slots": result}
    return {"prediction": None, "why": NO_TEXT} if result != result else {"prediction": result}


def chosen(result: Result, top: int | None = None, threshold: float | None = None) -> Result:
    """A result with the `top` most probable labels, without what is less probable than the threshold.

    Below it a label becomes null; of several labels, and of spans, those below are left out. A result without a text
    stays as it is.
    """
    if "why" in result:
        return result
    result = dict(result)
    probabilities = result.get("probabilities")
    if isinstance(probabilities, Mapping):
        ranked = sorted(probabilities.items(), key=lambda pair: -pair[1])
        if threshold is not None and "labels" in result:
            result["labels"] = [label for label, probability in probabilities.items() if probability >= threshold]
        elif threshold is not None and ranked[0][1] < threshold:
            result["label"] = None
        result["probabilities"] = dict(ranked[:top]) if top else probabilities
    if threshold is not None and "spans" in result:
        result["spans"] = [span for span in result["spans"] if span["score"] >= threshold]
    return result


def as_csv(batches: Iterable[Sequence[Result]]) -> Iterator[str]:
    """The rows of as_table as CSV, a part for each batch."""
    for rows in as_table(batches):
        part = io.StringIO()
        csv.writer(part, lineterminator="\n").writerows(rows)
        yield part.getvalue()


def as_table(batches: Iterable[Sequence[Result]]) -> Iterator[list[list[str]]]:
    """The results as rows below their header, some for each batch: line, id, keys of the first prediction, error.

    Behind a label stands the `probability` of the most probable one. Lists and objects are JSON, numbers have six
    digits; why a text has no label stands in `error`. Rows before the first prediction wait for it.
    """
    columns, waiting = list[str](), list[Result]()
    for batch in batches:
        waiting += map(_cells, batch)
        part = []
        if not columns and (good := next((row for row in waiting if row["error"] in (None, NO_TEXT)), None)):
            columns = list(dict.fromkeys(["line", "id", *good, "error"]))
            part.append(columns)
        if columns:
            part += [["" if row.get(column) is None else str(row[column]) for column in columns] for row in waiting]
            waiting.clear()
            yield part


def write_parquet(output: Path, model: Model, file: Source, form: Format, batches: Iterable[Sequence[Result]]) -> None:
    """Writes a Parquet or Arrow file with its predictions behind its own columns: the cells of as_csv, without texts.

    A prediction whose name the file has already gets `predicted_` before it. SettingsError for another file.
    """
    table = open_plain(file, "auto" if form == "lines" else form) if isinstance(file, Path) else None
    if table is None or table.batches is None:
        raise SettingsError(
            f"--output {output}: is for .xlsx, or for the columns of a file of Parquet: leave it out, and write > FILE"
        )
    read = {"line", "id", "cut", *fields_of(model)[0]}
    found = map(_cells, chain.from_iterable(batches))
    rows = [{name: cell for name, cell in row.items() if name not in read} for row in found]
    if not rows:
        raise CorpusError(f"{file}: holds no row, so there is nothing to write: give a file with rows")
    whole = pa.Table.from_batches(table.batches(table.columns))
    for name in sorted(dict.fromkeys(chain.from_iterable(rows)), key="error".__eq__):
        column, cells = name, [row.get(name) for row in rows]
        while column in whole.column_names:
            column = f"predicted_{column}"
        whole = whole.append_column(column, pa.array(cells, pa.string() if name == "error" else None))
    write_aside(output, lambda file: pq.write_table(whole, file, compression="zstd"))


def _cells(result: Result) -> Result:
    """A result as the cells of a row, with `error` at the end."""
    row, rounded = Result(), _rounded(result)
    for key, value in rounded.items():
        row[key] = json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value
        if key == "label" and "probabilities" in rounded:
            row["probability"] = max(rounded["probabilities"].values(), default=None)
    return row | {"error": row.get("error", row.pop("why", None))}


def _rounded(value: Any) -> Any:
    """The value with its numbers rounded to six digits."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return {key: _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list) else value


def result_of(
    record: Record,
    keys: Keys,
    values: Mapping[str, Callable[[Any], Any]],
    together: Keys | None = None,
    ids: tuple[str, ...] = (),
) -> Result:
    """A result without its prediction: line and id of the record, and the values of `keys` or an error.

    values: key -> function that converts its field or raises ValueError; fields of other keys must be strings.
    together: key -> fields that hold its value as a list, if all are present (보기1, 보기2).
    ids: names of the id's field, if it is none of ID_NAMES.
    """
    result: Result = {"line": record.line}
    own = column_for(ids, tuple(record.fields)) if ids else next(filter(record.fields.__contains__, ID_NAMES), None)
    id = record.fields.get(own or "")
    if isinstance(id, str | int) and not isinstance(id, bool):
        result["id"] = id
    if record.error:
        return {**result, "error": record.error}
    for key, names in keys.items():
        place = column_for(names, tuple(record.fields))
        if place is None and not ROLES[key].required:
            continue
        if place is None:
            there = ", ".join(map(repr, list(record.fields)[:6])) or "nothing"
            return {**result, "error": f"has no {names[0]!r}, but {there}: name it with {option_of(key)}"}
        value = record.fields[place]
        if together and set(together.get(key, [None])) <= record.fields.keys():
            value = [record.fields[name] for name in together[key]]
        if is_empty(value) and values.get(key) is ROLES["text"].value:
            result[key] = value if isinstance(value, str) else ""
            continue
        if key in values:
            try:
                result[key] = values[key](value)
            except ValueError as error:
                return {**result, "error": f"{place!r} {error}"}
            continue
        if not isinstance(value, str):
            return {**result, "error": f"{place!r} is {_KINDS.get(type(value), 'a number')}, not a string"}
        result[key] = value
    if "text" in result and (record.cut or len(result["text"]) > MAX_CHARS):
        result["text"], result["cut"] = result["text"][:MAX_CHARS], True
    return result
