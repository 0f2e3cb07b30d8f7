"""Predictions for the records of a file, for `korbert predict`.

1. The kind of the model determines the fields of a record (text, or question and context).
2. Records are read in batches (input_records.py); each becomes a result or an error.
3. The model predicts for the results without an error. All are returned in file order.
"""

import codecs
import csv
import io
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from korbert.errors import CorpusError, SettingsError
from korbert.messages import Message, argument
from korbert.model import Model
from korbert.personal_data import mask_rows
from korbert.pipelines.inference.input_records import InputResult, Record, option_of, records
from korbert.records import Format, Source, open_plain, type_name
from korbert.system import JsonObject, write_atomically
from korbert.tasks.files import ROLES, Role, text_or_empty
from korbert.tasks.files.cells import text
from korbert.tasks.kinds.texts import NO_TEXT, TextKind


@dataclass(frozen=True)
class RecordReader:
    """The roles that a model reads, with the names of their columns.

    known: role -> the columns that hold it, as given by the user or as in the training file. ids: columns of the id.
    mask_personal: whether personal data in texts is replaced by tags.
    """

    roles: Sequence[Role]
    known: Mapping[str, tuple[str, ...]]
    ids: tuple[str, ...] = ()
    mask_personal: bool = False

    @classmethod
    def of(
        cls, model: Model, columns: Mapping[str, Sequence[str]] | None = None, *, mask_personal: bool = False
    ) -> Self:
        """columns: role -> its columns or keys; for other roles, those that the model was trained on, else the first
        usual name that is present; "id": the column that results have as id. mask_personal: also of a model that has
        not learned so. SettingsError for a role that the model does not read.
        """
        roles = roles_of(model)
        if mask_personal and not isinstance(model.kind, TextKind):  # spans would be those of the masked text
            raise SettingsError(
                "{option}: is for models of labels and numbers: leave it out", option=argument("mask_personal")
            )
        columns = dict(columns or {})
        ids = tuple(columns.pop("id", ()))
        role_names = [role.name for role in roles]
        if unread := [role for role in columns if role not in role_names]:
            raise SettingsError(
                "{option_of}: this model reads {read}: use {hint}",
                option_of=option_of(unread[0]),
                read=" and ".join(f"`{role}`" for role in sorted(role_names)),
                hint=" and ".join(map(option_of, role_names)),
            )
        known_columns = {role: tuple(names) for role, names in {**model.columns, **columns}.items()}
        # A column that the user names is the only one looked for: a column with a usual name could hold another role.
        usual_names = {role.name: () if role.name in columns else role.names for role in roles}
        roles = [replace(role, names=known_columns.get(role.name, ()) + usual_names[role.name]) for role in roles]
        return cls(roles, known_columns, ids, mask_personal or model.task.masks_personal)

    @property
    def wanted(self) -> list[Role]:
        """The roles to read from a file: those of the model, and the id if its columns are named."""
        return [*self.roles, Role("id", self.ids)] if self.ids else [*self.roles]

    def rows(self, batch: Sequence[Record]) -> list[InputResult]:
        """Returns a row for each record: {"line", "id" if any, "text" or "question", ...}, or {"line", "error"}; "cut"
        marks a truncated text.
        """
        rows = [record.result(self.roles, self.known, self.ids) for record in batch]
        if self.mask_personal:
            mask_rows(rows)
        return rows


def predict_lines(
    model: Model,
    file: Source,
    name: str = "input",
    *,
    form: Format = "auto",
    columns: Mapping[str, Sequence[str]] | None = None,
    why: bool = False,
    mask_personal: bool = False,
) -> Iterator[list[InputResult]]:
    """Yields batches of rows with predictions, one per record, in order, as RecordReader.rows has them.

    name, form: as in input_records.py. columns, mask_personal: as in RecordReader. why, ModelError: as in
    `add_predictions`. Raises SettingsError if a table has no such column.
    """
    reading = RecordReader.of(model, columns, mask_personal=mask_personal)
    for rows in map(reading.rows, records(file, name, form, reading.wanted)):
        add_predictions(model, rows, why=why)
        yield rows


