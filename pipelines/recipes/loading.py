"""Recipes: all settings that can change the bytes of an artifact, from one TOML file and `--set`."""

import difflib
import math
import re
import tomllib
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from korbert.errors import SettingsError
from korbert.names import on_disk
from korbert.tasks.kinds import section_class
from pipelines.stages import Finder, Stage
from pipelines.stages.table import STAGES, TASK, is_task, task_stage

SHIPPED = Path(__file__).parent


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

    def settings(self, stage: str) -> dict[str, Any]:
        """The resolved settings of one stage, as written to its record."""
        section: BaseModel = self.section(stage)
        return section.model_dump(mode="json")

    def patterns(self, stage: str) -> Mapping[str, str]:
        """Role -> pattern of the source files that the stage reads."""
        section = self.section(stage)
        return {} if section is None else self.stages[stage].patterns(section)

    def folders(self, stage: str) -> Mapping[str, tuple[str, Finder]]:
        """Role -> folder of a model or tokenizer that the stage starts from, and the function that locates it there."""
        section = self.section(stage)
        return {} if section is None else self.stages[stage].folders(section)


SHARED = ("seed", "heldout_share", "precision", "threads")
"""Keys at the top of a recipe that are copied into every section that has them."""


def find(given: str) -> Path:
    """The file of a recipe, given as a path, a path without `.toml`, or the name of a shipped recipe.

    Raises SettingsError if there is no such recipe, if the name is ambiguous, or if it cannot name an artifact folder.
    """
    path, own = on_disk(Path(given)), on_disk(Path(f"{given}.toml"))
    shipped = SHIPPED / f"{given}.toml"
    if path.suffix != ".toml" and not path.is_file():
        names = sorted(path.stem for path in SHIPPED.glob("*.toml"))
        is_own, is_shipped = own.is_file(), given in names
        if is_own and is_shipped:
            raise SettingsError(
                f"{given}: is a shipped recipe, and {own} exists, too: name {own} to use yours, or rename it"
            )
        if not is_own and not is_shipped:
            near = _near(given, [*names, *(path.stem for path in Path().glob("*.toml"))])
            raise SettingsError(f"{given}: no such recipe: give a .toml file, or one of {', '.join(names)}{near}")
        path = own if is_own else shipped
    check_name(path)
    return path


def check_name(path: Path) -> None:
    """Raises SettingsError if the name of the recipe cannot name an artifact folder."""
    if path.stem.startswith(".") or not path.stem.isprintable():
        raise SettingsError(
            f"{str(path)!r}: the artifact folder is named after the recipe, and {path.stem!r} cannot name a folder: "
            "choose another name"
        )


def load(given: str, changes: Sequence[str] = ()) -> Recipe:
    """Reads a recipe and applies `--set a.b=value` changes. Raises SettingsError naming the file and the key."""
    path = find(given)
    tables, bases = _tables(path)
    try:
        return of_tables(tables, path, given, changes)
    except SettingsError as error:
        if bases:
            raise SettingsError(f"{error} ({path} extends {', '.join(map(str, bases))})") from error
        raise


def _tables(path: Path, extended_by: tuple[Path, ...] = ()) -> tuple[dict[str, Any], tuple[Path, ...]]:
    """The tables of a recipe file, and the files that it extends, nearest first.

    Its own tables are laid over those of the recipe that it `extends`, less the keys that `without` lists. extended_by:
    the files that lead here.
    """
    own = _parsed(path)
    base, without = own.pop("extends", ""), own.pop("without", [])
    listed = isinstance(without, list) and all(isinstance(key, str) for key in without)
    if not isinstance(base, str) or not listed or (without and not base):
        raise SettingsError(
            f'{path}: extends and without: write them as extends = "small" and without = ["nsmc", "vocab.size"]'
        )
    if not base:
        return own, ()

    base_path = on_disk(path.parent / base) if base.endswith(".toml") else SHIPPED / f"{base}.toml"
    if not base_path.is_file():
        names = sorted(path.stem for path in SHIPPED.glob("*.toml"))
        raise SettingsError(
            f"{path}: extends: there is no recipe {base}: "
            f"give a .toml file, relative to this one, or one of {', '.join(names)}{_near(base, names)}"
        )
    if base_path.resolve() in (file.resolve() for file in (path, *extended_by)):
        raise SettingsError(f"{path}: extends: {base_path} extends this recipe: remove one of the two")
    tables, bases = _tables(base_path, (*extended_by, path))
    for key in without:
        if not _removed(tables, key.split(".")):
            raise SettingsError(f"{path}: without: {base_path} has no {key!r}: remove it from the list")
    return _merged(tables, own), (base_path, *bases)


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as error:
        raise SettingsError(f"{path}: no such file: `korbert new NAME` writes a recipe to start from") from error
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path}: is not TOML: {error}: correct it there") from error
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read ({error.strerror}): give a file of TOML") from error


