"""Options that several commands have."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

__all__ = ["ACCEPT", "accept_kiwi", "common", "debug", "device", "work"]

ACCEPT = "KORBERT_ACCEPT_KIWI"  # as in korbert.tokenization.folder, which costs more to import than `--help` may


def _accept(context: click.Context, parameter: click.Parameter, accepted: bool) -> None:
    if accepted:
        os.environ[ACCEPT] = "1"  # worker processes have to know, too


accept_kiwi = click.option(
    "--accept-kiwi", is_flag=True, expose_value=False, callback=_accept, envvar=None,
    help="Use a tokenizer with another Kiwi than it was made with; what is saved then says so.",
)  # fmt: skip


device = click.option(
    "--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", show_default=True, help="What computes."
)
debug = click.option("--debug", is_flag=True, help="Show the trace of an error.")


def common(function: Callable[..., Any]) -> Callable[..., Any]:
    options = (
        click.option("--root", type=click.Path(path_type=Path), default=Path("artifacts"), show_default=True,
                     help="Folder of all artifacts."),
        click.option("--data", type=click.Path(path_type=Path), envvar="KORBERT_DATA", show_envvar=True,
                     help="Folder that the recipe's paths are relative to.  [default: the recipe's folder]"),
        click.option("--workers", type=click.IntRange(min=1), help="Processes of the corpus stages.  [default: cores]"),
        click.option("--runner", type=click.Choice(["native", "ray"]), default="native", show_default=True,
                     help="Where those are: on this machine, or on a Ray cluster."),
        click.option("--address", help="Of the Ray cluster.  [default: RAY_ADDRESS, or one that is started here]"),
        device,
        click.option("--set", "changes", multiple=True, metavar="KEY=VALUE",
                     help="Change the recipe, as in vocab.size=32000; may be repeated."),
        accept_kiwi,
        debug,
    )  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


def work(function: Callable[..., Any]) -> Callable[..., Any]:
    options = (
        click.option("--rebuild", is_flag=True, help="Make the artifacts from --from to --to anew."),
        click.option("--dry-run", is_flag=True, help="Say what would be done."),
    )
    for option in reversed(options):
        function = option(function)
    return common(function)
