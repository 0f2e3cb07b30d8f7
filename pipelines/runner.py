"""Runs stages in order: fresh ones are skipped, drifted ones refused, cut-off ones resumed (DESIGN 4)."""

import dataclasses
import datetime
import importlib
import logging
import platform
import resource
import shlex
import shutil
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpus.readers.records import File
from korbert.errors import ArtifactError, CorpusError, ModelError, SettingsError
from korbert.processor import processor_name
from korbert.versions import installed_version
from pipelines import artifacts
from pipelines.artifacts import Json, Plan
from pipelines.recipes import STAGES, Recipe, StageSpec
from pipelines.runtime import Runtime
from pipelines.sources import Sources
from pipelines.stages import Inputs

_logger = logging.getLogger(__name__)

_SUMS_SHOWN, _REASONS_SHOWN = 6, 4  # in the line that ends a stage
_ACTIONS = {
    "fresh": "would be skipped",
    "absent": "would be made",
    "partial": "would be resumed",
    "stale": "would be refused",
    "unused": "not in the recipe",
}


@dataclass(frozen=True)
class Status:
    """What one stage's artifact is, and why.

    state: "fresh", "stale", "partial", "absent" or "unused" (the recipe has no such section). reasons: what differs, a
    line each. notes: what differs without mattering (versions, numerics). action: what a run would do, where the state
    alone does not tell.
    """

    stage: str
    state: str
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    digest: str | None = None
    action: str = ""

    @property
    def doing(self) -> str:
        """What a run would do with the stage."""
        return self.action or _ACTIONS[self.state]


