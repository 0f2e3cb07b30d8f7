"""Recipes: all settings that can change the bytes of an artifact, from one TOML file and `--set`."""

import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from korbert.errors import SettingsError
from korbert.messages import Message, reason
from korbert.pipelines.artifacts import Finder, Stage
from korbert.pipelines.recipes.files import apply_change, find, nearest_hint, read_tables, refuse_boundless, shorten
from korbert.pipelines.stages.table import STAGES, TASK, is_task, task_stage
from korbert.system import JsonObject
from korbert.tasks.kinds import KINDS, section_class


@dataclass(frozen=True)
class Recipe:
    """The settings of all stages. name: the file name without .toml. given: the recipe as the user named it.

    sections: stage -> its settings; None if the recipe leaves the stage out. stages: name -> entry, in running order:
    the stages of the table, then those of the sections [tasks.NAME].
    """

    name: str
    given: str
    sections: Mapping[str, BaseModel | None]
    stages: Mapping[str, Stage]

    def section(self, stage: str) -> Any:
        """The settings of one stage; None if the recipe leaves the stage out."""
        return self.sections.get(stage)

    def settings(self, stage: str) -> JsonObject:
        """The resolved settings of one stage, as written to its record."""
        section: BaseModel = self.section(stage)
        return section.model_dump(mode="json")

    def folders(self, stage: str) -> Mapping[str, tuple[str, Finder]]:
        """Role -> folder of a model or tokenizer that the stage starts from, and the function that locates it there."""
        section = self.section(stage)
        return {} if section is None else self.stages[stage].folders(section)


SHARED = ("seed", "heldout_share", "precision", "threads")
"""Keys at the top of a recipe that are copied into every section that has them."""


def load(given: str, changes: Sequence[str] = ()) -> Recipe:
    """Reads a recipe and applies `--set a.b=value` changes. Raises SettingsError naming the file and the key."""
    path = find(given)
    tables, bases = read_tables(path)
    try:
        return of_tables(tables, path, given, changes)
    except SettingsError as error:
        if bases:
            raise SettingsError(
                "{error} ({path} extends {bases})", error=error, path=path, bases=", ".join(map(str, bases))
            ) from error
        raise


def of_tables(raw: JsonObject, path: Path, given: str, changes: Sequence[str] = ()) -> Recipe:
    """Builds a recipe from parsed TOML. path: of its file, which gives the recipe its name, also in errors."""
    for change in changes:
        apply_change(raw, change)
    if "name" in raw:
        raise SettingsError("{path}: name: no such key: a recipe is named after its file", path=path)
    refuse_boundless(raw, path)
    stages = _stages(raw, path)
    sections = _sections(raw, stages, path)

    # Sections may contradict each other, or read a stage that the recipe lacks.
    present = {name: section for name, section in sections.items() if section is not None}
    for name, section in present.items():
        for needed in stages[name].reads_under(section):
            if needed not in present:
                raise SettingsError(
                    "{path}: {needed}: is missing, and {name} reads it: add a section [{needed}]",
                    path=path,
                    needed=needed,
                    name=name,
                )
        try:
            stages[name].check(section, present)
        except ValueError as error:
            raise SettingsError("{path}: {name}.{error}", path=path, name=name, error=reason(error)) from error
    return Recipe(path.stem, given, sections, stages)


def _stages(raw: JsonObject, path: Path) -> dict[str, Stage]:
    """Returns the stages of the table, then those of [tasks.NAME]; only the latter if there are no other sections."""
    sections = raw.get("tasks", {})
    tasks = {}
    if not isinstance(sections, dict):
        raise SettingsError(
            "{path}: tasks: holds {sections!r}: write each task as a table, [tasks.NAME]", path=path, sections=sections
        )
    for name, section in sections.items():
        key = f"{TASK}{name}"
        if not is_task(key):
            raise SettingsError(
                "{path}: tasks: {name!r} is not a task name: use only a to z, 0 to 9, _ and -", path=path, name=name
            )
        if not isinstance(section, dict):
            raise SettingsError(
                "{path}: {key}: holds {section!r}: write it as a table, [{key}]", path=path, key=key, section=section
            )
        try:
            tasks[key] = task_stage(key, section_class(section))
        except ValueError as error:
            raise SettingsError("{path}: {key}.{error}", path=path, key=key, error=reason(error)) from error
    return tasks if tasks and not raw.keys() & STAGES.keys() else {**STAGES, **tasks}


