"""Commands that carry a recipe out, and show how far it has come."""

import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from click.core import ParameterSource

from korbert.errors import SettingsError
from pipelines.commands import options

if TYPE_CHECKING:
    from pipelines.runner import Chain

__all__ = ["COMMANDS"]

_STAGES = {
    "clean": "Raw files -> documents worth learning from.",
    "analyze": "Documents -> sentences and morphemes (Kiwi).",
    "vocab": "Morphemes -> vocabulary and tokenizer.",
    "shard": "Morphemes -> ids in memory-mapped shards.",
    "pretrain": "Shards -> a model that has learned to fill gaps.",
    "nsmc": "Fine-tune and score on NSMC (movie reviews).",
    "korquad": "Fine-tune and score on KorQuAD (reading comprehension).",
}


def _chain(recipe: str, root: Path, data: Path | None, workers: int | None, runner: Literal["native", "ray"],
           address: str | None, device: str, changes: tuple[str, ...], debug: bool) -> "Chain":  # fmt: skip
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
    given = _as_typed(root=[str(root)], data=[str(data)], changes=changes)
    runtime = Runtime(root=root, data=folder.resolve(), runner=runner, address=address, device=device, debug=debug,
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
        for spec in specs:
            click.echo(f"{spec.name:<9} {chain.describe(spec, rebuild=rebuild)}")
        return
    if specs:
        chain.require_fresh_before(specs[0])
        chain.require_sources(specs)
    anew = chain.to_rebuild(specs) if rebuild else frozenset()
    for spec in specs:
        chain.run(spec, rebuild=spec.name in anew)


@click.command()
@click.argument("recipe")
@click.option("--from", "first", type=click.Choice(list(_STAGES)), help="First stage; those before must be fresh.")
@click.option("--to", "last", type=click.Choice(list(_STAGES)), help="Last stage.")
@options.work
def run(recipe: str, first: str | None, last: str | None, rebuild: bool, dry_run: bool, **common: Any) -> None:
    """Run the stages of RECIPE in order.

    Fresh artifacts are skipped, cut-off ones resumed, drifted ones refused.
    """
    chain = _chain(recipe, **common)
    _carry_out(chain, first, last, rebuild, dry_run)
    if not dry_run:
        from pipelines.summary import show

        show(chain)


def _stage_command(name: str, text: str) -> click.Command:
    @click.argument("recipe")
    @options.work
    def command(recipe: str, rebuild: bool, dry_run: bool, preview: int | None = None, **common: Any) -> None:
        chain = _chain(recipe, **common)
        if chain.recipe.section(name) is None:
            raise SettingsError(f"{recipe}: has no section [{name}]: add one")
        if preview is None:
            _carry_out(chain, name, name, rebuild, dry_run)
        else:
            _preview(chain, preview)

    if name == "clean":
        option = click.option("--preview", type=click.IntRange(min=1), metavar="N",
                              help="Show instead what would become of about N rows.")  # fmt: skip
        command = option(command)
    return click.command(name, help=text)(command)


def _preview(chain: "Chain", count: int) -> None:
    from corpus.preview import preview
    from pipelines.previewing import print_preview, write_page

    found = preview(chain.recipe.clean, chain.sources("clean"), count)
    page = chain.folder / "preview.html"
    write_page(page, chain.recipe.name, found)
    print_preview(found)
    click.echo(f"page: {page}")


@click.command()
@click.argument("recipe")
@click.option("--verify", is_flag=True, help="Hash every file of every artifact.")
@options.common
def status(recipe: str, verify: bool, **common: Any) -> None:
    """Show what is fresh, stale, partial or absent."""
    from pipelines.summary import show_status

    show_status(_chain(recipe, **common), verify=verify)


@click.command()
@click.argument("recipe")
@options.common
def report(recipe: str, **common: Any) -> None:
    """Write the pages of RECIPE's artifacts anew. Makes nothing stale."""
    from pipelines.reports import index, render

    chain = _chain(recipe, **common)
    for spec in chain.specs():
        if chain.artifact(spec.name).is_dir():
            click.echo(render(chain.artifact(spec.name)))
    click.echo(index(chain.folder))


@click.command()
@click.argument("name")
def new(name: str) -> None:
    """Write NAME.toml, a recipe with comments."""
    from pipelines.recipes import SHIPPED

    path = Path(name if name.endswith(".toml") else f"{name}.toml")
    if path.exists():
        raise SettingsError(f"{path}: is there already: choose another name")
    path.write_text((SHIPPED / "template" / "recipe.toml").read_text(encoding="utf-8"), encoding="utf-8")
    click.echo(f"{path}: name your files in it, then `korbert run {path}`")


COMMANDS = [run, *(_stage_command(name, text) for name, text in _STAGES.items()), status, report, new]
