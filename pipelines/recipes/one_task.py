"""The recipe of a single task, without a file: of `korbert finetune` and its neighbours, and of `korbert.finetune`."""

import glob
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from korbert.errors import SettingsError
from korbert.folders import lasting, model_folder
from korbert.messages import Message, argument
from korbert.pipelines.recipes.loading import Recipe, of_tables
from korbert.records import Form
from korbert.system import check_outside
from korbert.tasks.kinds import ALIASES, KINDS

Columns = Mapping[str, Sequence[str]]


def task_recipe(
    output: Path, model: str | Path, files: Mapping[str, Any], columns: Columns, form: Form,
    settings: Mapping[str, Any], changes: Sequence[str] = (), beside: Path | None = None,
) -> tuple[Recipe, str]:  # fmt: skip
    """The recipe, and a line on the kind if it was inferred.

    output: names the task. files: part -> path or address; none for a known data set, named in `settings`. settings:
    of the task's section. changes: as typed for --set, without the section. beside: the data folder, if what lies in it
    is to be named without it.
    """
    check_outside(output, Path(model), model_folder(model))  # raises for a misspelt name, too
    section: dict[str, Any] = {"init": lasting(model).removeprefix(f"{beside}/"), **settings}
    line = ""
    if train := files.get("train"):
        kind, columns, line = _kind(train, section, columns, form)
        section |= {"kind": kind, "form": form} | {part: _pattern(path, beside) for part, path in files.items()}
    if columns:
        section["columns"] = columns
    name = re.sub(r"[^a-z0-9_-]+", "-", output.name.lower()).strip("-") or "task"
    changes = tuple(f"tasks.{name}.{change}" for change in changes)
    recipe = of_tables({"tasks": {name: section}}, Path("finetune"), "korbert finetune", changes)
    if train and not line:  # the kind was named, which the columns may not fit
        from korbert.pipelines.experiments.preparing import check_columns

        check_columns(recipe.section(f"tasks.{name}"), train)
    return recipe, line


def _kind(
    train: Any, section: dict[str, Any], columns: Columns, form: Form
) -> tuple[str, dict[str, Sequence[str]], str]:
    """The kind of task, its columns by role, and a line on the kind if it was inferred.

    section: of the task, which gets `several` if the file has lists of labels.
    """
    from korbert.tasks.kinds.detecting import detect

    by_role = dict(columns)
    line = ""
    kind = section.get("kind")
    if kind is None:
        detected = detect(train, columns, form, several=section.get("several", False))
        section |= {"several": True} if detected.several else {}
        kind = detected.kind
        by_role = by_role | {role: list(names) for role, names in detected.columns.items()}
        line = Message(
            "{file}: {kind}: {why}; {option} says otherwise",
            file=train, kind=kind, why=detected.why, option=argument("kind"),
        )  # fmt: skip
    entry = KINDS.get(ALIASES.get(kind, kind))
    role = entry.kind_class.label_role if entry else "label"  # an unknown kind is refused with the other settings
    if role != "label" and (label := by_role.pop("label", None)):
        by_role.setdefault(role, label)
    return kind, by_role, line


def _pattern(path: Any, beside: Path | None) -> str:
    """The path of a file or folder, with glob characters escaped; an address as it is."""
    if not isinstance(path, Path):
        return str(path)
    if not path.exists():
        raise SettingsError("{path}: no such file: check its name and folder", path=path)
    return glob.escape(str(path.absolute()).removeprefix(f"{beside}/"))
