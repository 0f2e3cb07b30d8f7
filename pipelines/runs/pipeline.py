"""The artifacts of one recipe below one root: their state, and what a run would do."""

import pkgutil
import shlex
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from korbert.errors import ArtifactError, CorpusError, SettingsError
from korbert.messages import Message, argument, join_messages
from korbert.pipelines.artifacts import Plan, Runtime, Stage, StageInputs, store
from korbert.pipelines.recipes.files import find
from korbert.pipelines.recipes.loading import Recipe, load
from korbert.pipelines.runs.sources import Sources
from korbert.system import JsonObject, installed_version, processor_name

STATES = {
    "fresh": Message("fresh"),
    "absent": Message("absent"),
    "partial": Message("partial"),
    "stale": Message("stale"),
    "unused": Message("unused"),
}
"""The states of an artifact, as they are shown."""

_ACTIONS = {
    "fresh": Message("would be skipped"),
    "absent": Message("would be made"),
    "partial": Message("would be resumed"),
    "stale": Message("would be refused"),
    "unused": Message("not in the recipe"),
}


@dataclass(frozen=True)
class Status:
    """The state of one stage's artifact, and the reasons.

    state: "fresh", "stale", "partial", "absent" or "unused" (the recipe leaves the stage out). reasons: what differs,
    one line each. notes: harmless differences (versions, numerics). action: what a run would do; set by `statuses`.
    """

    stage: str
    state: str
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    digest: str | None = None
    action: str = ""


