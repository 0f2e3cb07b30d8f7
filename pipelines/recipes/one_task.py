"""The recipe of a single task, without a file: of `korbert finetune` and its neighbours, and of `korbert.finetune`."""

import glob
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from korbert.errors import SettingsError
from korbert.folders import lasting, model_folder
from korbert.messages import Message, argument
from korbert.modeling import read_config
from korbert.pipelines import experiments
from korbert.pipelines.recipes.loading import Recipe, of_tables
from korbert.records import Form
from korbert.system import JsonObject, check_outside
from korbert.tasks.kinds import ALIASES, KINDS, RUNGS
from korbert.tasks.kinds.sections import OF_HEAD
from korbert.tasks.sets import known_set

_EMBEDDERS = {"token-classification": "korbert-mini-ner"}  # kind of task -> model whose vectors are tried, too
_EMBEDDER = "korbert-mini-embed"  # of all other kinds


@dataclass(frozen=True)
class SingleTask:
    """A task to train on its own, as a command or a caller asks for it.

    output: the folder to write, which names the task; None: nothing is written. files: part -> path or address; empty
    for a known data set, which `settings` names. settings: of the task's section. columns: role -> its columns.
    changes: as typed for --set, without the section. rungs: of a task of labels, as in a recipe; (): all three, unless
    a setting is for ["encoder"] alone. relative_to: the data folder, if the recipe is to name files in it relative to
    it.
    """

    model: str | Path
    output: Path | None
    files: Mapping[str, Any]
    settings: Mapping[str, Any]
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    form: Form = "auto"
    changes: Sequence[str] = ()
    rungs: Sequence[str] = ()
    relative_to: Path | None = None

    def recipe(self) -> tuple[Recipe, str]:
        """The recipe, and a line on the kind if it was inferred from the training file.

        Raises SettingsError for a setting, and CorpusError for a training file that this kind of task cannot have.
        """
        teachers = self.settings.get("teachers", ())
        models = [self.model, *teachers]
        # model_folder raises for a misspelt name.
        folders = [folder for model in models for folder in (Path(model), model_folder(model))]
        if self.output:
            check_outside(self.output, *folders)
        section: dict[str, Any] = {"init": self._named(self.model), **self.settings}
        if teachers:
            section["teachers"] = list(map(self._named, teachers))
        columns = dict(self.columns)
        train = self.files.get("train")
        line = ""
        if train:
            if "kind" not in section:
                line = self._infer(section, columns)
            section["form"] = self.form
            entry = KINDS.get(ALIASES.get(section["kind"], section["kind"]))
            role = entry.kind_class.label_role if entry else "label"  # an unknown kind is refused with other settings
            if role != "label" and (label := columns.pop("label", None)):
                columns.setdefault(role, label)
        for part, file in self.files.items():
            section[part] = str(file)
            if isinstance(file, Path):  # not an address
                if not file.exists():
                    raise SettingsError("{path}: no such file: check its name and folder", path=file)
                section[part] = glob.escape(str(file.absolute()).removeprefix(f"{self.relative_to}/"))
        if columns:
            section["columns"] = columns
        section |= self._rungs(section)
        # The name of the stage, from the folder, as a page or an error shows it.
        folder_name = self.output.name.lower() if self.output else ""
        name = re.sub(r"[^a-z0-9_-]+", "-", folder_name).strip("-") or "task"
        changes = [f"tasks.{name}.{change}" for change in self.changes]
        recipe = of_tables({"tasks": {name: section}}, Path("finetune"), "korbert finetune", changes)
        if train and not line:  # the kind was named, which the columns may not fit
            experiments.task_rows.check_columns(recipe.section(f"tasks.{name}"), train)
        return recipe, line

    def _named(self, model: str | Path) -> str:
        """Returns the name of a model in the recipe."""
        return lasting(model).removeprefix(f"{self.relative_to}/")

    def _infer(self, section: JsonObject, columns: dict[str, Sequence[str]]) -> Message:
        """Infers the kind of task and the columns of its roles, and adds them to the arguments. Returns a note."""
        from korbert.tasks.kinds.detecting import detect

        train = self.files["train"]
        detected = detect(train, self.columns, self.form, several=section.get("several", False))
        section["kind"] = detected.kind
        if detected.several:
            section["several"] = True
        columns |= {role: list(names) for role, names in detected.columns.items()}
        return Message(
            "{file}: {kind}: {why}; {option} says otherwise",
            file=train, kind=detected.kind, why=detected.why, option=argument("kind"),
        )  # fmt: skip

    def _rungs(self, section: Mapping[str, Any]) -> JsonObject:
        """Returns the settings `rungs` and `embedder` of a section, unless they are given or have no effect."""
        given = {name for name, value in self.settings.items() if value}
        given |= {re.split(r"[.=]", change)[0].strip() for change in self.changes}
        name = section.get("kind") or known_set(section["set"]).kind
        name = ALIASES.get(name, name)
        entry = KINDS.get(name)
        embedder = _EMBEDDERS.get(name, _EMBEDDER)
        rungs = list(self.rungs)
        fields = entry.section_class.model_fields if entry else {}
        if not rungs and "rungs" in fields and not given & {"rungs", *OF_HEAD}:
            rungs = [*RUNGS]
        if name in _EMBEDDERS and len(rungs) > 1:  # a tagger has no words
            rungs = [rung for rung in rungs if rung != "words"]
        settings: JsonObject = {"rungs": rungs} if rungs not in ([], ["encoder"]) else {}
        if "vectors" in rungs and "embedder" in fields and "embedder" not in given | self.settings.keys():
            model_config, embedder_config = read_config(self.model), read_config(embedder)
            if (
                model_config["kind"] != embedder_config["kind"]
                and model_config["tokenizer_digest"] == embedder_config["tokenizer_digest"]
            ):
                settings["embedder"] = embedder
        return settings
