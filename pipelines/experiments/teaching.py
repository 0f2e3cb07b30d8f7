"""Knowledge distillation: soft targets from teachers, for labelled rows and for texts without labels.

The outputs of each teacher are computed once, in parts of 4,096 rows, which an interrupted run keeps.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from korbert.errors import ArtifactError, CorpusError, ModelError
from korbert.huggingface.importing import read_folder
from korbert.messages import Message, join_messages, reason
from korbert.model import Model
from korbert.modeling import TransformersEncoder
from korbert.pipelines.inference.input_records import MAX_CHARS, records
from korbert.pipelines.inference.teachers import file_hashes
from korbert.records import Fault, is_empty
from korbert.system import broadcast, content_digest, intact, needed_for, read_object, track
from korbert.system.durable import write_bytes_atomically
from korbert.system.transformers_package import quietly, reason_of
from korbert.tasks.doubts import words_of
from korbert.tasks.files import Place, Role, TaskRow, TaskRows, cells
from korbert.tasks.kinds.classification import Classification
from korbert.tasks.kinds.kind import Kind, Prepared, TaughtKind, TeacherOutputs
from korbert.tasks.kinds.texts import TextKind
from korbert.tasks.kinds.token_classification import TokenClassification
from korbert.tasks.passages import Passage
from korbert.tasks.splits import subset
from korbert.tokenization import AnyTokenizer, TransformersTokenizer
from korbert.tokenization.transformers_tokenizer import open_tokenizer

_PART_ROWS = 4_096
_BATCH_TEXTS = 32  # of a teacher of transformers
_TEXTS = ("text", "pair", "context", "question")  # roles that hold them


class Teacher(Protocol):
    """A trained model of the student's task."""

    folder: Path
    kind: Any

    def outputs(self, rows: Sequence[TaskRow], passages: Mapping[str, Passage]) -> TeacherOutputs:
        """Returns the outputs for rows, with the labels of its own kind. passages: text -> the student's pieces."""


def mean_soft_targets(
    task: TaughtKind, rows: Sequence[TaskRow], prepared: Prepared, folders: Sequence[Path],
    tokenizer: AnyTokenizer, passages: Mapping[str, Passage], cache: Path, device: torch.device,
) -> NDArray[np.float32]:  # fmt: skip
    """Returns the mean soft targets of the teachers in these folders, shaped as in TaughtKind.soft_targets.

    rows: as the teachers read them. prepared: the same rows as the student's examples. tokenizer: the student's.
    passages: the texts of rows by that tokenizer. cache: the folder of the parts. Raises ModelError as teacher_of does.
    """
    total = np.zeros((), np.float32)
    for folder in folders:
        teacher = teacher_of(folder, task, tokenizer, device)
        total = total + task.soft_targets(_computed(teacher, rows, passages, cache), teacher.kind, prepared)
    return np.asarray(total / np.float32(len(folders)))


def _computed(
    teacher: Teacher, rows: Sequence[TaskRow], passages: Mapping[str, Passage], cache: Path
) -> TeacherOutputs:
    made_from = [repr(teacher.kind.task()), file_hashes(teacher.folder)]
    parts = [rows[start : start + _PART_ROWS] for start in range(0, len(rows), _PART_ROWS)]
    names = []
    for part in parts:
        texts = json.dumps([made_from, [teacher.kind.texts(row) for row in part]], ensure_ascii=True)
        names.append(f"taught-{hashlib.sha256(texts.encode()).hexdigest()[:32]}")

    # All processes run the teacher, whose batches they share, and read its parts; rank 0 alone finds which are missing,
    # and writes them.
    missing = broadcast(lambda: [number for number, name in enumerate(names) if intact(cache, name) is None])
    with track("teacher", len(rows), "rows", len(rows) - sum(len(parts[number]) for number in missing)) as advance:
        for number in missing:
            buffer = BytesIO()
            np.savez(buffer, **teacher.outputs(parts[number], passages)._asdict())
            data = buffer.getvalue()
            part_path = cache / f"{names[number]}-{content_digest(data)}.npz"
            broadcast(partial(write_bytes_atomically, part_path, data))
            advance(len(parts[number]))
    outputs = []
    for name in names:
        if (path := intact(cache, name)) is None:
            raise ArtifactError("{folder}: what a teacher said is missing: run this again", folder=cache)
        with np.load(path) as arrays:
            outputs.append(TeacherOutputs(**arrays))
    return TeacherOutputs.joined(outputs)