def add_predictions(model: Model, rows: Sequence[InputResult], *, why: bool = False) -> None:
    """Adds a prediction to each row without an error. why: as in Model.predict.

    ModelError if the model's scores are NaN or it is not fine-tuned on a task.
    """
    good = [row for row in rows if "error" not in row]
    if model.task.operation == "embed":
        predictions = [{"vector": vector.tolist()} for vector in model.embed([row["text"] for row in good])]
    else:
        predictions = [json_of(result) for result in model.results_of(good, why=why)]
    for row, prediction in zip(good, predictions, strict=True):
        row.pop("context", None)  # which may be long
        row.update(prediction)
        # Columns of a table, whatever the first row has.
        if why:
            row.setdefault("reasons", None)
        if getattr(model.network, "knows_usual", False):
            row.setdefault("unlike", None)


def roles_of(model: Model) -> list[Role]:
    """Returns the roles that a model reads from a record."""
    kind = model.task
    if "predict" not in model.can:
        names = ("question", "context") if "answer" in model.can else ("text",)
        return [replace(ROLES[name], value=lambda cell: text(string(cell))) for name in names]
    roles = [ROLES[name] for name in (*kind.needs, *kind.takes)]
    return [replace(role, value=text_or_empty) if role.value is ROLES["text"].value else role for role in roles]


def string(cell: object) -> str:
    """The cell. ValueError if it is not a string."""
    if not isinstance(cell, str):
        raise ValueError(Message("is {kind}, not a string", kind=type_name(cell)))
    return cell


def json_of(result: object) -> JsonObject:
    """A result of `Model.predict`, `tag` or `answer` as a JSON object."""
    if is_dataclass(result) and not isinstance(result, type):  # a Label, an Answer, ..
        # Optional fields, such as `why`, are left out where they are None.
        named = {field.name: (getattr(result, field.name), field.default) for field in fields(result)}
        if getattr(result, "reasons", None):
            named["reasons"] = (asdict(result)["reasons"], None)
        return {name: value for name, (value, default) in named.items() if value is not None or default is MISSING}
    if isinstance(result, list):
        return {"spans": list(map(vars, result))}
    if isinstance(result, dict):
        return {"slots": result}
    return {"prediction": None, "why": NO_TEXT} if result != result else {"prediction": result}


def threshold_of(model: Model, threshold: float | None) -> float | None:
    """The threshold for `select_labels`: what a model holds back below a higher one stays so."""
    return None if threshold is None else max(threshold, getattr(model.kind, "abstains_below", 0.0) / 100)


def select_labels(result: InputResult, top: int | None = None, threshold: float | None = None) -> InputResult:
    """A result with the `top` most probable labels, without what is less probable than the threshold.

    Below it a label becomes null; of several labels, and of spans, those below are left out. A result without a text
    stays as it is.
    """
    if result.get("why") == NO_TEXT:
        return result
    result = dict(result)
    probabilities = result.get("probabilities")
    if isinstance(probabilities, Mapping):
        ranked = sorted(probabilities.items(), key=lambda pair: -pair[1])
        if threshold is not None and result.get("labels") is not None:
            result["labels"] = [label for label, probability in probabilities.items() if probability >= threshold]
        elif threshold is not None and "label" in result and ranked[0][1] < threshold:
            result["label"] = None
        result["probabilities"] = dict(ranked[:top]) if top else probabilities
    if threshold is not None and "spans" in result:
        result["spans"] = [span for span in result["spans"] if span["score"] >= threshold]
    return result


def as_csv(batches: Iterable[Sequence[InputResult]]) -> Iterator[str]:
    """The rows of as_table as CSV, a part for each batch."""
    for rows in as_table(batches):
        yield "".join(map(csv_line, rows))


def csv_line(row: Sequence[object]) -> str:
    """A row as a line of CSV that ends in a line feed."""
    line = io.StringIO()
    csv.writer(line).writerow(row)  # lines that end in \r\n: a field with one of the two is quoted
    return line.getvalue()[:-2] + "\n"


def as_table(batches: Iterable[Sequence[InputResult]]) -> Iterator[list[list[str | float]]]:
    """Yields the results as rows below a header, a list per batch: line, id, keys of the first prediction, error.

    The `probability` after a label is that of the most probable one. Lists and objects are JSON, numbers have six
    digits; `error` also says why a text has no label. Rows before the first prediction are held back until its keys are
    known; without any prediction, the rows have their errors alone.
    """
    columns = list[str]()
    waiting = list[InputResult]()
    for batch in batches:
        waiting += map(_cells, batch)
        part = list[list[str | float]]()
        if not columns and (good := next((_cells(row) for row in batch if "error" not in row), None)):
            columns = list(dict.fromkeys(["line", "id", *good, "error"]))
            part.append([*columns])
        if columns:
            yield part + _table_rows(waiting, columns)
            waiting.clear()
    if waiting:
        columns = ["line", "id", "error"]
        yield [[*columns], *_table_rows(waiting, columns)]


