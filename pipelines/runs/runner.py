"""Runs stages: fresh artifacts are skipped, drifted ones refused, interrupted ones resumed (docs/architecture.md)."""

import datetime
import logging
import pkgutil
import platform
import shlex
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Literal

from korbert import training
from korbert.errors import ArtifactError, CorpusError, ModelError, SettingsError
from korbert.messages import Message, argument, join_messages
from korbert.pipelines.artifacts import Plan, Stage, StageCounts, store
from korbert.pipelines.artifacts.figures import label
from korbert.pipelines.runs.pipeline import Pipeline
from korbert.system import (
    MARK,
    JsonObject,
    broadcast,
    current_world,
    is_marked,
    is_secondary_rank,
    peak_memory,
    processor_name,
    world,
    write_json,
)

_logger = logging.getLogger(__name__)

Draw = Callable[[Pipeline, Stage], None]

_SUMS_SHOWN = 6  # in the line that ends a stage
_REASONS_SHOWN = 4  # of dropped documents, in the same line
_LONGER_HERE = Message(
    "a run cannot be made longer, since its learning rates depend on its length: to train on, finish it as it was, and "
    "name its model as MODEL of another run"
)
_LONGER_IN_A_RECIPE = Message(
    "a run cannot be made longer, since its learning rates depend on its length: to train on, finish it as it was, and "
    "name its model as init in another recipe"
)
_LENGTHS = ("steps", "epochs")  # settings of how long to train


def make_all(pipeline: Pipeline, stages: Sequence[Stage], *, rebuild: bool = False, draw: Draw | None = None) -> None:
    """Runs stages in order, as `make` does, after checking that all their inputs are there.

    draw: makes the pages of a finished artifact.
    The processes that torchrun has started train together; if none of the stages trains, rank 0 works alone.
    """
    trains = any(stage.trains for stage in stages)
    if is_secondary_rank() and not trains:
        return

    def prepared_stages() -> frozenset[str]:
        pipeline.require_fresh_before(stages)
        pipeline.require_sources(stages)
        return mark_for_rebuild(pipeline, stages) if rebuild else frozenset()

    # Processes are connected only to train: corpus stages have workers of their own.
    together: AbstractContextManager[object] = nullcontext()
    if trains and world().size > 1:
        together = training.connected_processes(training.choose_device(pipeline.runtime.device))
    with together:
        to_rebuild = broadcast(prepared_stages)
        for stage in stages:
            make(pipeline, stage, rebuild=stage.name in to_rebuild, draw=draw)


def mark_for_rebuild(pipeline: Pipeline, stages: Sequence[Stage]) -> frozenset[str]:
    """Returns the stages for `--rebuild` to run: all of them, or those that an interrupted rebuild has not remade.

    A file in its partial folder marks each stage until it is rebuilt, so that the same command continues after an
    interruption.
    """
    partials = {stage.name: pipeline.partial(stage.name) for stage in stages}
    unfinished = [
        name for name, partial in partials.items() if is_marked(partial) and (partial / store.REBUILD).exists()
    ]
    if unfinished and all(pipeline.status(stage).state == "fresh" for stage in stages if stage.name not in unfinished):
        return frozenset(unfinished)
    for name, partial in partials.items():
        with store.artifact_lock(pipeline.artifact(name)):
            store.check_place(pipeline.artifact(name))
            store.empty(partial)
            (partial / store.REBUILD).touch()
    return frozenset(partials)


def make(pipeline: Pipeline, stage: Stage, *, rebuild: bool = False, draw: Draw | None = None) -> bool:
    """Runs the stage unless its artifact is fresh. Returns whether work was done.

    rebuild: run it even if fresh or drifted. Raises ArtifactError on drift, or while another run is writing it.
    With several processes (system/ranks.py), rank 0 decides, holds the lock and writes. The others take part in
    training, and wait during stages that do not train.
    """
    final = pipeline.artifact(stage.name)
    writes = current_world().is_main_process
    with store.artifact_lock(final) if writes else nullcontext():
        decision = broadcast(lambda: _begin(pipeline, stage, rebuild=rebuild))
        if decision == "work" and writes:
            _work(pipeline, stage)
        elif decision == "work" and stage.trains:
            _run(pipeline, stage)
        if draw and writes and not (final / store.PAGE).exists():
            try:
                draw(pipeline, stage)
            except Exception as error:  # the stage still counts as finished
                next_run = pipeline.command() if pipeline.place is None else "the next run"
                _logger.warning("%s: its page could not be drawn (%r): %s tries again", stage.name, error, next_run)
                _logger.debug("where", exc_info=True)
        broadcast(lambda: None)  # the next stage reads the artifact
    return decision != "skip"


