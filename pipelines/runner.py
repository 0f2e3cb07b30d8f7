"""Runs stages in order: fresh ones are skipped, drifted ones refused, cut-off ones resumed (DESIGN 4)."""

import dataclasses
import datetime
import importlib
import importlib.metadata
import logging
import platform
import resource
import shlex
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpus.readers.records import File
from korbert.errors import ArtifactError, CorpusError, SettingsError
from korbert.processor import processor_name
from pipelines import artifacts
from pipelines.artifacts import Json, Plan
from pipelines.recipes import STAGES, Recipe, StageSpec
from pipelines.runtime import Runtime
from pipelines.sources import Sources
from pipelines.stages import Inputs

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Status:
    """What one stage's artifact is, and why.

    state: "fresh", "stale", "partial", "absent" or "unused" (the recipe has no such section). reasons: what differs, a
    line each. notes: what differs without mattering (versions, numerics).
    """

    stage: str
    state: str
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    digest: str | None = None


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
            record = artifacts.read_json(self.artifact(name) / artifacts.RECORD)
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
        return Plan(spec.name, spec.version, self.recipe.settings(spec.name), inputs)

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
            record = artifacts.read_json(folder / artifacts.RECORD)
        except ArtifactError as error:
            return Status(spec.name, "stale", (str(error),))
        if record is None:
            return self._unfinished(spec) if self.partial(spec.name).exists() else Status(spec.name, "absent")
        reasons, notes = self._drift(spec, record)
        broken = artifacts.damage(folder, record, hashes=verify)
        if broken:
            reasons.append(broken)
        notes += self._notes(record)
        return Status(spec.name, "stale" if reasons else "fresh", tuple(reasons), tuple(notes), record["digest"])

    def _begun(self, stage: str) -> Json | None:
        """What a partial folder was begun for; None where there is none."""
        partial = self.partial(stage)
        return artifacts.read_json(partial / artifacts.PLAN) or artifacts.read_json(partial / artifacts.RECORD)

    def _unfinished(self, spec: StageSpec) -> Status:
        made_for = self._begun(spec.name)
        reasons = self._drift(spec, made_for)[0] if made_for else []
        if reasons:
            return Status(spec.name, "stale", tuple(reasons))
        owner = artifacts.owner(self.artifact(spec.name))
        state = f"is being made by {owner}" if owner else "a run was cut off; the next one goes on from there"
        progress = artifacts.progress(self.partial(spec.name))
        return Status(spec.name, "partial", (state, progress) if progress else (state,))

    def _drift(self, spec: StageSpec, record: Json) -> tuple[list[str], list[str]]:
        """Where the record is not what would be made now, and what could not be compared."""
        try:
            try:
                return artifacts.differences(self.plan(spec), record), []
            except CorpusError as error:  # the source files may be gone once they have been read
                plan = self.plan(spec, files=record["inputs"]["files"])
                return artifacts.differences(plan, record), [f"not compared with its source files: {error}"]
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

    def statuses(self, *, verify: bool = False) -> list[Status]:
        """All stages in order; what builds on something that is not fresh is stale itself."""
        found: dict[str, Status] = {}
        for spec in STAGES.values():
            status = self.status(spec, verify=verify)
            waiting = [name for name in self.reads(spec) if found[name].state not in ("fresh", "unused")]
            if status.state == "fresh" and waiting:
                status = dataclasses.replace(
                    status, state="stale", reasons=(f"{waiting[0]} is {found[waiting[0]].state}",)
                )
            found[spec.name] = status
        return list(found.values())

    def describe(self, spec: StageSpec, *, rebuild: bool) -> str:
        """What a run would do with the stage now."""
        status = self.status(spec)
        if rebuild and status.state in ("fresh", "stale"):
            return "would be made anew (--rebuild)"
        if status.state in ("absent", "partial"):
            self._sources.files(spec.name)  # a source that is missing is said now, not when its turn comes
        doing = {"fresh": "fresh, would be skipped", "absent": "would be made", "partial": "would be resumed"}
        return doing.get(status.state) or f"would be refused: {status.reasons[0]}"

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
                plan = self.plan(spec)
                self._prepare(plan, rebuild=rebuild)
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

    def _prepare(self, plan: Plan, *, rebuild: bool) -> None:
        partial = self.partial(plan.stage)
        made_for = self._begun(plan.stage)
        if made_for is not None:
            reasons = tuple(artifacts.differences(plan, made_for))
            if not reasons:
                return
            if not rebuild:
                raise ArtifactError(self._refusal(partial, plan.stage, reasons))
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        artifacts.write_json(partial / artifacts.PLAN, plan.as_json())

    def _work(self, spec: StageSpec, plan: Plan) -> None:
        partial, final = self.partial(spec.name), self.artifact(spec.name)
        if (partial / artifacts.RECORD).exists():  # killed between the record and the rename
            artifacts.settle(partial, final)
            return
        resumed = any(path.name != artifacts.PLAN for path in partial.iterdir())
        _logger.info("%s: %s", spec.name, "resuming" if resumed else "starting")
        started, clock = datetime.datetime.now(datetime.UTC), time.monotonic()
        numerics = self._numerics(spec, partial)
        module = importlib.import_module(f"pipelines.stages.{spec.name}")
        counts = module.run(self.recipe.section(spec.name), self.inputs(spec), partial, self.runtime)
        seconds = time.monotonic() - clock
        facts: Json = {"counts": counts, "versions": _versions(spec.libraries), "numerics": numerics}
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
            index(self.folder)
        except Exception as error:
            again = self._command(verb="report")
            _logger.warning("%s: its page could not be drawn (%r): %s tries again", stage, error, again)
            if self.runtime.debug:
                raise


def _versions(libraries: Mapping[str, str] | tuple[str, ...]) -> dict[str, str]:
    return {name: _version(name) for name in libraries}


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name).partition("+")[0]  # a local label (2.13.0+cpu) is in `numerics`
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def _in_words(counts: Mapping[str, int | float]) -> str:
    shown = [f"{key.replace('_', ' ')} {value:,}" for key, value in counts.items() if isinstance(value, int)]
    return ", ".join(shown[:6])
