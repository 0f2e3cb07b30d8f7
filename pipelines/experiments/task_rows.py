"""The rows of a task: what its files hold, what of it can be used, and what is held out to validate on."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path

from korbert.errors import SettingsError
from korbert.messages import Message
from korbert.personal_data import MASKS, mask_rows
from korbert.pipelines.artifacts import StageInputs
from korbert.pipelines.experiments.teaching import new_texts, read_unlabelled
from korbert.records import File, open_table
from korbert.tasks.doubts import doubts
from korbert.tasks.files import ROLES, Role, TaskRows, choose_columns, read_rows, refuse_unseen_labels, rename_labels
from korbert.tasks.kinds import KINDS
from korbert.tasks.kinds.kind import Kind
from korbert.tasks.kinds.sections import TaskSection
from korbert.tasks.sets import known_set
from korbert.tasks.sets.loading import load
from korbert.tasks.splits import Splits, drop_unusable, limit, split_by_article, split_by_texts, split_by_time

_FEW = 50  # rows; the interval of an accuracy over fewer is 10 points to each side, or more
_SPLIT_NOTE = Message(
    "trained and scored on two parts of one file, cut by article: not comparable with published scores, which come "
    "from other files"
)


def read_parts(settings: TaskSection, inputs: StageInputs, data: Path) -> tuple[Kind, Splits]:
    """Returns the task inferred from the files, and their usable rows. data: the data folder.

    Raises CorpusError for labels that the training rows do not have, and if no row is left.
    """
    kind = KINDS[settings.kind].kind_class  # type: ignore[attr-defined]
    tables, notes, settings = _tables(kind, settings, inputs, data)
    names = {role.name for role in roles_of(kind, part="train")} - {"id"}
    columns = {role: role_columns for role, role_columns in tables["train"].columns.items() if role in names}
    task = kind.from_training_rows(tables["train"], settings).model_copy(update={"columns": columns})
    if not settings.metrics:
        task = task.validated_on(tables.get("valid", tables["train"]))
    for metric in task.metrics:
        task.score(metric)  # raises for metrics that the kind does not have
    if hasattr(task, "labels"):
        for name in tables.keys() - {"train", "unlabelled"}:
            refuse_unseen_labels(tables[name], task.labels)
    # A kind may learn from rows that it cannot score, such as texts with their vectors.
    checks = {"train": task.check_training_row, "warm_up": task.check_training_row, "unlabelled": task.texts}
    parts = {name: drop_unusable(rows, checks.get(name, task.target)) for name, rows in tables.items()}

    def relative(text: str) -> str:
        return text.replace(f"{data}/", "")

    doubted = tuple(line.map_texts(relative) for line in doubts(task, parts))
    train = parts["train"]
    valid = parts.get("valid")
    if settings.train_rows is not None and len(train) > settings.train_rows:
        notes.append(
            Message(
                "{used:,} of the {rows:,} training rows, by a hash of their texts, are used",
                used=settings.train_rows, rows=len(train),
            )
        )  # fmt: skip
        train = limit(train, settings.train_rows, task.group_texts)
    if valid is None:
        train, valid, method = _held_out(train, settings, task)
        held_texts = {text for row in valid for text in task.group_texts(row)}
        for row in train:
            if row.get("negatives"):  # no text to score is trained on, nor as a negative
                row["negatives"] = [text for text in row["negatives"] if text not in held_texts]
        valid = drop_unusable(valid, task.target)
        notes.append(
            Message("{count:,} of the training rows, {how}, are held out to validate on", count=len(valid), how=method)
        )
    splits_train = "valid" not in parts
    if not task.has_rungs:  # with rungs, the rows to score are known only after training
        notes += notes_on_scored_rows("test" if "test" in parts else "valid", len(parts.get("test") or valid))
    summary = tuple(line.map_texts(relative) for rows in parts.values() for line in rows.summary())
    test_and_warm_up = parts.get("test"), parts.get("warm_up")
    unlabelled = parts.get("unlabelled")
    if unlabelled is not None:
        count = len(unlabelled)
        unlabelled = new_texts(unlabelled, task, chain(train, valid, parts.get("test") or ()))
        notes.append(
            Message(
                "{files}: {count:,} texts without a label; {others:,} more stand twice, or in the labelled files",
                files=", ".join(map(str, inputs.files["unlabelled"])), count=len(unlabelled),
                others=count - len(unlabelled),
            )
        )  # fmt: skip
    return task, Splits(train, valid, *test_and_warm_up, unlabelled, summary, tuple(notes), doubted, splits_train)


def _held_out(train: TaskRows, settings: TaskSection, task: Kind) -> tuple[TaskRows, TaskRows, Message]:
    """Splits the rows into those to train on and those to validate on; says how: by time, by group, or by texts."""
    share = settings.validation_share
    if "time" in settings.columns:
        return *split_by_time(train, share), Message("the latest")
    if "group" in settings.columns:
        return *split_by_texts(train, share, lambda row: [row["group"]]), Message("whole groups")
    return *split_by_texts(train, share, task.group_texts), Message("by a hash of their texts")


def _tables(
    kind: type[Kind], settings: TaskSection, inputs: StageInputs, data: Path
) -> tuple[dict[str, TaskRows], list[Message], TaskSection]:
    """Returns the rows of each part as read, notes on them, and the settings with those of a known data set."""
    tables: dict[str, TaskRows] = {}
    notes: list[Message] = []
    if settings.set:
        data_set = known_set(settings.set)
        if kind.name not in (data_set.kind, "embedding"):
            raise SettingsError(
                "kind {kind}: {set} is a set of kind {kind2}: leave kind out",
                kind=kind.name,
                set=settings.set,
                kind2=data_set.kind,
            )
        loaded = load(settings.set, data)
        tables = {"train": loaded.train, "test": loaded.test}
        tables |= {} if loaded.valid is None else {"valid": loaded.valid}
        notes += loaded.notes
        changed: dict[str, object] = {}
        if not settings.metrics and kind.name == data_set.kind:
            changed["metrics"] = data_set.metrics
        if data_set.uncounted:
            changed["uncounted"] = data_set.uncounted
        if hasattr(settings, "label_names"):  # in the model, too, for other files of the set
            changed["label_names"] = settings.label_names or loaded.labels
        settings = settings.model_copy(update=changed)
    for name in ("warm_up",) if settings.set else ("train", "valid", "test", "warm_up"):
        if name not in inputs.files:
            continue
        roles = roles_of(kind, settings, part=name)
        role_names = {role.name for role in roles} | (settings.columns.keys() if name == "train" else set())
        columns = {role: column for role, column in settings.columns.items() if role in role_names}
        tables[name] = read_rows(inputs.files[name], roles, form=settings.form, columns=columns)
    if "unlabelled" in inputs.files:
        tables["unlabelled"] = read_unlabelled(inputs.files["unlabelled"], kind.roles, settings.columns)
    if getattr(settings, "mask_personal", False):
        masked = mask_rows(chain.from_iterable(tables.values()))
        notes.append(
            Message("personal data is masked, such as {tag}: {count:,}", tag=MASKS["email"], count=masked.total())
        )
    if getattr(settings, "split_by_article", False):
        tables["train"], tables["test"] = split_by_article(tables["train"])
        notes.append(_SPLIT_NOTE)
    return tables, notes, settings


def check_columns(settings: TaskSection, train: File) -> None:
    """Raises CorpusError if the training file lacks a column that this kind of task needs."""
    roles = roles_of(KINDS[settings.kind].kind_class, settings, part="train")  # type: ignore[attr-defined]
    user_columns = {column for columns in settings.columns.values() for column in columns}
    table = open_table(train, settings.form, user_columns.issubset)
    choose_columns(roles, table.columns, settings.columns, table.place(str(train)), table.first)


def notes_on_scored_rows(scored_on: str, count: int) -> Iterator[Message]:
    """Yields what users should know about the scored rows. scored_on: as in Splits. count: number of these rows."""
    if scored_on == "valid":
        yield Message("there is no test file: the scores are those of the validation rows, which chose the epoch")
    elif scored_on == "folds":
        yield Message(
            "there is no test file: {count:,} rows are scored, each by a model that has not learned it", count=count
        )
    yield from few_rows(count)


def few_rows(count: int) -> Iterator[Message]:
    """Yields a warning that a score is from few rows; nothing if there are enough."""
    if count < _FEW:
        yield Message(
            "only {count} row is scored, worth {points:.0f} points: too few for a reliable score, give more",
            "only {count} rows are scored, each worth {points:.0f} points: too few for a reliable score, give more",
            count=count, points=100 / count,
        )  # fmt: skip


def roles_of(kind: Kind | type[Kind], settings: object = None, *, part: str = "test") -> list[Role]:
    """Returns the roles of the kind in labelled files, with the id.

    settings: says whether a text may have `several` labels, and their `label_names`; None: the kind says it. part: the
    training rows may have more roles, such as `group` and `time`.
    """
    settings = kind if settings is None else settings
    names: Mapping[str, str] = getattr(settings, "label_names", None) or {}
    roles = [*(kind.roles if part in ("train", "warm_up") else kind.roles_to_score or kind.roles), ROLES["id"]]
    for index, role in enumerate(roles):
        if role.name == "label":
            label = replace(ROLES["labels"], name="label") if getattr(settings, "several", False) else role
            roles[index] = rename_labels(label, names)
    if part == "train" and getattr(settings, "split_by_article", False):
        roles.append(ROLES["title"])
    if part == "train" and not isinstance(settings, Kind | type):
        roles += [ROLES[name] for name in ("group", "time") if name in getattr(settings, "columns", {})]
    return roles