def _begin(pipeline: Pipeline, stage: Stage, *, rebuild: bool) -> Literal["skip", "publish", "work"]:
    """Decides what to do, and prepares the folders. publish: a finished artifact only had to be renamed.

    Raises ArtifactError on drift, and if a file of an input artifact has other bytes than recorded.
    """
    final = pipeline.artifact(stage.name)
    partial = pipeline.partial(stage.name)
    if not rebuild:
        status = pipeline.status(stage)
        if status.state == "stale":
            store.check_place(final)
            raise ArtifactError(_refusal(pipeline, final, stage, status.reasons))
        if status.state == "fresh":
            _logger.info(Message("{stage}: fresh, skipped", stage=stage.name))
            store.tidy(partial, final)
            return "skip"
    store.check_place(final)
    plan = pipeline.plan(stage)
    for name in pipeline.reads(stage):
        folder = pipeline.artifact(name)
        if changed := store.changed_file(folder, store.read_record(folder) or {"files": {}}):
            raise ArtifactError(
                "{changed}: has other bytes than recorded, and {stage} reads it: rebuild it with {command}",
                changed=changed,
                stage=stage.name,
                command=pipeline.command(from_=name, to=name, rebuild=True),
            )
    _prepare(pipeline, stage, plan, rebuild=rebuild)
    if (partial / store.RECORD).exists():  # killed between the record and the rename
        store.publish(partial, final)
        return "publish"
    return "work"


def _refusal(pipeline: Pipeline, folder: Path, stage: Stage, reasons: Sequence[str]) -> Message:
    reason_text = join_messages(reasons[:5])
    if more := len(reasons[5:]):
        reason_text = join_messages((reason_text, Message("and {count} more", count=more)))
    if pipeline.place is not None:
        command = pipeline.command(rebuild=True)
        alternative = Message("choose another {option}", option=argument("output"))
    else:
        is_read = any(stage.name in other.reads for other in pipeline.recipe.stages.values())
        last = {} if is_read else {"to": stage.name}
        command = pipeline.command(from_=stage.name, **last, rebuild=True)
        alternative = Message("give the recipe another name")
    refusal = Message(
        "{folder}: is not what {recipe} would make: {reasons}: rebuild it with {command}, or {instead}",
        folder=folder, recipe=pipeline.recipe.given, reasons=reason_text, command=command, instead=alternative,
    )  # fmt: skip
    changed = [reason.values.get("name", "") if isinstance(reason, Message) else "" for reason in reasons]
    are_lengths = all(str(name).split(".")[-1] in _LENGTHS for name in changed)
    if are_lengths and hasattr(pipeline.recipe.section(stage.name), "init"):
        refusal = join_messages((refusal, _LONGER_HERE if pipeline.place else _LONGER_IN_A_RECIPE))
    return refusal


def _prepare(pipeline: Pipeline, stage: Stage, plan: Plan, *, rebuild: bool) -> None:
    """Prepares the partial folder for the plan, keeping finished work that belongs to it.

    Raises ArtifactError if the folder holds finished work of another plan, unless that run failed: then the settings
    had to be changed. The parts of a failed run are kept, as each records what it was made from, unless the stage
    trains.
    """
    partial = pipeline.partial(stage.name)
    try:
        begun = store.read_plan(partial)
    except ArtifactError:
        if not rebuild:
            raise
        begun = None
    reasons = store.differences(plan, begun) if begun else []
    failed = begun.pop("failed", "") if begun else ""
    if begun and not reasons:
        if failed:
            write_json(partial / store.PLAN, begun, sort_keys=True)
        return
    # A changed setting does not throw hours of work away: the user has to say so with --rebuild.
    if reasons and not rebuild and not failed and store.holds_work(partial):
        raise ArtifactError(_refusal(pipeline, partial, stage, reasons))
    keep = "work" if failed and not rebuild and not stage.trains else None
    store.begin(partial, plan, keep)