def _table_rows(results: Sequence[InputResult], columns: Sequence[str]) -> list[list[str | float]]:
    return [[_table_cell(result.get(column)) for column in columns] for result in results]


def _table_cell(value: object) -> str | float:
    if value is None:
        return ""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def write_csv(output: Path, batches: Iterable[Sequence[InputResult]]) -> None:
    """Writes the rows of as_csv to a file that Excel can open."""
    parts = chain([codecs.BOM_UTF8], map(str.encode, as_csv(batches)))
    write_atomically(output, lambda file: file.writelines(parts))


def write_parquet(
    output: Path, model: Model, file: Source, form: Format, batches: Iterable[Sequence[InputResult]]
) -> None:
    """Writes a Parquet or Arrow file with its predictions after its own columns: the cells of as_csv, without texts.

    A prediction whose name the file has already gets `predicted_` before it. SettingsError for a file of another form,
    CorpusError for one without rows.
    """
    table = open_plain(file, "auto" if form == "lines" else form) if isinstance(file, Path) else None
    if table is None or table.batches is None:
        raise SettingsError(
            "{option} {output}: is for .csv and .xlsx, or for the columns of a file of Parquet: name it .csv",
            output=output,
            option=argument("output"),
        )
    results = [*chain.from_iterable(batches)]
    if not results:
        raise CorpusError("{file}: holds no row, so there is nothing to write: give a file with rows", file=file)
    whole = pa.Table.from_batches(table.batches(table.columns))
    whole = with_predictions(whole, results, {"line", "id", *(role.name for role in roles_of(model))})
    write_atomically(output, lambda file: pq.write_table(whole, file, compression="zstd"))


def with_predictions(table: pa.Table, results: Sequence[InputResult], left_out: Collection[str]) -> pa.Table:
    """A table with the results of its rows as further columns: the cells of as_csv, without those left out and `cut`.

    A result whose name a column has already gets `predicted_` before it. Vectors become lists of numbers.
    """
    vectors = [result.get("vector") for result in results]
    hidden = {*left_out, "cut", "vector"}
    rows = [_cells({name: cell for name, cell in row.items() if name not in hidden}) for row in results]
    columns = {}
    for name in sorted(dict.fromkeys(chain.from_iterable(rows)), key="error".__eq__):
        cells = [row.get(name) for row in rows]
        columns[name] = pa.array(cells, pa.string() if name == "error" else None)
    has_vector = np.array([vector is not None for vector in vectors])
    if has_vector.any():
        columns["vector"] = list_array(np.array([vector for vector in vectors if vector is not None]), has_vector)
    for name, column in columns.items():
        while name in table.column_names:
            name = f"predicted_{name}"
        table = table.append_column(name, column)
    return table


def list_array(vectors: NDArray[np.float32], there: NDArray[np.bool_]) -> pa.Array:
    """Returns N vectors (N, D) as an Arrow column with a list of D numbers where `there` is true, else null."""
    width = vectors.shape[1]
    rows = np.zeros((len(there), width), np.float32)
    rows[there] = vectors
    flat = pa.array(rows.reshape(-1))  # several hundred times faster than from a list of rows
    return pa.FixedSizeListArray.from_arrays(flat, width, mask=pa.array(~there))


def _cells(result: InputResult) -> InputResult:
    """A result as the cells of a row, with `error` at the end."""
    rounded = _round_numbers(result)
    row = InputResult()
    for key, value in rounded.items():
        row[key] = json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value
        if key == "label" and "probabilities" in rounded:
            row["probability"] = max(rounded["probabilities"].values(), default=None)
    return row | {"error": row.get("error", row.pop("why", None))}


def _round_numbers(value: object) -> Any:
    """The value with its numbers rounded to six digits."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return {key: _round_numbers(item) for key, item in value.items()}
    return [_round_numbers(item) for item in value] if isinstance(value, list) else value
