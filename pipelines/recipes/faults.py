"""Messages about recipes: which key is wrong, what is there, and which one is near."""

import typing
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, ValidationError

from korbert.messages import Message, reason
from korbert.names import did_you_mean
from korbert.pipelines.stages.table import TASK
from korbert.tasks.kinds import KINDS


def explain(path: Path, error: ValidationError, model: type[BaseModel], section: str) -> Message:
    """Turns a validation error into a message. section: prefix of the model, with a dot."""
    details = error.errors()
    first = details[0]
    loc = first["loc"]
    fault: str
    key = (section + ".".join(map(str, loc))).rstrip(".")
    if first["type"] == "extra_forbidden":
        fault = _unknown_key(model, section, loc)
    elif first["type"] == "missing":
        fault = Message("is missing: add it")
    else:
        fault = first["msg"]
        if first["type"] == "value_error":  # one of ours, which can be translated
            fault = reason(first["ctx"]["error"])
        if not isinstance(first["input"], dict):
            fault = Message("{fault}, not {value}", fault=fault, value=short(repr(first["input"])))
    message = Message("{path}: {key}: {fault}", path=path, key=key, fault=fault)
    if more := len(details) - 1:
        message = Message("{message} (and {count} more)", message=message, count=more)
    return message


def _unknown_key(model: type[BaseModel], section: str, loc: Sequence[int | str]) -> Message:
    """That there is no such key, with the nearest one and those that there are."""
    holder: type[BaseModel] | None = model
    for part in loc[:-1]:
        if isinstance(part, str) and holder is not None:
            field = holder.model_fields.get(part)
            holder = None if field is None else model_in(field.annotation)
    name = str(loc[-1])
    known = sorted(holder.model_fields) if holder else []
    elsewhere = list(_keys_named(model, name, section))
    hint = near(name, known)
    if elsewhere and name not in known:
        hint = Message(" ({hint})", hint=Message("did you mean {name}?", name=elsewhere[0]))
    if section.startswith(TASK) and len(loc) == 1:  # of one kind of task; others may have the key
        kinds = [kind for kind, entry in KINDS.items() if name in entry.section_class.model_fields]
        if kinds:
            hint = Message(" (it is for kind {kinds})", kinds=", ".join(kinds))
    return Message("no such key{hint}: known here: {known}", hint=hint, known=", ".join(known))


def _keys_named(model: type[BaseModel], name: str, before: str) -> Iterator[str]:
    """All keys with that name, as `--set` takes them: steps -> pretrain.phases.0.steps."""
    for field, about in model.model_fields.items():
        inner = model_in(about.annotation)
        if field == name:
            yield f"{before}{field}"
        elif inner is not None:
            in_list = typing.get_origin(about.annotation) is tuple
            yield from _keys_named(inner, name, f"{before}{field}.{'0.' if in_list else ''}")


def model_in(annotation: object) -> type[BaseModel] | None:
    """The settings class in a field's annotation: alone, in a tuple, or in a union with None. None if there is none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(model_in, typing.get_args(annotation))), None)


def near(word: str, known: Sequence[str]) -> str:
    hint = did_you_mean(word, known, 0.5)
    return Message(" ({hint})", hint=hint) if hint else ""


def short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