class Pipeline:
    """A recipe, a runtime, and the folder of their artifacts."""

    def __init__(self, recipe: Recipe, runtime: Runtime, place: Path | None = None) -> None:
        """place: artifact folder for a recipe of a single stage that reads no other, instead of one below the root;
        `runtime.given` is then the whole command line after `korbert`.

        Raises ArtifactError if `place` is no folder, or holds files other than an artifact, which the run would remove.
        """
        assert place is None or len(recipe.stages) == 1
        self.recipe = recipe
        self.runtime = runtime
        if place is not None:
            place = place if place.name and place.name != ".." else place.resolve()
            store.check_place(place, "output")
        self.place = place
        self.folder = place or runtime.root / recipe.name
        self.sources = Sources(recipe, runtime.data, self.folder, map(self.artifact, recipe.stages))

    def artifact(self, stage: str) -> Path:
        """The folder of a stage's finished artifact."""
        return self.place or self.folder / stage

    def partial(self, stage: str) -> Path:
        """The folder of a stage in progress."""
        return store.partial_of(self.artifact(stage))

    def command(self, **arguments: str | Literal[True]) -> str:
        """The command line, or in Python the call, that repeats this run with other arguments, for errors to suggest.

        arguments: of `korbert.run`. For a single task run from Python, only these arguments are shown.
        """
        if self.runtime.call:
            named = [f"{name}={value!r}" for name, value in arguments.items()]
            if self.place is None:
                return f"`korbert.run({', '.join([repr(self.recipe.given), *named, *self.runtime.given])})`"
            return f"`{', '.join(named)}`"
        options = list[str]()
        for name, value in arguments.items():
            options += [f"--{name.rstrip('_')}", *([] if value is True else [value])]
        typed = self.runtime.given
        words = ["run", self.recipe.given, *options, *typed] if self.place is None else [*typed, *options]
        return f"`{shlex.join(['korbert', *words])}`"

    def stages(self, first: str | None = None, last: str | None = None) -> list[Stage]:
        """The recipe's stages from `first` to `last`."""
        names = list(self.recipe.stages)
        for option, name in (("from", first), ("to", last)):
            if name is not None and name not in names:
                raise SettingsError(
                    "{option} {name}: {given} has the stages {names}: name one",
                    option=argument(option),
                    name=name,
                    given=self.recipe.given,
                    names=" ".join(names),
                )
        start = names.index(first or names[0])
        stop = names.index(last or names[-1])
        if start > stop:
            raise SettingsError(
                "{option_from} {first} comes after {option_to} {last}: the order is {names}",
                first=first,
                last=last,
                names=" ".join(names),
                option_from=argument("from"),
                option_to=argument("to"),
            )
        return [self.recipe.stages[name] for name in names[start : stop + 1] if self.recipe.section(name) is not None]

    def reads(self, stage: Stage) -> tuple[str, ...]:
        """The stages whose artifacts the stage reads in this recipe."""
        return stage.reads_under(self.recipe.section(stage.name))

    def inputs(self, stage: Stage) -> StageInputs:
        """The folders and files that the stage reads."""
        folders = {name: self.artifact(name) for name in self.reads(stage)}
        work = self.folder if self.place is None else self.partial(stage.name) / "work"
        return StageInputs(folders, self.sources.files(stage.name), work / "encoded")

    def plan(self, stage: Stage, files: JsonObject | None = None) -> Plan:
        """The plan of the stage as of now. Raises ArtifactError if an artifact that it reads is absent.

        files: the description of its source files; None: look at the files.
        """
        # A digest stands for all that an input was made from, so no stage further up the chain is looked at.
        digests = {}
        for name in self.reads(stage):
            if (record := store.read_record(self.artifact(name))) is None:
                raise ArtifactError(
                    "{artifact}: is absent, and {stage} reads it: make it with {command}",
                    artifact=self.artifact(name),
                    stage=stage.name,
                    command=self.command(to=name),
                )
            digests[name] = record["digest"]
        inputs = {"artifacts": digests, "files": self.sources.describe(stage.name) if files is None else files}
        versions = _versions((*stage.libraries, *stage.more_libraries(self.recipe.section(stage.name))))
        return Plan(stage.name, stage.version, self.recipe.settings(stage.name), inputs, versions)

    def status(self, stage: Stage, *, verify: bool = False) -> Status:
        """The status of one stage, from its record, the records of its inputs, and its files.

        verify: hash the files instead of comparing their sizes.
        """
        if self.recipe.section(stage.name) is None:
            return Status(stage.name, "unused")
        folder = self.artifact(stage.name)
        try:
            record = store.read_record(folder)
            if record is None:
                return (
                    self._partial_status(stage) if self.partial(stage.name).is_dir() else Status(stage.name, "absent")
                )
        # The record cannot be read: a run would refuse to replace an artifact that it cannot know to be ours.
        except ArtifactError as error:
            return Status(stage.name, "stale", (error.message,))
        reasons, notes = self._drift(stage, record)
        if damage := store.damage(folder, record, hashes=verify):
            reasons.append(damage)

        # Other versions, another processor, or several processes are noted; they do not make an artifact stale.
        recorded_versions = dict(record["versions"])
        current_versions = _versions(record["versions"])
        if "processor" in record["numerics"]:
            recorded_versions["processor"] = record["numerics"]["processor"]
            current_versions["processor"] = processor_name()
        sittings = [*record["numerics"].get("earlier", []), record["numerics"]]
        processes = list(dict.fromkeys(str(sitting.get("processes", 1)) for sitting in sittings))
        if processes != ["1"]:
            numbers = join_messages(processes, ", then by ")
            notes.append(Message("trained by {numbers} processes: another number gives other bits", numbers=numbers))
        notes += [
            Message(
                "{name}: {here} here, {there} in the artifact",
                name=name,
                here=current_versions[name],
                there=recorded_versions[name],
            )
            for name in recorded_versions
            if current_versions[name] != recorded_versions[name]
        ]
        return Status(stage.name, "stale" if reasons else "fresh", tuple(reasons), tuple(notes), record["digest"])

    def _partial_status(self, stage: Stage) -> Status:
        """The status of a stage that has a partial folder but no artifact."""
        partial = self.partial(stage.name)
        begun = store.read_plan(partial) or {}
        owner = store.owner(self.artifact(stage.name))
        has_work = owner or store.holds_work(partial)
        state = Message("a run was interrupted; the next one resumes it")
        if begun.get("failed"):
            state = Message("the last run failed: {error}", error=Message.from_json(begun["failed"]))
        elif not has_work:
            state = Message("a run was interrupted before anything was finished")
        elif begun and (reasons := self._drift(stage, begun)[0]):
            return Status(stage.name, "stale", tuple(reasons))
        elif owner:
            state = Message("is being made by {owner}", owner=owner)
        if not has_work:
            return Status(stage.name, "absent", (state,))
        return Status(stage.name, "partial", tuple(filter(None, (state, progress(partial)))))

    def _drift(self, stage: Stage, record: JsonObject) -> tuple[list[Message], list[Message]]:
        """Differences between the record and the current plan, and notes on what could not be compared."""
        try:
            try:
                return store.differences(self.plan(stage), record), []
            except CorpusError as error:  # source files may be deleted once they have been read
                plan = self.plan(stage, files=record["inputs"]["files"])
                note = Message("not compared with its source files: {error}", error=error.message)
                return store.differences(plan, record), [note]
        except ArtifactError as error:
            return [error.message], []

    def statuses(self, *, verify: bool = False, rebuild: Collection[str] = ()) -> list[Status]:
        """The status of every stage, in order. rebuild: names of the stages to rebuild."""
        statuses: dict[str, Status] = {}
        for stage in self.recipe.stages.values():
            status = self.status(stage, verify=verify)
            action = _ACTIONS[status.state]
            # The inputs of a stage may be made anew with the same bytes, so that its own artifact stays fresh.
            waiting = [name for name in self.reads(stage) if statuses[name].state not in ("fresh", "unused")]
            if stage.name in rebuild:
                action = Message("would be rebuilt (--rebuild)")
            elif waiting and (self.artifact(stage.name) / store.RECORD).exists() and not self._own_drift(stage):
                reason = Message("{stage} is {state}", stage=waiting[0], state=STATES[statuses[waiting[0]].state])
                status = replace(status, state="stale", reasons=(reason,))
                action = Message("would be compared again once {stage} is fresh", stage=waiting[0])
            statuses[stage.name] = replace(status, action=action)
        return list(statuses.values())

    def _own_drift(self, stage: Stage) -> bool:
        """Whether a finished artifact differs in more than the digests of its inputs."""
        folder = self.artifact(stage.name)
        try:
            record = store.read_record(folder) or {}
        except ArtifactError:
            return True
        plan = Plan(stage.name, stage.version, self.recipe.settings(stage.name), record["inputs"])
        return bool(store.differences(plan, record) or store.damage(folder, record))

    def require_sources(self, stages: Sequence[Stage]) -> None:
        """Checks the inputs of the stages that are not fresh, before any work starts.

        Raises CorpusError if a source file is missing, ModelError or SettingsError if a model or tokenizer that a stage
        starts from does not fit the recipe.
        """
        for stage in stages:
            if self.status(stage).state != "fresh":
                self.sources.files(stage.name)
                if stage.inspect:
                    pkgutil.resolve_name(stage.inspect)(self)

    def require_fresh_before(self, stages: Sequence[Stage]) -> None:
        """Raises ArtifactError unless all artifacts that these stages build on, and do not make, are fresh."""
        for earlier in (stage for stage in self.stages() if stage not in stages):
            builders = [stage.name for stage in stages if self._builds_on(stage, earlier)]
            if builders and (status := self.status(earlier)).state != "fresh":
                why = Message(" ({reason})", reason=status.reasons[0]) if status.reasons else ""
                raise ArtifactError(
                    "{artifact}: is {state}{why}, and {builders} builds on it: run {command}",
                    artifact=self.artifact(earlier.name),
                    state=STATES[status.state],
                    why=why,
                    builders=builders[0],
                    command=self.command(from_=earlier.name),
                )

    def _builds_on(self, stage: Stage, earlier: Stage) -> bool:
        stages = self.recipe.stages
        return any(name == earlier.name or self._builds_on(stages[name], earlier) for name in self.reads(stage))


