"""Commands that run a recipe, show its state and estimate its cost."""

import pkgutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, Required, TypedDict, Unpack

import click
from click.core import ParameterSource

from korbert.errors import KorbertError, SettingsError
from korbert.messages import Message
from korbert.pipelines import inference, planning, recipes, reports, runs
from korbert.pipelines.artifacts import Stage
from korbert.pipelines.commands import options
from korbert.pipelines.stages.table import STAGES, TASK, is_task
from korbert.system import check_output, cores, in_one_line, is_secondary_rank, say, write_bytes_atomically
from korbert.tasks.sets import listing


class PipelineOptions(TypedDict, total=False):
    """The options of `place`, and those of `corpus`, `device`, .. that a command has besides."""

    root: Required[Path]
    data: Required[Path | None]
    changes: Required[tuple[str, ...]]
    workers: int | None
    runner: Literal["native", "ray"]
    address: str | None
    device: str
    row_workers: int | None


def pipeline_of(recipe: str, **given: Unpack[PipelineOptions]) -> "runs.Pipeline":
    """The pipeline of a recipe, from the options of a command."""
    runner = given.get("runner", "native")
    if given.get("address") is not None and runner != "ray":
        raise click.UsageError(Message("--address names a Ray cluster: add --runner ray"))
    # The options given on the command line, to repeat in a suggested command.
    typed: list[str] = []
    for name, option, values in (
        ("root", "--root", [str(given["root"])]),
        ("data", "--data", [str(given["data"])]),
        ("changes", "--set", given["changes"]),
    ):
        if click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE:
            typed += [word for value in values for word in (option, value)]
    return runs.open_pipeline(
        recipe,
        given["changes"],
        given["root"],
        given["data"],
        runner=runner,
        address=given.get("address"),
        device=given.get("device", "auto"),
        row_workers=given.get("row_workers"),
        given=tuple(typed),
        workers=given.get("workers") or cores(),
    )


def run_stages(pipeline: "runs.Pipeline", stages: Sequence[Stage], rebuild: bool, dry_run: bool) -> None:
    if not dry_run:
        runs.runner.make_all(pipeline, stages, rebuild=rebuild, draw=reports.draw)
    elif not is_secondary_rank():
        names = [stage.name for stage in stages]
        rebuilt = names if rebuild else []
        statuses = [status for status in pipeline.statuses(rebuild=rebuilt) if status.stage in names]
        for status in statuses:  # what a run would refuse at the start is refused here, too
            if status.state in ("absent", "partial"):
                pipeline.require_sources([pipeline.recipe.stages[status.stage]])
        reports.summary.show_status(pipeline, statuses)


_stage: Any = {"metavar": "|".join([*STAGES, f"{TASK}NAME"]), "shell_complete": options.completion(lambda: STAGES)}


@click.command()
@options.recipe
@click.option("--from", "first", **_stage, help="First stage; earlier ones must be fresh.")
@click.option("--to", "last", **_stage, help="Last stage.")
@options.work
@options.corpus
@options.device
@options.row_workers
@options.place
def run(
    recipe: str, first: str | None, last: str | None, rebuild: bool, dry_run: bool, **common: Unpack[PipelineOptions]
) -> None:
    """Run the stages of RECIPE in order.

    Fresh artifacts are skipped, interrupted ones resumed, stale ones refused.

    \b
    Example:
      korbert run mine.toml --from vocab --to pretrain
    """
    pipeline = pipeline_of(recipe, **common)
    run_stages(pipeline, pipeline.stages(first, last), rebuild, dry_run)
    if not dry_run and not is_secondary_rank():
        reports.summary.show(pipeline)


_preview = click.option(
    "--preview", type=click.IntRange(min=1), metavar="N", help="Preview the stage on about N documents."
)


def _stage_command(stage: Stage) -> click.Command:
    def command(
        recipe: str, rebuild: bool, dry_run: bool, preview: int | None = None, **common: Unpack[PipelineOptions]
    ) -> None:
        pipeline = pipeline_of(recipe, **common)
        if pipeline.recipe.section(stage.name) is None:
            raise SettingsError("{recipe}: has no section [{stage}]: add one", recipe=recipe, stage=stage.name)
        if preview is None:
            run_stages(pipeline, [stage], rebuild, dry_run)
        else:
            pkgutil.resolve_name(stage.preview)(pipeline, preview)

    stage_options = [options.workers, options.device] if stage.trains else [options.corpus]
    if stage.makes_rows:
        stage_options.append(options.row_workers)
    if stage.preview:
        stage_options.append(_preview)
    decorate = click.command(stage.name, help=str(stage.help), short_help=stage.help.summary)
    return decorate(options.together(options.recipe, options.work, *stage_options, options.place)(command))