# --- teachers ---


def teacher_of(folder: Path, task: TaughtKind, tokenizer: AnyTokenizer, device: torch.device) -> Teacher:
    """Loads the teacher in a folder: a model of korbert or of transformers. tokenizer: of the student.

    ModelError if it has another task or other labels, or cannot be loaded.
    """
    config = folder / "config.json"
    try:
        is_ours = "korbert_format" in read_object(config)
    except ValueError as error:
        raise ModelError(
            "{path}: cannot be read ({error}): restore the file as it was saved", path=config, error=reason(error)
        ) from None
    if not is_ours and isinstance(task, TextKind):
        return _ClassifierOfTransformers(folder, task, device)
    model = Model.load(folder, device.type) if is_ours else _tagger_or_reader(folder, task, device)
    _check_same_task(folder, model.kind, task)
    has_pieces = model.tokenizer.digest == tokenizer.digest
    if task.teacher_fields and not has_pieces:
        raise ModelError(
            "{folder}: has another tokenizer than the model that learns: name a teacher with the same one",
            folder=folder,
        )
    # A model that masks personal data reads other texts than one that does not.
    has_texts = model.task.masks_personal == task.masks_personal
    return _Ours(folder, model, has_pieces and has_texts)


def _of_transformers(folder: Path, class_name: str) -> Any:
    """Loads a model of transformers with its head. class_name: AutoModelFor... ModelError if it cannot be loaded."""
    with needed_for(f"{folder}: a teacher of transformers"):
        import transformers
    try:
        with quietly():
            model, report = getattr(transformers, class_name).from_pretrained(
                folder, dtype=torch.float32, use_safetensors=True, local_files_only=True, trust_remote_code=False,
                output_loading_info=True,
            )  # fmt: skip
    except Exception as error:  # their classes raise all kinds of errors
        raise ModelError(
            "{folder}: is no {name} of transformers that can be loaded ({why}): save it again",
            folder=folder, name=class_name.removeprefix("AutoModel"), why=reason_of(error),
        ) from None  # fmt: skip
    if missing := sorted(map(str, report["missing_keys"])):  # which would be drawn at random
        raise ModelError(
            "{folder}: lacks the weights {names} of {name}: name a model that was fine-tuned on the task",
            folder=folder, names=", ".join(missing[:3]), name=class_name.removeprefix("AutoModel"),
        )  # fmt: skip
    return model.eval()


def _tagger_or_reader(folder: Path, task: TaughtKind, device: torch.device) -> Model:
    """Loads a model of transformers that labels pieces or finds answers, as a model of korbert.

    Its label names are those of pieces, such as B-PS and I-PS. ModelError if its head is not a single linear layer.
    """
    config = read_folder(folder)
    tags = isinstance(task, TokenClassification)
    source_model = _of_transformers(folder, f"AutoModelFor{'TokenClassification' if tags else 'QuestionAnswering'}")
    head = getattr(source_model, "classifier" if tags else "qa_outputs", None)
    if not isinstance(head, nn.Linear) or hasattr(source_model, "head"):
        raise ModelError(
            "{folder}: the head of {name} is more than a linear layer: name a model of another architecture",
            folder=folder, name=type(source_model).__name__,
        )  # fmt: skip
    kind: TaughtKind = task
    if isinstance(kind, TokenClassification):
        names = tuple(name for _, name in sorted(source_model.config.id2label.items()))
        longest = min(kind.max_length, config.max_position_embeddings)
        kind = kind.model_copy(update={"tags": names, "rungs": ("encoder",), "max_length": longest})
    network: Any = kind.model(config)
    network.encoder = TransformersEncoder(config, model=source_model.base_model)
    network.classifier.load_state_dict(head.state_dict())
    return Model(network.to(device).eval(), TransformersTokenizer.of_folder(folder), kind, name=str(folder))