def _removed(tables: Any, names: Sequence[str]) -> bool:
    """Removes the value at tables[names[0]][names[1]]..; False if there is none."""
    *outer, last = names
    for name in outer:
        tables = tables.get(name) if isinstance(tables, dict) else None
    return isinstance(tables, dict) and tables.pop(last, None) is not None


def _merged(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Tables are merged key by key; other values, lists among them, are those of the extending recipe."""
    return {
        **base,
        **{
            key: _merged(base[key], value) if isinstance(value, dict) and isinstance(base.get(key), dict) else value
            for key, value in own.items()
        },
    }


def of_tables(raw: dict[str, Any], path: Path, given: str, changes: Sequence[str] = ()) -> Recipe:
    """Builds a recipe from parsed TOML. path: of the file; names the recipe, also in errors."""
    for change in changes:
        _apply(raw, change)
    if "name" in raw:
        raise SettingsError(f"{path}: name: no such key: a recipe is named after its file")
    _refuse_boundless(raw, path, "")
    stages = _stages(raw, path)
    _hand_down(raw, stages, path)
    sections = _sections(raw, stages, path)
    _check(sections, stages, path)
    return Recipe(path.stem, given, sections, stages)


def _stages(raw: Mapping[str, Any], path: Path) -> dict[str, Stage]:
    """The stages of the table, then those of [tasks.NAME]; only the latter if the recipe has no other sections."""
    sections, tasks = raw.get("tasks", {}), {}
    if not isinstance(sections, dict):
        raise SettingsError(f"{path}: tasks: holds {sections!r}: write each task as a table, [tasks.NAME]")
    for name, section in sections.items():
        place = f"{TASK}{name}"
        if not is_task(place):
            raise SettingsError(f"{path}: tasks: {name!r} is not a task name: use only a to z, 0 to 9, _ and -")
        if not isinstance(section, dict):
            raise SettingsError(f"{path}: {place}: holds {section!r}: write it as a table, [{place}]")
        try:
            tasks[place] = task_stage(place, section_class(section))
        except ValueError as error:
            raise SettingsError(f"{path}: {place}.{error}") from error
    return tasks if tasks and not raw.keys() & STAGES.keys() else {**STAGES, **tasks}


def _sections(raw: Mapping[str, Any], stages: Mapping[str, Stage], path: Path) -> dict[str, BaseModel | None]:
    """The settings of each stage; None if the recipe leaves it out."""
    # One model of all sections in the table; those that may be absent default to None.
    fields: dict[str, Any] = {"tasks": (dict[str, Any], {})}
    for stage in STAGES.values():
        optional = stage.optional or stage.name not in stages
        fields[stage.name] = (stage.settings_class | None, None) if optional else (stage.settings_class, ...)
    model: type[BaseModel] = create_model("Sections", __config__=ConfigDict(frozen=True, extra="forbid"), **fields)
    try:
        loaded = model.model_validate(raw)
    except ValidationError as error:
        raise SettingsError(_explain(path, error, model)) from error
    sections = {name: getattr(loaded, name) for name in STAGES if name in stages}
    for name, section in raw.get("tasks", {}).items():  # each with a class of its own
        place = f"{TASK}{name}"
        own = stages[place].settings_class
        try:
            sections[place] = own.model_validate(section)
        except ValidationError as error:
            raise SettingsError(_explain(path, error, own, f"{place}.")) from error
    return sections


def _apply(raw: dict[str, Any], change: str) -> None:
    key, equals, text = change.partition("=")
    if not equals or not re.fullmatch(r"[\w-]+(\.[\w-]+)*", key):
        raise SettingsError(f"--set {change}: write it as section.key=value, such as vocab.size=32000")
    *outer, last = key.split(".")
    holder: Any = raw
    for place, name in enumerate(outer):
        if isinstance(holder, list) and name.isdecimal() and int(name) < len(holder):
            holder = holder[int(name)]
        elif isinstance(holder, dict):
            holder = holder.setdefault(name, {})
        else:
            before = ".".join(outer[:place])
            raise SettingsError(f"--set {change}: {before} has no {name!r} in the recipe: change it in the file")
    if not isinstance(holder, dict):
        raise SettingsError(f"--set {change}: {'.'.join(outer)} is not a table in the recipe: change it in the file")
    try:
        holder[last] = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        holder[last] = text
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"--set {key}: {_shown(text)}: too many digits or brackets: give a smaller one") from error


def _refuse_boundless(value: Any, path: Path, place: str) -> None:
    """Raises SettingsError for inf, nan and integers of more than 64 bits, which no setting can have."""
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        for key, one in inner:
            _refuse_boundless(one, path, f"{place}.{key}" if place else str(key))
    elif (isinstance(value, float) and not math.isfinite(value)) or (isinstance(value, int) and abs(value) >= 1 << 63):
        raise SettingsError(f"{path}: {place}: {_shown(str(value))} is not a number that a setting can have: change it")


def _shown(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _hand_down(raw: dict[str, Any], stages: Mapping[str, Stage], path: Path) -> None:
    """Copies the shared keys into the sections that have them, and derives settings that depend on other sections."""
    shared = {key: raw.pop(key) for key in SHARED if key in raw}
    if "seed" in shared:
        shared["seeds"] = [shared["seed"]]  # for stages that may run several
    for stage in stages.values():
        *outer, name = stage.name.split(".")
        holder = raw["tasks"] if outer else raw
        if name not in holder and stage.optional:
            continue
        section = holder.setdefault(name, {})
        if not isinstance(section, dict):
            raise SettingsError(f"{path}: {stage.name}: holds {section!r}: write it as a table, [{stage.name}]")
        for key in shared.keys() & stage.settings_class.model_fields.keys() - section.keys():
            section[key] = shared[key]
        stage.derive(section, raw)


def _check(sections: Mapping[str, BaseModel | None], stages: Mapping[str, Stage], path: Path) -> None:
    """Raises SettingsError if settings of two stages contradict each other, or a stage reads one the recipe lacks."""
    present = {name: section for name, section in sections.items() if section is not None}
    for name, section in present.items():
        for needed in stages[name].reads_under(section):
            if needed not in present:
                raise SettingsError(f"{path}: {needed}: is missing, and {name} reads it: add a section [{needed}]")
        try:
            stages[name].check(section, present)
        except ValueError as error:
            raise SettingsError(f"{path}: {name}.{error}") from error


def _explain(path: Path, error: ValidationError, model: type[BaseModel], section: str = "") -> str:
    """Turns a validation error into a message. section: prefix of the model, with a dot; "" at the top."""
    details = error.errors()
    first = details[0]
    place = (section + ".".join(str(part) for part in first["loc"])).rstrip(".")
    more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    if first["type"] == "extra_forbidden":
        shared = () if section or len(first["loc"]) > 1 else SHARED
        holder: type[BaseModel] | None = model
        for part in first["loc"][:-1]:
            if isinstance(part, str) and holder is not None:
                field = holder.model_fields.get(part)
                holder = None if field is None else model_in(field.annotation)
        known, name = sorted({*shared, *(holder.model_fields if holder else ())}), str(first["loc"][-1])
        top = section or f"{first['loc'][0]}."
        elsewhere = [one for one in _places_of(model, name, section) if one.startswith(top)]
        near = f" (did you mean {elsewhere[0]}?)" if elsewhere and name not in known else _near(name, known)
        return f"{path}: {place}: no such key{near}: known here: {', '.join(known)}{more}"
    if first["type"] == "missing":
        return f"{path}: {place}: is missing: add it{more}"
    message = first["msg"].removeprefix("Value error, ")
    found = "" if isinstance(first["input"], dict) else f", not {_shown(repr(first['input']))}"
    return f"{path}: {place}: {message}{found}{more}"


def _places_of(model: type[BaseModel], name: str, before: str = "") -> Iterator[str]:
    """All places of keys with that name, as `--set` takes them: steps -> pretrain.phases.0.steps."""
    for field, about in model.model_fields.items():
        inner = model_in(about.annotation)
        if field == name and before:
            yield f"{before}{field}"
        elif inner is not None:
            in_list = typing.get_origin(about.annotation) is tuple
            yield from _places_of(inner, name, f"{before}{field}.{'0.' if in_list else ''}")


def model_in(annotation: Any) -> type[BaseModel] | None:
    """The settings class in a field's annotation: alone, in a tuple, or in a union with None. None if there is none."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(model_in, typing.get_args(annotation))), None)


def _near(word: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f" (did you mean {close[0]}?)" if close else ""