@click.command()
@click.argument("recipe", required=False, shell_complete=options.recipe_names)
@click.argument("names", nargs=-1, metavar="[NAME ...]")
@options.work
@options.as_json
@options.workers
@options.device
@options.place
def tasks(
    recipe: str | None, names: tuple[str, ...], rebuild: bool, dry_run: bool, as_json: bool,
    **common: Unpack[PipelineOptions],
) -> None:  # fmt: skip
    """Fine-tune and score on the [tasks.NAME] sections of RECIPE.

    NAMEs select sections; the default is all. Without RECIPE, the known data sets are listed, for which --json is.

    Reads the pretrained model, or the one named by tasks.NAME.init, and the files of [tasks.NAME].

    Writes model/, scores.json and predictions.jsonl for each task.

    \b
    Example:
      korbert tasks mine.toml mood
    """
    if recipe is None:
        if as_json:
            click.echo(inference.lines.as_json({"sets": listing()}))
        else:
            reports.summary.show_sets()
        return
    if as_json:
        raise click.UsageError(
            Message("--json is for the list of data sets: leave {recipe} out, or read its scores.json", recipe=recipe)
        )
    pipeline = pipeline_of(recipe, **common)
    task_stages = {name.removeprefix(TASK): stage for name, stage in pipeline.recipe.stages.items() if is_task(name)}
    if missing := [name for name in names if name not in task_stages]:
        raise SettingsError(
            "{recipe}: has no section [{task}{missing}], only {known}: add it",
            recipe=recipe,
            task=TASK,
            missing=missing[0],
            known=", ".join(task_stages) or "none",
        )
    if not task_stages:
        raise SettingsError("{recipe}: has no section [{task}NAME]: add one", recipe=recipe, task=TASK)
    stages = [stage for name, stage in task_stages.items() if name in names or not names]
    run_stages(pipeline, stages, rebuild, dry_run)
    if not dry_run and not is_secondary_rank():
        reports.summary.show(pipeline, [stage.name for stage in stages])


@click.command()
@options.recipe
@click.option("--verify", is_flag=True, help="Verify the hash of every file of every artifact.")
@options.as_json
@options.place
def status(recipe: str, verify: bool, as_json: bool, **common: Unpack[PipelineOptions]) -> None:
    """Show the state of each stage, the reason, and the next action.

    States are fresh, stale, partial (interrupted) and absent.
    """
    pipeline = pipeline_of(recipe, **common)
    statuses = list(pipeline.statuses(verify=verify))
    if as_json:
        click.echo(inference.lines.as_json({"folder": str(pipeline.folder), "stages": list(map(asdict, statuses))}))
    else:
        reports.summary.show_status(pipeline, statuses)


@click.command()
@options.recipe
@options.place
def report(recipe: str, **common: Unpack[PipelineOptions]) -> None:
    """Regenerate the HTML reports of RECIPE. Nothing becomes stale."""
    pipeline = pipeline_of(recipe, **common)
    broken: list[KorbertError] = []
    names = [stage.name for stage in pipeline.stages()]
    for artifact in filter(Path.is_dir, map(pipeline.artifact, names)):
        try:
            say(reports.render(artifact))
        except KorbertError as error:
            broken.append(error)
    say(reports.index(pipeline.folder, names))
    # The last error is raised, so that it sets the exit code; the others are reported first.
    for failure in broken[:-1]:
        say(f"korbert: {in_one_line(str(failure))}", err=True)
    if broken:
        raise broken[-1]


@click.command()
@click.argument("name", type=options.Output())
@click.option("--all", "every_key", is_flag=True, help="Include every key, with its unit and default.")
@click.option("--from", "begin", default="", show_default=False, metavar="MODEL",
              help="Continue this pretrained model on your text.")  # fmt: skip
def new(name: Path, every_key: bool, begin: str) -> None:
    """Create NAME.toml, a recipe to start from."""
    path = name if name.suffix == ".toml" else Path(f"{name}.toml")
    recipes.files.check_name(path)
    check_output(path)
    write = recipes.template.full_recipe if every_key else recipes.template.short_recipe
    write_bytes_atomically(path, write(begin, path.parent).encode())
    say(Message("{path}: name your files in it, then `korbert run {path}`", path=path))


@click.command()
@options.recipe
@click.option(
    "--seconds", type=click.IntRange(0, 3_600), default=30,
    help="About the length of the trial run; 0: no trial.",
)  # fmt: skip
@click.option("--hours", type=options.FloatRange(max=1e6), metavar="H",
              help="Also print how many steps fit into H hours, as --set options.")  # fmt: skip
@options.as_json
@options.device
@options.place
def plan(recipe: str, seconds: int, hours: float | None, as_json: bool, **common: Unpack[PipelineOptions]) -> None:
    """Estimate the cost of pretraining RECIPE.

    Prints parameters, FLOPs, memory and rows, and times twenty steps to estimate the duration. Without shards, rows are
    assumed full, and the trial uses made-up ids.

    \b
    Example:
      korbert plan base --seconds 0 --set vocab.size=30522
    """
    planned = planning.plan.plan(pipeline_of(recipe, **common), seconds, hours)
    if as_json:
        click.echo(inference.lines.as_json(planning.tables.as_json(planned)))
        return
    for line in planning.tables.lines(planned):
        say(line)


COMMANDS = [run, *map(_stage_command, STAGES.values()), tasks, status, report, new, plan]