class _Ours:
    """A teacher of korbert. has_pieces: whether its texts are among the student's, by the same tokenizer: they are not
    analysed again.
    """

    def __init__(self, folder: Path, model: Model, has_pieces: bool) -> None:
        self.folder = folder
        self.kind: Any = model.kind
        self._model = model
        self._has_pieces = has_pieces

    def outputs(self, rows: Sequence[TaskRow], passages: Mapping[str, Passage]) -> TeacherOutputs:
        model, kind = self._model, self.kind
        if self._has_pieces:
            parts = iter([kind.prepare_by_text(rows, passages, model.tokenizer)])
        else:
            parts = model.prepare_rows(rows)
        return TeacherOutputs.joined([kind.teacher_outputs(model.network, part, **model.scoring) for part in parts])


def _check_same_task(folder: Path, teacher_kind: Kind | None, task: TaughtKind) -> None:
    """Raises ModelError if teacher and student differ in kind, labels, or other facts of the rows that they read."""
    if teacher_kind is None or type(teacher_kind) is not type(task):
        raise ModelError(
            "{folder}: is of kind {own}, and cannot teach one of kind {kind}: name a model of the same task",
            folder=folder, own=teacher_kind.name if teacher_kind else "fill", kind=task.name,
        )  # fmt: skip
    for field in task.label_fields:
        _check_labels(folder, getattr(teacher_kind, field), getattr(task, field))
    for field in (*task.compared_fields, *task.teacher_fields, "reads_pairs"):
        _check_equal(folder, field, getattr(teacher_kind, field), getattr(task, field))


def _check_equal(folder: Path, field: str, teacher_value: object, value: object) -> None:
    if teacher_value != value:
        raise ModelError(
            "{folder}: {field} is {own} of this model, {here} of the one that learns: name a model of the same task",
            folder=folder, field=field, own=teacher_value, here=value,
        )  # fmt: skip


def _check_labels(folder: Path, teacher_labels: Sequence[str], labels: Sequence[str]) -> None:
    """Raises ModelError unless the teacher has the labels of the files."""
    if set(teacher_labels) != set(labels):
        raise ModelError(
            "{folder}: has the labels {own}, and the files {here}: name a model of the same labels",
            folder=folder, own=", ".join(teacher_labels[:20]), here=", ".join(labels[:20]),
        )  # fmt: skip