def _work(pipeline: Pipeline, stage: Stage) -> None:
    """Runs the stage in its partial folder and turns that into the artifact."""
    partial = pipeline.partial(stage.name)
    plan = pipeline.plan(stage)
    if store.holds_work(partial):
        _logger.info(Message("{stage}: resuming", stage=stage.name))
    else:
        _logger.info(Message("{stage}: starting", stage=stage.name))
    resumed = any(path.name not in (store.PLAN, store.REBUILD, MARK) for path in partial.iterdir())
    started = datetime.datetime.now(datetime.UTC)
    clock = time.monotonic()
    numerics = _numerics(pipeline, stage)
    try:
        counts = _run(pipeline, stage)
    except (CorpusError, ModelError, SettingsError) as error:  # caused by the recipe or the text
        begun = store.read_json(partial / store.PLAN) or {}
        write_json(partial / store.PLAN, {**begun, "failed": error.message.as_json()}, sort_keys=True)
        if not isinstance(error, SettingsError):
            error.exit_code = 1
        raise
    seconds = time.monotonic() - clock
    about = {
        "started": started.isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "resumed": resumed,  # then the seconds cover only the last run
        "machine": f"{platform.system()} {platform.machine()}, {processor_name()}",
        "memory_peak_bytes": peak_memory(),
        "workers": pipeline.runtime.workers,
        "runner": pipeline.runtime.runner,
        "command": pipeline.runtime.call or shlex.join(["korbert", *sys.argv[1:]]),
        "sources": pipeline.sources.remembered(),
    }
    store.finish(partial, pipeline.artifact(stage.name), plan, {"counts": counts, "numerics": numerics}, about)
    totals = _in_words(counts)
    _logger.info(
        Message("{stage}: done in {seconds:.1f} s: {totals}", stage=stage.name, seconds=seconds, totals=totals)
    )


def _run(pipeline: Pipeline, stage: Stage) -> StageCounts:
    run: Callable[..., StageCounts] = pkgutil.resolve_name(stage.run)
    section = pipeline.recipe.section(stage.name)
    return run(section, pipeline.inputs(stage), pipeline.partial(stage.name), pipeline.runtime)


def _numerics(pipeline: Pipeline, stage: Stage) -> JsonObject:
    """Returns what the bytes of a trained model depend on; `earlier`: the same of interrupted runs, if different."""
    if not stage.trains:
        return {}
    section = pipeline.recipe.section(stage.name)
    path = pipeline.partial(stage.name) / store.PLAN
    device = training.choose_device(pipeline.runtime.device)
    now: JsonObject = {
        **training.numerics(device, section.precision, section.threads),
        "processes": current_world().size,
    }
    plan = store.read_json(path) or {}
    # Kept in the plan, as a run may be resumed on another machine, and again on a third.
    earlier = [sitting for sitting in plan.get("sittings", []) if sitting != now]
    write_json(path, {**plan, "sittings": [*earlier, now]}, sort_keys=True)
    return {**now, "earlier": earlier} if earlier else now


def _in_words(counts: StageCounts) -> Message:
    """Returns the first totals as text; `dropped` is followed by its most frequent reasons."""
    totals = {key: value for key, value in counts.items() if isinstance(value, int)}
    # Reasons are counted under keys of their own: dropped.too_short.
    reasons = Counter({key.partition(".")[2]: value for key, value in totals.items() if key.startswith("dropped.")})
    largest = reasons.most_common(_REASONS_SHOWN)
    reason_texts = [Message("{count:,} {reason}", count=value, reason=label(name)) for name, value in largest]
    if other_count := reasons.total() - sum(value for _, value in largest):
        reason_texts.append(Message("{count:,} for other reasons", count=other_count))
    total_texts = []
    for key, value in [(key, value) for key, value in totals.items() if "." not in key][:_SUMS_SHOWN]:
        total = Message("{name} {count:,}", name=label(key), count=value)
        if key == "dropped" and reason_texts:
            total = Message("{total} ({reasons})", total=total, reasons=join_messages(reason_texts, ", "))
        total_texts.append(total)
    return join_messages(total_texts, ", ")
