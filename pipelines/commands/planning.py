"""The command that estimates the cost of a recipe: plan."""

import json
from typing import Any

import click

from korbert.terminal import say
from pipelines import planning
from pipelines.commands import options
from pipelines.commands.stages import pipeline_of


@click.command(cls=options.Command)
@click.argument("recipe")
@click.option(
    "--seconds", type=click.IntRange(0, 3_600), default=30, show_default=True,
    help="About the length of the trial run; 0: no trial.",
)  # fmt: skip
@click.option(
    "--hours",
    type=click.FloatRange(max=1e6),
    metavar="H",
    help="Also print how many steps fit into H hours, as --set options.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@options.device
@options.place
def plan(recipe: str, seconds: int, hours: float | None, as_json: bool, **common: Any) -> None:
    """Estimate the cost of pretraining RECIPE.

    Prints parameters, FLOPs, memory and rows, and times twenty steps to estimate the duration. Without shards, rows are
    assumed full, and the trial uses made-up ids.

    \b
    Example:
      korbert plan base --seconds 0 --set vocab.size=30522
    """
    pipeline = pipeline_of(recipe, **common)
    planned = planning.plan.plan(pipeline, seconds, hours)
    if as_json:
        click.echo(json.dumps(planning.tables.as_json(planned), ensure_ascii=False, allow_nan=False))
        return
    for line in planning.tables.lines(planned):
        say(line)


COMMANDS = [plan]
