"""Messages about recipes: which key is wrong, what is there, and which one is near."""

import typing
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from korbert.messages import Message
from korbert.names import did_you_mean
from korbert.pipelines.stages.table import TASK
from korbert.tasks.kinds import KINDS


def explain(path: Path, error: ValidationError, model: type[BaseModel], section: str) -> str:
    """Turns a validation error into a message. section: prefix of the model, with a dot."""
    details = error.errors()
    first, more = details[0], f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    loc = first["loc"]
    key = (section + ".".join(map(str, loc))).rstrip(".")
    if first["type"] == "extra_forbidden":
        holder: type[BaseModel] | None = model
        for part in loc[:-1]:
            if isinstance(part, str) and holder is not None:
                field = holder.model_fields.get(part)
                holder = None if field is None else model_in(field.annotation)
        name = str(loc[-1])
        known = sorted(holder.model_fields if holder else ())
        elsewhere = list(_keys_named(model, name, section))
        hint = f" (did you mean {elsewhere[0]}?)" if elsewhere and name not in known else near(name, known)
        if section.startswith(TASK) and len(loc) == 1:  # of one kind of task; others may have the key
            kinds = [kind for kind, entry in KINDS.items() if name in entry.section_class.model_fields]
            hint = f" (it is for kind {', '.join(kinds)})" if kinds else hint
        return f"{path}: {key}: no such key{hint}: known here: {', '.join(known)}{more}"
    if first["type"] == "missing":
        return f"{path}: {key}: is missing: add it{more}"
    message = first["msg"].removeprefix("Value error, ")
    value = "" if isinstance(first["input"], dict) else f", not {short(repr(first['input']))}"
    return f"{path}: {key}: {message}{value}{more}"


def _keys_named(model: type[BaseModel], name: str, before: str) -> Iterator[str]:
    """All keys with that name, as `--set` takes them: steps -> pretrain.phases.0.steps."""
    for field, about in model.model_fields.items():
        inner = model_in(about.annotation)
        if field == name:
            yield f"{before}{field}"
        elif inner is not None:
            in_list = typing.get_origin(about.annotation) is tuple
            yield from _keys_named(inner, name, f"{before}{field}.{'0.' if in_list else ''}")


def model_in(annotation: Any) -> type[BaseModel] | None:
    """The settings class in a field's annotation: alone, in a tuple, or in a union with None. None if there is none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(model_in, typing.get_args(annotation))), None)


def near(word: str, known: Sequence[str]) -> str:
    hint = did_you_mean(word, known, 0.5)
    return Message(" ({hint})", hint=hint) if hint else ""


def short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
