"""Commands that carry a recipe out, and show how far it has come."""

import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click
from click.core import ParameterSource

from korbert.errors import KorbertError, SettingsError
from pipelines.commands import options

if TYPE_CHECKING:
    from pipelines.runner import Chain

__all__ = ["COMMANDS"]

_MAX_WORKERS_A_CORE = 32  # processes of half a gigabyte each: more is a slip of the finger


class _Stage(NamedTuple):
    """What the help of a stage's command says. options: those that not every command on a recipe has."""

    summary: str
    reads: str
    writes: str
    example: str
    options: tuple[Callable[[Callable[..., Any]], Callable[..., Any]], ...]

    @property
    def help(self) -> str:
        return f"{self.summary}\n\nReads {self.reads}.\n\nWrites {self.writes}.\n\n\b\nExample:\n  {self.example}"


_PREVIEW = click.option("--preview", type=click.IntRange(min=1), metavar="N", help="Preview cleaning on about N rows.")
_STAGES = {
    "clean": _Stage(
        "Raw files -> documents worth learning from.",
        "the files of [[clean.sources]] and [[clean.evaluation]]; filters, masks and duplicates are set in [clean]",
        "documents/, and dropped/ with the reason of each",
        "korbert clean mine.toml --preview 300",
        (options.corpus, _PREVIEW),
    ),
    "analyze": _Stage(
        "Documents -> sentences and morphemes (Kiwi).",
        "the documents of clean, and the user dictionary of [analyze]",
        "morphemes/: form, tag, span, sentence and eojeol of each",
        "korbert analyze mine.toml --workers 8",
        (options.corpus,),
    ),
    "vocab": _Stage(
        "Morphemes -> vocabulary and tokenizer.",
        "the morphemes of analyze; the size is vocab.size",
        "tokenizer/, counts.parquet and coverage.json",
        "korbert vocab mine.toml --set vocab.size=16000",
        (options.corpus,),
    ),
    "shard": _Stage(
        "Morphemes -> ids in memory-mapped shards.",
        "the morphemes of analyze and the tokenizer of vocab",
        "train/*.arrow and heldout/*.arrow",
        "korbert shard mine.toml",
        (options.corpus,),
    ),
    "pretrain": _Stage(
        "Shards -> a model that has learned to fill gaps.",
        "the shards and the tokenizer; encoder, phases, masking and optimizer are set in [pretrain]",
        "model/, metrics.jsonl and scores.json",
        "korbert pretrain mine.toml --set pretrain.phases.0.steps=500",
        (options.workers, options.device),
    ),
    "nsmc": _Stage(
        "Fine-tune and score on NSMC (movie reviews).",
        "the pretrained model, and the files of [nsmc]",
        "model/, scores.json with baselines, and predictions.parquet",
        "korbert nsmc mine.toml --data ~/data",
        (options.workers, options.device),
    ),
    "korquad": _Stage(
        "Fine-tune and score on KorQuAD (reading comprehension).",
        "the pretrained model, and the files of [korquad]",
        "model/, predictions.json, scores.json, and submission/, a folder to hand in",
        "korbert korquad mine.toml --data ~/data",
        (options.workers, options.device),
    ),
}