def _sections(raw: JsonObject, stages: Mapping[str, Stage], path: Path) -> dict[str, BaseModel | None]:
    """Returns the settings of each stage; None if the recipe leaves it out.

    Shared keys go to the sections that have them, and settings that depend on other sections are derived.
    """
    known_keys = sorted({*SHARED, *STAGES, "tasks"})
    if unknown := [key for key in raw if key not in known_keys]:
        raise SettingsError(
            "{path}: {unknown}: no such key{near}: known here: {known}",
            path=path,
            unknown=unknown[0],
            near=nearest_hint(unknown[0], known_keys),
            known=", ".join(known_keys),
        )
    shared = {key: raw.pop(key) for key in SHARED if key in raw}
    if "seed" in shared:
        shared["seeds"] = [shared["seed"]]  # for stages that may run several
    sections: dict[str, BaseModel | None] = {}
    for stage in stages.values():
        *outer, name = stage.name.split(".")
        holder = raw["tasks"] if outer else raw
        settings_class = stage.settings_class
        if name not in holder and stage.optional:
            sections[stage.name] = None
            continue
        section = holder.setdefault(name, {})
        if not isinstance(section, dict):
            raise SettingsError(
                "{path}: {stage}: holds {section!r}: write it as a table, [{stage}]",
                path=path,
                stage=stage.name,
                section=section,
            )
        for key in shared.keys() & settings_class.model_fields.keys() - section.keys():
            section[key] = shared[key]
        # Before validation, so that derived settings are checked and recorded like written ones.
        stage.derive(section, sections)
        try:
            sections[stage.name] = settings_class.model_validate(section)
        except ValidationError as error:
            raise SettingsError(explain(path, error, settings_class, f"{stage.name}.")) from error
    return sections


def explain(path: Path, error: ValidationError, model: type[BaseModel], section: str) -> Message:
    """Turns a validation error into a message. section: prefix of the model, with a dot."""
    details = error.errors()
    first = details[0]
    loc = first["loc"]
    fault: str = first["msg"]
    key = (section + ".".join(map(str, loc))).rstrip(".")
    if first["type"] == "extra_forbidden":
        fault = _unknown_key(model, section, loc)
    elif first["type"] == "missing":
        fault = Message("is missing: add it")
    else:
        if first["type"] == "value_error":  # one of ours, which can be translated
            fault = reason(first["ctx"]["error"])
        if not isinstance(first["input"], dict):
            fault = Message("{fault}, not {value}", fault=fault, value=shorten(repr(first["input"])))
    message = Message("{path}: {key}: {fault}", path=path, key=key, fault=fault)
    if more := len(details) - 1:
        message = Message("{message} (and {count} more)", message=message, count=more)
    return message


def _unknown_key(model: type[BaseModel], section: str, loc: Sequence[int | str]) -> Message:
    """Returns the message that there is no such key, with the nearest one and those that exist."""
    holder: type[BaseModel] | None = model
    for part in loc[:-1]:
        if isinstance(part, str) and holder is not None:
            field = holder.model_fields.get(part)
            holder = None if field is None else model_in(field.annotation)
    name = str(loc[-1])
    known_keys = sorted(holder.model_fields) if holder else []
    elsewhere = list(_keys_named(model, name, section))
    hint = nearest_hint(name, known_keys)
    if elsewhere and name not in known_keys:
        hint = Message(" ({hint})", hint=Message("did you mean {name}?", name=elsewhere[0]))
    is_of_task = section.startswith(TASK) and len(loc) == 1  # of one kind of task; others may have the key
    if is_of_task and (kinds := [kind for kind, entry in KINDS.items() if name in entry.section_class.model_fields]):
        hint = Message(" (it is for kind {kinds})", kinds=", ".join(kinds))
    return Message("no such key{hint}: known here: {known}", hint=hint, known=", ".join(known_keys))


def _keys_named(model: type[BaseModel], name: str, before: str) -> Iterator[str]:
    """Yields all keys with that name, as `--set` takes them: steps -> pretrain.phases.0.steps."""
    for field, about in model.model_fields.items():
        inner = model_in(about.annotation)
        if field == name:
            yield f"{before}{field}"
        elif inner is not None:
            in_list = typing.get_origin(about.annotation) is tuple
            yield from _keys_named(inner, name, f"{before}{field}.{'0.' if in_list else ''}")


def model_in(annotation: object) -> type[BaseModel] | None:
    """Returns the settings class in an annotation: alone, in a tuple, or in a union with None. None if it has none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(model_in, typing.get_args(annotation))), None)