class _ClassifierOfTransformers:
    """A classifier of transformers. Its labels have the names of the task's labels or of the files'; LABEL_0 is 0."""

    def __init__(self, folder: Path, task: TextKind, device: torch.device) -> None:
        self.folder = folder
        self.kind = task
        self._device = device
        self._model = _of_transformers(folder, "AutoModelForSequenceClassification").to(device)
        self._tokenizer = open_tokenizer(folder)
        config = self._model.config
        if isinstance(task, Classification):
            _check_equal(folder, "several", config.problem_type == "multi_label_classification", task.several)
        else:
            _check_equal(folder, "num_labels", config.num_labels, task.num_outputs)
        self._columns = self._columns_of(config.id2label)
        # Positions of some models begin after the padding's.
        positions = getattr(config, "max_position_embeddings", None) or self._tokenizer.model_max_length
        self._longest = min(self._tokenizer.model_max_length, positions - 2)

    def _columns_of(self, names: Mapping[int, str]) -> list[int]:
        """Returns the number of the output of each label of the task. names: number of an output -> its label."""
        if not isinstance(self.kind, Classification):
            return [0]
        plain = [name.removeprefix("LABEL_") for _, name in sorted(names.items())]
        labels = [self.kind.label_names.get(name, name) for name in plain]
        _check_labels(self.folder, labels, self.kind.labels)
        return [labels.index(label) for label in self.kind.labels]

    @torch.inference_mode()
    def outputs(self, rows: Sequence[TaskRow], passages: Mapping[str, Passage]) -> TeacherOutputs:
        texts = [self.kind.texts(row) for row in rows]
        order = sorted(range(len(texts)), key=lambda number: sum(map(len, texts[number])))
        scores = np.zeros((len(texts), len(self._columns)))  # logits
        for start in range(0, len(order), _BATCH_TEXTS):
            numbers = order[start : start + _BATCH_TEXTS]
            sides = [list(side) for side in zip(*(texts[number] for number in numbers), strict=True)]
            try:
                encoded = self._tokenizer(
                    *sides, truncation=True, max_length=self._longest, padding=True, return_tensors="pt"
                )
                logits = self._model(**encoded.to(self._device)).logits
            except Exception as error:  # a tokenizer that does not fit the model
                raise ModelError(
                    "{folder}: its tokenizer and its model do not fit ({why}): save both again",
                    folder=self.folder, why=reason_of(error),
                ) from None  # fmt: skip
            scores[numbers] = logits.float()[:, self._columns].cpu().numpy()
        shares = self.kind.shares_of(self.kind.predictions_of(scores))
        return TeacherOutputs(shares, np.zeros(len(rows), np.int32), np.ones(len(rows), np.int32))


# --- texts without labels ---


def read_unlabelled(files: Iterable[Any], roles: Sequence[Role], columns: Mapping[str, Sequence[str]]) -> TaskRows:
    """Reads the texts of files of any format, plain lines too. roles: of the task. columns: as in a recipe; if a file
    lacks them, columns with usual names are taken.
    """
    has_tokens = any(role.name == "tokens" for role in roles)
    text_roles = [
        replace(role, required=role.name != "pair", names=(*columns.get(role.name, ()), *role.names))
        for role in roles
        if role.name in _TEXTS
    ]
    result = TaskRows()
    for file in files:
        cut = 0
        for batch in records(file, str(file), "auto", text_roles):
            for record in batch:
                row = record.result(text_roles)
                place = Place(str(file), "record", record.line)
                if "error" in row:
                    result.drop(place, Fault("bad_row", row["error"]))
                elif any(is_empty(row[role.name]) for role in text_roles if role.required):
                    result.drop(place, Fault("no_text", Message("is empty")))
                else:
                    values: TaskRow = {role.name: row.get(role.name) for role in text_roles}
                    tokens = record.fields.get("tokens")
                    if has_tokens and isinstance(tokens, list):  # tokens are joined as the task does it
                        try:
                            values = {"tokens": cells.words(tokens)}
                        except ValueError as error:
                            fault = Message("{column!r} {fault}", column="tokens", fault=reason(error))
                            result.drop(place, Fault("bad_row", fault))
                            continue
                    else:
                        cut += row.get("cut", False)
                    result.rows.append(values)
                    result.places.append(place)
        if cut:
            result.notes.append(
                Message(
                    "{file}: {count:,} texts are longer than {longest:,} characters: only their beginnings are learned",
                    file=str(file), count=cut, longest=MAX_CHARS,
                )
            )  # fmt: skip
    if not result.rows:
        raise CorpusError("no text can be used: {said}", said=join_messages(result.summary()))
    return result


def new_texts(rows: TaskRows, task: Kind, known: Iterable[TaskRow]) -> TaskRows:
    """Returns the first row of each text, without the texts of known rows."""
    seen = {words_of(task, row) for row in known}
    firsts: dict[tuple[str, ...], int] = {}  # the texts of a row -> the number of the first one that has them
    for number, row in enumerate(rows):
        firsts.setdefault(words_of(task, row), number)
    return subset(rows, [number for words, number in firsts.items() if words not in seen], with_drops=True)