class Chain:
    """One recipe's artifacts below one root, and what a run would do with them."""

    def __init__(self, recipe: Recipe, runtime: Runtime) -> None:
        self.recipe = recipe
        self.runtime = runtime
        self.folder = runtime.root / recipe.name
        self._sources = Sources(recipe, runtime.data, self.folder)

    def sources(self, stage: str) -> dict[str, tuple[File, ...]]:
        """Role -> source files of a stage. Raises CorpusError where a pattern finds nothing."""
        return self._sources.files(stage)

    def artifact(self, stage: str) -> Path:
        """Where a stage's finished artifact lies."""
        return self.folder / stage

    def partial(self, stage: str) -> Path:
        """Where a stage works."""
        return self.folder / f"{stage}.partial"

    def plan(self, spec: StageSpec, files: Json | None = None) -> Plan:
        """What the stage would be made from now. Raises ArtifactError where an artifact that it reads is absent.

        files: what its source files are taken for, instead of looking at them.
        """
        digests = {}
        for name in self.reads(spec):
            record = artifacts.read_record(self.artifact(name))
            if record is None:
                raise ArtifactError(
                    f"{self.artifact(name)}: is absent, and {spec.name} reads it: "
                    f"make it with {self._command('--to', name)}"
                )
            digests[name] = record["digest"]
        inputs: Json = {
            "artifacts": digests,
            "files": self._sources.describe(spec.name) if files is None else files,
        }
        return Plan(spec.name, spec.version, self.recipe.settings(spec.name), inputs, _versions(spec.libraries))

    def _command(self, *options: str, verb: str = "run") -> str:
        return f"`{shlex.join(['korbert', verb, self.recipe.given, *options, *self.runtime.given])}`"

    def reads(self, spec: StageSpec) -> tuple[str, ...]:
        """The stages whose artifacts it is made from."""
        section = self.recipe.section(spec.name)
        untrained = spec.name == "korquad" and section is not None and section.init == "scratch"
        return tuple(name for name in spec.reads if not (untrained and name == "pretrain"))

    def status(self, spec: StageSpec, *, verify: bool = False) -> Status:
        """The state of one stage, judged by its own record, its inputs' records and its files."""
        if self.recipe.section(spec.name) is None:
            return Status(spec.name, "unused")
        folder = self.artifact(spec.name)
        try:
            record = artifacts.read_record(folder)
            if record is None:
                return self._unfinished(spec) if self.partial(spec.name).is_dir() else Status(spec.name, "absent")
        except ArtifactError as error:
            return Status(spec.name, "stale", (str(error),))
        reasons, notes = self._drift(spec, record)
        broken = artifacts.damage(folder, record, hashes=verify)
        if broken:
            reasons.append(broken)
        notes += self._notes(record)
        return Status(spec.name, "stale" if reasons else "fresh", tuple(reasons), tuple(notes), record["digest"])

    def _unfinished(self, spec: StageSpec) -> Status:
        partial = self.partial(spec.name)
        begun = artifacts.read_plan(partial) or {}
        owner = artifacts.owner(self.artifact(spec.name))
        if not owner and not artifacts.holds_work(partial):
            return Status(spec.name, "absent", _why(begun, "a run was cut off before anything was finished"))
        reasons = self._drift(spec, begun)[0] if begun else []
        if reasons and not begun.get("failed"):
            return Status(spec.name, "stale", tuple(reasons))
        state = f"is being made by {owner}" if owner else "a run was cut off; the next one resumes there"
        progress = artifacts.progress(partial)
        return Status(spec.name, "partial", (*_why(begun, state), *([progress] if progress else [])))

    def _drift(self, spec: StageSpec, record: Json) -> tuple[list[str], list[str]]:
        """Where the record is not what would be made now, and what could not be compared.

        A partial folder's plan has no files yet; it is of one set of library versions, an artifact may be of others.
        """
        compare = artifacts.differences if "files" in record else artifacts.obstacles
        try:
            try:
                return compare(self.plan(spec), record), []
            except CorpusError as error:  # the source files may be gone once they have been read
                plan = self.plan(spec, files=record["inputs"]["files"])
                return compare(plan, record), [f"not compared with its source files: {error}"]
        except ArtifactError as error:
            return [str(error)], []

    def _notes(self, record: Json) -> list[str]:
        """What differs from the record without mattering to the digest."""
        made, now = dict(record["versions"]), _versions(record["versions"])
        if "processor" in record["numerics"]:
            made["processor"], now["processor"] = record["numerics"]["processor"], processor_name()
        return [f"{name}: {now[name]} here, {made[name]} in the artifact" for name in made if now[name] != made[name]]

    def inputs(self, spec: StageSpec) -> Inputs:
        """The folders and files that the stage reads."""
        found = {name: self.artifact(name) for name in self.reads(spec)}
        return Inputs(found, self._sources.files(spec.name), self.folder / "encoded")

    def specs(self, first: str | None = None, last: str | None = None) -> list[StageSpec]:
        """The stages from `first` to `last` that the recipe has a section for."""
        names = list(STAGES)
        start, stop = names.index(first or names[0]), names.index(last or names[-1])
        if start > stop:
            raise SettingsError(f"--from {first} comes after --to {last}: the order is {' '.join(names)}")
        return [STAGES[name] for name in names[start : stop + 1] if self.recipe.section(name) is not None]

    def require_sources(self, specs: Sequence[StageSpec]) -> None:
        """Raises CorpusError where a source file of a stage that is still to be made is missing."""
        for spec in specs:
            if self.status(spec).state != "fresh":
                self._sources.files(spec.name)

    def require_fresh_before(self, first: StageSpec) -> None:
        """Raises ArtifactError unless every artifact that `first` builds on is fresh. Forces nothing."""
        for spec in self.specs(last=first.name)[:-1]:
            status = self.status(spec)
            if status.state != "fresh" and self._leads_to(spec, first):
                why = f" ({status.reasons[0]})" if status.reasons else ""
                raise ArtifactError(
                    f"{self.artifact(spec.name)}: is {status.state}{why}, and {first.name} builds on it: "
                    f"run {self._command('--from', spec.name)}"
                )

    def _leads_to(self, spec: StageSpec, last: StageSpec) -> bool:
        return any(name == spec.name or self._leads_to(spec, STAGES[name]) for name in self.reads(last))

    def statuses(self, *, verify: bool = False, rebuild: Collection[str] = ()) -> list[Status]:
        """All stages in order, and what a run would do with each. rebuild: names of those to be made anew."""
        found: dict[str, Status] = {}
        for spec in STAGES.values():
            status = self.status(spec, verify=verify)
            waiting = [name for name in self.reads(spec) if found[name].state not in ("fresh", "unused")]
            if spec.name in rebuild:
                status = dataclasses.replace(status, action="would be made anew (--rebuild)")
            elif waiting and (self.artifact(spec.name) / artifacts.RECORD).exists() and not self._own_drift(spec):
                status = dataclasses.replace(
                    status,
                    state="stale",
                    reasons=(f"{waiting[0]} is {found[waiting[0]].state}",),
                    action=f"would be compared again once {waiting[0]} is fresh",
                )
            found[spec.name] = status
        return list(found.values())

    def _own_drift(self, spec: StageSpec) -> bool:
        """Whether a finished artifact differs in more than the digests of what it was made from."""
        try:
            record = artifacts.read_record(self.artifact(spec.name)) or {}
            plan = Plan(spec.name, spec.version, self.recipe.settings(spec.name), record["inputs"])
            return bool(artifacts.differences(plan, record)) or bool(artifacts.damage(self.artifact(spec.name), record))
        except ArtifactError:
            return True

    def to_rebuild(self, specs: Sequence[StageSpec]) -> frozenset[str]:
        """The stages that `--rebuild` has to make anew: all, or those that a rebuild which was cut off has left.

        Each is marked by a file until it is made, so that the same command goes on where it was.
        """
        left = [spec for spec in specs if self._marker(spec.name).exists()]
        if not left or any(self.status(spec).state != "fresh" for spec in specs if spec not in left):
            left = list(specs)
            for spec in specs:
                with artifacts.locked(self.artifact(spec.name)):
                    shutil.rmtree(self.partial(spec.name), ignore_errors=True)
                    self._marker(spec.name).touch()
        return frozenset(spec.name for spec in left)

    def _marker(self, stage: str) -> Path:
        return self.folder / f"{stage}.rebuild"

    def run(self, spec: StageSpec, *, rebuild: bool = False) -> bool:
        """Make the stage's artifact, unless it is fresh. True when work was done.

        rebuild: fresh or drifted, make it anew. Raises ArtifactError on drift, or when another run is writing it.
        """
        with artifacts.locked(self.artifact(spec.name)):
            done = not rebuild and self._is_fresh(spec)
            if done:
                _logger.info("%s: fresh, skipped", spec.name)
                artifacts.tidy(self.partial(spec.name), self.artifact(spec.name))
            else:
                artifacts.check_place(self.artifact(spec.name), self.partial(spec.name))
                if spec.trains:
                    from korbert.training.distributed import refuse_environment  # loads PyTorch

                    refuse_environment()
                plan = self.plan(spec)
                self._verify_inputs(spec)
                self._prepare(spec, plan, rebuild=rebuild)
                self._work(spec, plan)
            self._marker(spec.name).unlink(missing_ok=True)
            if not (self.artifact(spec.name) / artifacts.PAGE).exists():
                self._report(spec.name)
        return not done

    def _is_fresh(self, spec: StageSpec) -> bool:
        status = self.status(spec)
        if status.state == "stale":
            raise ArtifactError(self._refusal(self.artifact(spec.name), spec.name, status.reasons))
        return status.state == "fresh"

    def _refusal(self, folder: Path, stage: str, reasons: tuple[str, ...]) -> str:
        shown = "; ".join(reasons[:5]) + (f"; and {len(reasons) - 5} more" if len(reasons) > 5 else "")
        last = () if any(stage in spec.reads for spec in STAGES.values()) else ("--to", stage)
        return (
            f"{folder}: is not what {self.recipe.given} would make: {shown}: make it anew with "
            f"{self._command('--from', stage, *last, '--rebuild')}, or give the recipe another name"
        )

    def _prepare(self, spec: StageSpec, plan: Plan, *, rebuild: bool) -> None:
        """Prepare the partial folder for the plan, keeping finished work that belongs to it.

        Raises ArtifactError where the folder holds finished work of another plan, unless that run ended in an error:
        its settings are what had to be changed. Parts know what they were made from, so those stay in that case.
        """
        partial = self.partial(plan.stage)
        try:
            begun = artifacts.read_plan(partial)
        except ArtifactError:
            if not rebuild:
                raise
            begun = None
        reasons = () if begun is None else tuple(artifacts.obstacles(plan, begun))
        if begun is not None and not reasons:
            if begun.pop("failed", None):
                artifacts.write_json(partial / artifacts.PLAN, begun)
            return
        failed = begun is not None and bool(begun.get("failed"))
        if reasons and not rebuild and not failed and artifacts.holds_work(partial):
            raise ArtifactError(self._refusal(partial, plan.stage, reasons))
        artifacts.begin(partial, plan, keep="work" if failed and not rebuild and not spec.trains else None)

    def _verify_inputs(self, spec: StageSpec) -> None:
        """Raises ArtifactError where a file of an artifact that the stage reads has other bytes than recorded."""
        for name in self.reads(spec):
            folder = self.artifact(name)
            changed = artifacts.changed_file(folder, artifacts.read_record(folder) or {"files": {}})
            if changed is not None:
                raise ArtifactError(
                    f"{changed}: has other bytes than recorded, and {spec.name} reads it: "
                    f"make it anew with {self._command('--from', name, '--to', name, '--rebuild')}"
                )

    def _work(self, spec: StageSpec, plan: Plan) -> None:
        partial, final = self.partial(spec.name), self.artifact(spec.name)
        if (partial / artifacts.RECORD).exists():  # killed between the record and the rename
            artifacts.settle(partial, final)
            return
        _logger.info("%s: %s", spec.name, "resuming" if artifacts.holds_work(partial) else "starting")
        resumed = any(path.name != artifacts.PLAN for path in partial.iterdir())
        started, clock = datetime.datetime.now(datetime.UTC), time.monotonic()
        numerics = self._numerics(spec, partial)
        module = importlib.import_module(f"pipelines.stages.{spec.name}")
        try:
            counts = module.run(self.recipe.section(spec.name), self.inputs(spec), partial, self.runtime)
        except (
            CorpusError,
            ModelError,
            SettingsError,
        ) as error:  # errors that the user mends in the recipe or the text
            begun = artifacts.read_json(partial / artifacts.PLAN) or {}
            artifacts.write_json(partial / artifacts.PLAN, {**begun, "failed": str(error)})
            raise
        seconds = time.monotonic() - clock
        facts: Json = {"counts": counts, "numerics": numerics}
        run = self._about(started, seconds, resumed=resumed)
        artifacts.finish(partial, final, plan, facts, run)
        _logger.info("%s: done in %.1f s: %s", spec.name, seconds, _in_words(counts))

    def _numerics(self, spec: StageSpec, partial: Path) -> Mapping[str, Any]:
        """What trained bytes depend on, and under `earlier` what was otherwise in sittings before this one."""
        if not spec.trains:
            return {}
        from korbert.training.devices import choose_device, numerics

        section = self.recipe.section(spec.name)
        now = numerics(choose_device(self.runtime.device), section.precision, section.threads)
        plan = artifacts.read_json(partial / artifacts.PLAN) or {}
        earlier = [sitting for sitting in plan.get("sittings", []) if sitting != now]
        artifacts.write_json(partial / artifacts.PLAN, {**plan, "sittings": [*earlier, now]})
        return {**now, "earlier": earlier} if earlier else now

    def _about(self, started: datetime.datetime, seconds: float, *, resumed: bool) -> Json:
        usage = [resource.getrusage(who).ru_maxrss * 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return {
            "started": started.isoformat(timespec="seconds"),
            "seconds": round(seconds, 3),
            "resumed": resumed,  # then the seconds are those of the last sitting alone
            "machine": f"{platform.system()} {platform.machine()}, {processor_name()}",
            "memory_peak_bytes": max(usage),
            "workers": self.runtime.workers,
            "runner": self.runtime.runner,
            "command": shlex.join(["korbert", *sys.argv[1:]]),
            "sources": self._sources.remembered(),
        }

    def _report(self, stage: str) -> None:
        """The artifact's page and the chain's. One that cannot be drawn costs nobody a finished stage."""
        from pipelines.reports import index, render

        try:
            render(self.artifact(stage))
            index(self.folder, [spec.name for spec in self.specs()])
        except Exception as error:
            again = self._command(verb="report")
            _logger.warning("%s: its page could not be drawn (%r): %s tries again", stage, error, again)
            if self.runtime.debug:
                raise


def _versions(libraries: Mapping[str, str] | tuple[str, ...]) -> dict[str, str]:
    return {name: installed_version(name) for name in libraries}


def _why(begun: Json, otherwise: str) -> tuple[str, ...]:
    """Why a partial folder is there."""
    return (f"the last run failed: {begun['failed']}",) if begun.get("failed") else (otherwise,)


def _in_words(counts: Mapping[str, int | float]) -> str:
    """The sums, and beside what was dropped the largest reasons (`dropped.too_short`)."""
    whole = {key: value for key, value in counts.items() if isinstance(value, int)}
    reasons = {key.partition(".")[2]: value for key, value in whole.items() if key.startswith("dropped.")}
    largest = sorted(reasons.items(), key=lambda reason: -reason[1])[:_REASONS_SHOWN]
    told = [f"{value:,} {name.replace('_', ' ')}" for name, value in largest]
    if rest := sum(reasons.values()) - sum(value for _, value in largest):
        told.append(f"{rest:,} for other reasons")
    shown = []
    for key, value in [(key, value) for key, value in whole.items() if "." not in key][:_SUMS_SHOWN]:
        why = f" ({', '.join(told)})" if key == "dropped" and told else ""
        shown.append(f"{key.replace('_', ' ')} {value:,}{why}")
    return ", ".join(shown)