def _chain(recipe: str, root: Path, data: Path | None, changes: tuple[str, ...], debug: bool,
           workers: int | None = None, runner: Literal["native", "ray"] = "native", address: str | None = None,
           device: str = "auto") -> "Chain":  # fmt: skip
    from pipelines import recipes
    from pipelines.runner import Chain
    from pipelines.runtime import Runtime

    level = logging.DEBUG if debug else logging.INFO
    logging.basicConfig(level=level, format="%(message)s", stream=sys.stderr)
    for noisy in ("matplotlib", "fsspec", "urllib3", "datasets", "filelock"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    loaded = recipes.load(recipe, changes)
    folder = data or recipes.find(recipe).parent
    number = {"workers": workers} if workers else {}
    if address is not None and runner != "ray":
        raise click.UsageError("--address is of a Ray cluster: add --runner ray")
    if runner == "native" and (workers or 0) > _MAX_WORKERS_A_CORE * (os.cpu_count() or 1):
        raise click.UsageError(f"--workers {workers}: this machine has {os.cpu_count()} cores: name fewer")
    try:
        folder = folder.resolve()
    except (OSError, RuntimeError) as error:  # a loop of links
        raise SettingsError(f"{folder}: cannot be followed ({error}): name another folder with --data") from error
    given = _as_typed(root=[str(root)], data=[str(data)], changes=changes)
    runtime = Runtime(root=root, data=folder, runner=runner, address=address, device=device, debug=debug,
                      given=given, **number)  # fmt: skip
    return Chain(loaded, runtime)


def _as_typed(**given: Sequence[str]) -> tuple[str, ...]:
    """Those of the options that stand on the command line, to be repeated in another one."""
    context = click.get_current_context()
    names = {"changes": "--set"}
    return tuple(
        word
        for name, values in given.items()
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        for value in values
        for word in (names.get(name, f"--{name}"), value)
    )


def _carry_out(chain: "Chain", first: str | None, last: str | None, rebuild: bool, dry_run: bool) -> None:
    specs = chain.specs(first, last)
    if dry_run:
        _show_plan(chain, [spec.name for spec in specs], rebuild)
        return
    if specs:
        chain.require_fresh_before(specs[0])
        chain.require_sources(specs)
    anew = chain.to_rebuild(specs) if rebuild else frozenset()
    for spec in specs:
        chain.run(spec, rebuild=spec.name in anew)


def _show_plan(chain: "Chain", names: Sequence[str], rebuild: bool) -> None:
    """What `status` shows, of those stages; a source file that is missing is said now, not when its turn comes."""
    from pipelines.summary import show_status

    statuses = [status for status in chain.statuses(rebuild=names if rebuild else ()) if status.stage in names]
    for status in statuses:
        if status.state in ("absent", "partial"):
            chain.sources(status.stage)
    show_status(chain, statuses)


@click.command()
@click.argument("recipe")
@click.option("--from", "first", type=click.Choice(list(_STAGES)), help="First stage; those before must be fresh.")
@click.option("--to", "last", type=click.Choice(list(_STAGES)), help="Last stage.")
@options.work
@options.corpus
@options.device
@options.place
def run(recipe: str, first: str | None, last: str | None, rebuild: bool, dry_run: bool, **common: Any) -> None:
    """Run the stages of RECIPE in order.

    Fresh artifacts are skipped, interrupted ones resumed, drifted ones refused.

    \b
    Example:
      korbert run mine.toml --from vocab --to pretrain
    """
    chain = _chain(recipe, **common)
    _carry_out(chain, first, last, rebuild, dry_run)
    if not dry_run:
        from pipelines.summary import show

        show(chain)


def _stage_command(name: str, stage: _Stage) -> click.Command:
    def command(recipe: str, rebuild: bool, dry_run: bool, preview: int | None = None, **common: Any) -> None:
        chain = _chain(recipe, **common)
        if chain.recipe.section(name) is None:
            raise SettingsError(f"{recipe}: has no section [{name}]: add one")
        if preview is None:
            _carry_out(chain, name, name, rebuild, dry_run)
        else:
            _preview(chain, preview)

    decorated: Callable[..., Any] = options.place(command)
    for option in reversed((options.work, *stage.options)):
        decorated = option(decorated)
    made = click.command(name, cls=options.Command, help=stage.help, short_help=stage.summary)
    return made(click.argument("recipe")(decorated))


def _preview(chain: "Chain", count: int) -> None:
    from corpus.cleaning.preview import preview
    from pipelines.previewing import print_preview, write_page
    from pipelines.reports import index

    found = preview(chain.recipe.clean, chain.sources("clean"), count)
    page = chain.folder / "preview.html"
    write_page(page, chain.recipe.name, found)
    index(chain.folder, [spec.name for spec in chain.specs()])
    print_preview(found)
    click.echo(f"page: {page}")


@click.command(cls=options.Command)
@click.argument("recipe")
@click.option("--verify", is_flag=True, help="Hash every file of every artifact.")
@options.place
def status(recipe: str, verify: bool, **common: Any) -> None:
    """Show what is fresh, stale, partial or absent, and what a run would do."""
    from pipelines.summary import show_status

    chain = _chain(recipe, **common)
    show_status(chain, chain.statuses(verify=verify))


@click.command(cls=options.Command)
@click.argument("recipe")
@options.place
def report(recipe: str, **common: Any) -> None:
    """Write the pages of RECIPE's artifacts anew. Makes nothing stale."""
    from pipelines.reports import index, render

    chain = _chain(recipe, **common)
    broken: list[KorbertError] = []
    for spec in chain.specs():
        if chain.artifact(spec.name).is_dir():
            try:
                click.echo(render(chain.artifact(spec.name)))
            except KorbertError as error:
                broken.append(error)
    click.echo(index(chain.folder, [spec.name for spec in chain.specs()]))
    for one in broken[:-1]:
        click.echo(f"korbert: {one}", err=True)
    if broken:
        raise broken[-1]


@click.command()
@click.argument("name")
def new(name: str) -> None:
    """Write NAME.toml, a recipe with comments."""
    from korbert.durable import check_output, write_whole
    from pipelines.recipes import SHIPPED, check_name

    path = Path(name if name.endswith(".toml") else f"{name}.toml")
    check_name(path)
    check_output(path)
    if path.exists():
        raise SettingsError(f"{path}: is there already: choose another name")
    write_whole(path, (SHIPPED / "template" / "recipe.toml").read_bytes())
    click.echo(f"{path}: name your files in it, then `korbert run {path}`")


COMMANDS = [run, *(_stage_command(name, stage) for name, stage in _STAGES.items()), status, report, new]
