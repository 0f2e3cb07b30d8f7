"""Options shared by several commands. The help of a command names those that all have in one line."""

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

__all__ = [
    "ACCEPT",
    "Command",
    "accept_kiwi",
    "anomaly",
    "corpus",
    "debug",
    "device",
    "place",
    "row_workers",
    "sharding",
    "show_progress",
    "together",
    "work",
    "workers",
]

ACCEPT = "KORBERT_ACCEPT_KIWI"  # as in korbert.tokenization.folder, which costs more to import than `--help` may

_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
_EVERYWHERE = ("root", "data", "accept_kiwi", "debug")  # of commands on a recipe: explained by `korbert run --help`


class Command(click.Command):
    """A command on a recipe. Its help lists its own options; those of all such commands are named in one line."""

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        own = [one for one in self.get_params(context) if isinstance(one, click.Option) and one.name not in _EVERYWHERE]
        records = [record for one in own if (record := one.get_help_record(context)) is not None]
        with formatter.section("Options"):
            formatter.write_dl(records)
        names = ", ".join(f"--{name.replace('_', '-')}" for name in _EVERYWHERE)
        formatter.write_paragraph()
        formatter.write_text(f"Options of all commands on a recipe ({names}): see `korbert run --help`.")


def _accept(context: click.Context, parameter: click.Parameter, accepted: bool) -> None:
    if accepted:
        os.environ[ACCEPT] = "1"  # worker processes have to know, too


def together(*options: _Decorator) -> _Decorator:
    """Several options as one."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


accept_kiwi = click.option(
    "--accept-kiwi", is_flag=True, expose_value=False, callback=_accept, envvar=None,
    help="Allow another Kiwi than the tokenizer was made with; what is saved then records it.",
)  # fmt: skip
debug = click.option("--debug", is_flag=True, help="Show the traceback of an error.")
device = click.option(
    "--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", show_default=True, help="Device to run on."
)
sharding = click.option(
    "--sharding", type=click.Choice(["ddp", "fsdp"]), default="ddp", show_default=True,
    help="Of pretrain under torchrun: each process holds the whole model, or a shard.",
)  # fmt: skip
anomaly = click.option(
    "--anomaly", is_flag=True, help="Check each output and gradient of the first 20 steps of a training; slow."
)
workers = click.option("--workers", type=click.IntRange(min=1), help="Processes, or threads of Kiwi.  [default: cores]")
row_workers = click.option(
    "--row-workers", type=click.IntRange(min=0),
    help="Processes of this machine that make the rows of pretrain, divided among its ranks; 0: a thread.  "
    "[default: 0 on a processor, up to 4 beside each GPU]",
)  # fmt: skip

place = together(
    click.option("--root", type=click.Path(path_type=Path), default=Path("artifacts"), show_default=True,
                 help="Folder of all artifacts."),
    click.option("--data", type=click.Path(path_type=Path), envvar="KORBERT_DATA", show_envvar=True,
                 help="Folder that the recipe's paths are relative to.  [default: the recipe's folder]"),
    click.option("--set", "changes", multiple=True, metavar="KEY=VALUE",
                 help="Override a value of the recipe, as in vocab.size=32000; repeatable."),
    accept_kiwi,
    debug,
)  # fmt: skip
corpus = together(
    workers,
    click.option("--runner", type=click.Choice(["native", "ray"]), default="native", show_default=True,
                 help="Run the parts of the corpus stages on this machine, or on a Ray cluster."),
    click.option("--address", help="Ray cluster address.  [default: RAY_ADDRESS, or a cluster started here]"),
)  # fmt: skip
work = together(
    click.option("--rebuild", is_flag=True, help="Make artifacts anew, even fresh ones."),
    click.option("--dry-run", is_flag=True, help="Only show what would be done."),
)


def show_progress() -> None:
    """Progress goes to the log where standard error is no terminal."""
    logging.basicConfig(format="%(message)s", stream=sys.stderr)
    logging.getLogger("korbert.progress").setLevel(logging.INFO)