def progress(partial: Path) -> Message | None:
    """The progress of an interrupted or running stage, in words; None if nothing is finished."""
    with suppress(OSError, ValueError):  # a running stage has just removed the file, or is about to write it
        if steps := list(partial.glob("work/*/parts")):
            newest = max(steps, key=lambda path: path.stat().st_mtime_ns)
            return Message(
                "{work}: {done:,} of {total:,} parts done",
                work=newest.parent.name,
                done=len(list(newest.parent.glob("part-*.json"))),
                total=int(newest.read_text(encoding="utf-8")),
            )
        if states := list(partial.glob("**/checkpoints/step-????????")):
            newest = max(states, key=lambda path: path.stat().st_mtime_ns)
            return Message("step {step:,} is saved", step=int(newest.name.removeprefix("step-")))
    return None


def open_pipeline(recipe: str, changes: Sequence[str], root: Path, data: Path | None, **runtime: Any) -> Pipeline:
    """Opens the pipeline of a recipe. data: the data folder; None: the recipe's folder. runtime: fields of Runtime."""
    loaded = load(recipe, changes)
    folder = data or find(recipe).parent
    try:
        folder = folder.resolve()
    except (OSError, RuntimeError) as error:  # a loop of links
        raise SettingsError(
            "{folder}: cannot be followed ({error}): name another folder with {option}",
            folder=folder,
            error=error,
            option=argument("data"),
        ) from error
    return Pipeline(loaded, Runtime(root=root, data=folder, **runtime))


def _versions(libraries: Iterable[str]) -> dict[str, str]:
    return {name: installed_version(name) for name in libraries}
