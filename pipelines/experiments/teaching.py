"""What teachers say of the rows that an encoder learns, and texts without labels that they alone say anything of.

The outputs of each teacher are computed once, in parts of some thousand rows that an interrupted run keeps.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from korbert.errors import CorpusError, ModelError
from korbert.messages import Message, join_messages, reason
from korbert.model import Model
from korbert.pipelines.inference.input_records import records
from korbert.records import Fault, is_empty
from korbert.system import broadcast, content_digest, intact, needed_for, read_object, sha256_of, track
from korbert.system.durable import write_bytes_atomically
from korbert.system.transformers_package import quietly, reason_of
from korbert.tasks.doubts import words_of
from korbert.tasks.files import Place, Role, TaskRow, TaskRows
from korbert.tasks.kinds.classification import Classification
from korbert.tasks.kinds.kind import Kind, Prepared, Said, TaughtKind
from korbert.tasks.kinds.texts import TextKind
from korbert.tasks.splits import subset

_PART_ROWS = 4_096
_BATCH_TEXTS = 32  # of a teacher of transformers
_TEXTS = ("text", "pair", "context", "question")  # roles that hold them


class Teacher(Protocol):
    """A model of the same task as that which learns from it."""

    folder: Path
    kind: Any

    def said(self, rows: Sequence[TaskRow]) -> Said:
        """What it says of rows, with the labels of its kind."""


def mean_shares(
    task: TaughtKind, prepared: Prepared, folders: Iterable[Path], cache: Path, device: torch.device
) -> NDArray[np.float32]:
    """The mean of what the teachers in these folders say of rows, as TaughtKind.heard has it.

    cache: the folder of the parts. ModelError if one has another task, or other labels.
    """
    teachers = [teacher_of(folder, task, device) for folder in folders]
    heard = []
    for teacher in teachers:
        try:
            heard.append(task.heard(_computed(teacher, prepared.rows, cache), teacher.kind, prepared))
        except ValueError as error:
            raise ModelError(
                "{folder}: {fault}: name another teacher", folder=teacher.folder, fault=reason(error)
            ) from None
    return sum(heard[1:], heard[0]) / np.float32(len(heard))


def _computed(teacher: Teacher, rows: Sequence[TaskRow], cache: Path) -> Said:
    files = [teacher.folder / "config.json", *sorted(teacher.folder.glob("*.safetensors"))]
    made_from = list(map(sha256_of, files))
    parts = [rows[start : start + _PART_ROWS] for start in range(0, len(rows), _PART_ROWS)]
    names = []
    for part in parts:
        texts = json.dumps([made_from, [teacher.kind.texts(row) for row in part]], ensure_ascii=True)
        names.append(f"taught-{hashlib.sha256(texts.encode()).hexdigest()[:32]}")

    def make() -> None:
        missing = [number for number, name in enumerate(names) if intact(cache, name) is None]
        with track("teacher", len(rows), "rows", len(rows) - sum(len(parts[number]) for number in missing)) as advance:
            for number in missing:
                buffer = BytesIO()
                np.savez(buffer, **teacher.said(parts[number])._asdict())
                data = buffer.getvalue()
                write_bytes_atomically(cache / f"{names[number]}-{content_digest(data)}.npz", data)
                advance(len(parts[number]))

    broadcast(make)
    found = []
    for path in filter(None, (intact(cache, name) for name in names)):
        with np.load(path) as arrays:
            found.append(Said(**arrays))
    return Said.joined(found)


# --- teachers ---


def teacher_of(folder: Path, task: TaughtKind, device: torch.device) -> Teacher:
    """The teacher in a folder: a model of ours, or a classifier of transformers."""
    if "korbert_format" in read_object(folder / "config.json"):
        return _Ours(folder, task, Model.load(folder, device.type))
    if not isinstance(task, TextKind):
        raise ModelError(
            "{folder}: is a model of transformers, which can teach labels of texts and numbers alone: name one of ours",
            folder=folder,
        )
    return _OfTransformers(folder, task, device)


class _Ours:
    def __init__(self, folder: Path, task: TaughtKind, model: Model) -> None:
        self.folder = folder
        self.kind: Any = model.kind
        self._model = model
        _check_same_task(folder, self.kind, task)

    def said(self, rows: Sequence[TaskRow]) -> Said:
        model = self._model
        return Said.joined([self.kind.said(model.network, part, **model.scoring) for part in model.prepare_rows(rows)])


def _check_same_task(folder: Path, own: Kind | None, task: TaughtKind) -> None:
    """ModelError if the kinds, their labels, or other facts of the rows that they read differ."""
    if own is None or type(own) is not type(task):
        raise ModelError(
            "{folder}: is of kind {own}, and cannot teach one of kind {kind}: name a model of the same task",
            folder=folder, own=own.name if own else "fill", kind=task.name,
        )  # fmt: skip
    for field in task.label_fields:
        _check_labels(folder, getattr(own, field), getattr(task, field))
    for field in (*task.compared_fields, "reads_pairs"):
        values = [getattr(kind, field) for kind in (own, task)]
        if values[0] != values[1]:
            raise ModelError(
                "{folder}: {field} is {own} of this model, and {here} of the files: name a model of the same task",
                folder=folder, field=field, own=values[0], here=values[1],
            )  # fmt: skip


def _check_labels(folder: Path, own: Sequence[str], here: Sequence[str]) -> None:
    """ModelError unless a teacher has the labels of the files."""
    if set(own) != set(here):
        raise ModelError(
            "{folder}: has the labels {own}, and the files {here}: name a model of the same labels",
            folder=folder, own=", ".join(own[:20]), here=", ".join(here[:20]),
        )  # fmt: skip


class _OfTransformers:
    """A classifier of transformers, whose labels have the names of the task's, or of the files: LABEL_0 is 0."""

    def __init__(self, folder: Path, task: TextKind, device: torch.device) -> None:
        self.folder = folder
        self.kind = task
        self._device = device
        with needed_for(f"{folder}: a teacher of transformers"):
            from transformers import AutoModelForSequenceClassification, AutoTokenizer
        kept: Mapping[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        try:
            with quietly():
                self._tokenizer = AutoTokenizer.from_pretrained(folder, **kept)
                model = AutoModelForSequenceClassification.from_pretrained(folder, use_safetensors=True, **kept)
        except Exception as error:  # their classes raise all kinds of errors
            raise ModelError(
                "{folder}: is no classifier of transformers that can be loaded ({why}): save it again",
                folder=folder, why=reason_of(error),
            ) from None  # fmt: skip
        self._model: Any = model.to(device).eval()
        self._columns = self._columns_of(model.config.id2label)

    def _columns_of(self, names: Mapping[int, str]) -> list[int]:
        """Which output is that of each label of the task. names: of the outputs."""
        if not isinstance(self.kind, Classification):
            return [0]
        plain = [name.removeprefix("LABEL_") for _, name in sorted(names.items())]
        own = [self.kind.label_names.get(name, name) for name in plain]
        _check_labels(self.folder, own, self.kind.labels)
        return [own.index(label) for label in self.kind.labels]

    @torch.inference_mode()
    def said(self, rows: Sequence[TaskRow]) -> Said:
        texts = [self.kind.texts(row) for row in rows]
        order = sorted(range(len(texts)), key=lambda number: sum(map(len, texts[number])))
        scores = np.zeros((len(texts), len(self._columns)))  # logits
        for start in range(0, len(order), _BATCH_TEXTS):
            numbers = order[start : start + _BATCH_TEXTS]
            sides = [list(side) for side in zip(*(texts[number] for number in numbers), strict=True)]
            read = self._tokenizer(*sides, truncation=True, padding=True, return_tensors="pt").to(self._device)
            scores[numbers] = self._model(**read).logits.float()[:, self._columns].cpu().numpy()
        shares = self.kind.shares_of(self.kind.predictions_of(scores))
        return Said(shares, np.zeros(len(rows), np.int32), np.ones(len(rows), np.int32))


# --- texts without labels ---


def read_unlabelled(files: Iterable[Any], roles: Sequence[Role], columns: Mapping[str, Sequence[str]]) -> TaskRows:
    """The texts of files of any format, plain lines too. roles: of the task. columns: as in a recipe."""
    own = [replace(role, required=role.name != "pair") for role in roles if role.name in _TEXTS]
    result = TaskRows()
    for file in files:
        for batch in records(file, str(file), "auto", own):
            for record in batch:
                row = record.result(own, columns)
                place = Place(str(file), "record", record.line)
                if "error" in row:
                    result.drop(place, Fault("bad_row", row["error"]))
                elif any(is_empty(row[role.name]) for role in own if role.required):
                    result.drop(place, Fault("no_text", Message("is empty")))
                else:
                    result.rows.append({role.name: row.get(role.name) for role in own})
                    result.places.append(place)
    if not result.rows:
        raise CorpusError("no text can be used: {said}", said=join_messages(result.summary()))
    return result


def new_texts(rows: TaskRows, task: Kind, known: Iterable[TaskRow]) -> TaskRows:
    """Each text once, without those of known rows."""
    seen = {words_of(task, row) for row in known}

    def numbers() -> Iterator[int]:
        for number, row in enumerate(rows):
            words = words_of(task, row)
            if words not in seen:
                seen.add(words)
                yield number

    return subset(rows, list(numbers()), with_drops=True)
