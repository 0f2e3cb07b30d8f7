"""The `korbert` command. It prints what went wrong in one line and leaves with 2 (misuse, refusal, drift), 1 or 130."""

import errno
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import click
from click.core import ParameterSource

from korbert import __version__
from korbert.errors import KorbertError, ModelError, SettingsError

if TYPE_CHECKING:
    from pipelines.runner import Chain

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
ACCEPT = "KORBERT_ACCEPT_KIWI"  # as in korbert.tokenization.folder, which costs more to import than `--help` may
STAGE_NAMES = ("clean", "analyze", "vocab", "shard", "pretrain", "nsmc", "korquad")


def main() -> NoReturn:
    """Entry point of the console script."""
    sys.exit(run_command(sys.argv[1:]))


def run_command(arguments: list[str]) -> int:
    """Runs one command line; returns the exit code."""
    debug = "--debug" in arguments
    try:
        cli.main(arguments, prog_name="korbert", standalone_mode=False)
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("korbert: interrupted: nothing finished is lost; the same command goes on from here", err=True)
        return 130
    except BrokenPipeError:
        return _leave_pipe()
    except KorbertError as error:
        if debug:
            raise
        click.echo(f"korbert: {error}", err=True)
        return error.exit_code
    except OSError as error:
        if debug:
            raise
        click.echo(f"korbert: {_os_error(error)}", err=True)
        return 1
    except Exception as error:
        if debug:
            raise
        said = " ".join(str(error).split())
        click.echo(f"korbert: {type(error).__name__}: {said}: the same command with --debug shows where", err=True)
        return 1
    return 0


def _leave_pipe() -> int:
    sys.stderr.close()  # keeps Python from complaining about standard output at exit
    return 1


def _os_error(error: OSError) -> str:
    place = error.filename or "the disk"
    if error.errno in _FULL:
        said = error.strerror or os.strerror(error.errno)
        return f"{place}: {said}: make room, then run the same command: it goes on behind what is finished"
    return f"{place}: {error.strerror or error}"


def _accept(context: click.Context, parameter: click.Parameter, accepted: bool) -> None:
    if accepted:
        os.environ[ACCEPT] = "1"  # worker processes have to know, too


_accept_kiwi = click.option(
    "--accept-kiwi", is_flag=True, expose_value=False, callback=_accept, envvar=None,
    help="Use a tokenizer with another Kiwi than it was made with; what is saved then says so.",
)  # fmt: skip


_device = click.option(
    "--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", show_default=True, help="What computes."
)
_debug = click.option("--debug", is_flag=True, help="Show the trace of an error.")


def _common(function: Callable[..., Any]) -> Callable[..., Any]:
    options = (
        click.option("--root", type=click.Path(path_type=Path), default=Path("artifacts"), show_default=True,
                     help="Folder of all artifacts."),
        click.option("--data", type=click.Path(path_type=Path), envvar="KORBERT_DATA", show_envvar=True,
                     help="Folder that the recipe's paths are relative to.  [default: the recipe's folder]"),
        click.option("--workers", type=click.IntRange(min=1), help="Processes of the corpus stages.  [default: cores]"),
        click.option("--runner", type=click.Choice(["native", "ray"]), default="native", show_default=True,
                     help="Where those are: on this machine, or on a Ray cluster."),
        click.option("--address", help="Of the Ray cluster.  [default: RAY_ADDRESS, or one that is started here]"),
        _device,
        click.option("--set", "changes", multiple=True, metavar="KEY=VALUE",
                     help="Change the recipe, as in vocab.size=32000; may be repeated."),
        _accept_kiwi,
        _debug,
    )  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


def _work(function: Callable[..., Any]) -> Callable[..., Any]:
    options = (
        click.option("--rebuild", is_flag=True, help="Make the artifacts from --from to --to anew."),
        click.option("--dry-run", is_flag=True, help="Say what would be done."),
    )
    for option in reversed(options):
        function = option(function)
    return _common(function)


class _InOrder(click.Group):
    """Lists its commands in the order in which people meet them."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=_InOrder, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="korbert")
def cli() -> None:
    """Korean BERT with morpheme tokenization, from raw text to NSMC and KorQuAD.

    RECIPE is a TOML file, or the name of a shipped one (demo, small). `korbert run demo` is the place to start.
    """


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


def _as_typed(**options: Sequence[str]) -> tuple[str, ...]:
    """Those of the options that stand on the command line, to be repeated in another one."""
    context = click.get_current_context()
    names = {"changes": "--set"}
    return tuple(
        word
        for name, values in options.items()
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


@cli.command()
@click.argument("recipe")
@click.option("--from", "first", type=click.Choice(STAGE_NAMES), help="First stage; those before must be fresh.")
@click.option("--to", "last", type=click.Choice(STAGE_NAMES), help="Last stage.")
@_work
def run(recipe: str, first: str | None, last: str | None, rebuild: bool, dry_run: bool, **common: Any) -> None:
    """Run the stages of RECIPE in order.

    Fresh artifacts are skipped, cut-off ones resumed, drifted ones refused.
    """
    chain = _chain(recipe, **common)
    _carry_out(chain, first, last, rebuild, dry_run)
    if not dry_run:
        from pipelines.summary import show

        show(chain)


def _stage_command(name: str, text: str) -> None:
    @click.argument("recipe")
    @_work
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
    cli.command(name, help=text)(command)


def _preview(chain: "Chain", count: int) -> None:
    from corpus.preview import preview
    from pipelines.previewing import print_preview, write_page

    found = preview(chain.recipe.clean, chain.sources("clean"), count)
    page = chain.folder / "preview.html"
    write_page(page, chain.recipe.name, found)
    print_preview(found)
    click.echo(f"page: {page}")


for _name, _text in zip(
    STAGE_NAMES,
    (
        "Raw files -> documents worth learning from.",
        "Documents -> sentences and morphemes (Kiwi).",
        "Morphemes -> vocabulary and tokenizer.",
        "Morphemes -> ids in memory-mapped shards.",
        "Shards -> a model that has learned to fill gaps.",
        "Fine-tune and score on NSMC (movie reviews).",
        "Fine-tune and score on KorQuAD (reading comprehension).",
    ),
    strict=True,
):
    _stage_command(_name, _text)


@cli.command()
@click.argument("recipe")
@click.option("--verify", is_flag=True, help="Hash every file of every artifact.")
@_common
def status(recipe: str, verify: bool, **common: Any) -> None:
    """Show what is fresh, stale, partial or absent."""
    from pipelines.summary import show_status

    show_status(_chain(recipe, **common), verify=verify)


@cli.command()
@click.argument("recipe")
@_common
def report(recipe: str, **common: Any) -> None:
    """Write the pages of RECIPE's artifacts anew. Makes nothing stale."""
    from pipelines.reports import index, render

    chain = _chain(recipe, **common)
    for spec in chain.specs():
        if chain.artifact(spec.name).is_dir():
            click.echo(render(chain.artifact(spec.name)))
    click.echo(index(chain.folder))


@cli.command()
@click.argument("name")
def new(name: str) -> None:
    """Write NAME.toml, a recipe with comments."""
    from pipelines.recipes import SHIPPED

    path = Path(name if name.endswith(".toml") else f"{name}.toml")
    if path.exists():
        raise SettingsError(f"{path}: is there already: choose another name")
    path.write_text((SHIPPED / "template" / "recipe.toml").read_text(encoding="utf-8"), encoding="utf-8")
    click.echo(f"{path}: name your files in it, then `korbert run {path}`")


_MODEL = click.argument("model", type=click.Path(path_type=Path))
_FILE = click.Path(path_type=Path)


@cli.command()
@_MODEL
@click.argument("input", type=_FILE)
@click.argument("output", type=_FILE)
@_device
@_accept_kiwi
@_debug
def submit(model: Path, input: Path, output: Path, device: str, debug: bool) -> None:
    """Answer a KorQuAD file.

    INPUT is KorQuAD's JSON, OUTPUT becomes {id: answer} with every id. MODEL is model/ of a korquad artifact.
    """
    from pipelines.submission import submit as answer

    click.echo(f"{answer(model, input, output, device=device):,} answers in {output}", err=True)


@cli.command()
@click.argument("dataset", type=_FILE)
@click.argument("predictions", type=_FILE)
@_debug
def score(dataset: Path, predictions: Path, debug: bool) -> None:
    """Print the official exact match and F1 of PREDICTIONS on DATASET."""
    import json

    from pipelines.submission import score as official

    click.echo(json.dumps(official(dataset, predictions)))


@cli.command()
@click.argument("tokenizer", type=_FILE)
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@click.option("--input", type=click.File("rb"), help="A file of texts, one a line; - is standard input.")
@click.option("--json", "as_json", is_flag=True, help="A JSON line for each text.")
@click.option("--html", type=_FILE, help="Write a page instead, the pieces below their characters.")
@click.option("--special-tokens", is_flag=True, help="[MASK] and the like in a text are what they stand for.")
@click.option("--check", is_flag=True, help="Say instead how many pieces the installed Kiwi would change.")
@_accept_kiwi
@_debug
def tokenize(
    tokenizer: Path,
    texts: tuple[str, ...],
    input: Any,
    as_json: bool,
    html: Path | None,
    special_tokens: bool,
    check: bool,
    debug: bool,
) -> None:
    """Show TEXT as pieces: id, span, characters, tag, eojeol.

    TOKENIZER is a tokenizer's folder or a model's. Without TEXT, lines of --input or of standard input.
    """
    from korbert.tokenization import Tokenizer
    from pipelines import tokenizing
    from pipelines.predicting import decoded

    if check:
        folder = tokenizing.tokenizer_folder(tokenizer)
        click.echo(tokenizing.describe_change(Tokenizer.load(folder, accept_kiwi=True)))
        return
    loaded = Tokenizer.load(tokenizing.tokenizer_folder(tokenizer))
    lines = input or sys.stdin.buffer
    source = texts or decoded(lines, lines.name)
    if html:
        number = tokenizing.write_page(html, loaded, source, special_tokens=special_tokens)
        click.echo(f"{html}: {number:,} texts", err=True)
        return
    for text in source:
        found = loaded.encode_pieces(text, special_tokens=special_tokens)
        if as_json:
            click.echo(tokenizing.as_json(text, found))
        else:
            tokenizing.print_table(text, found)


@cli.command()
@click.argument("tokenizer", type=_FILE)
@click.argument("dataset", type=_FILE)
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True, help="Threads of Kiwi.")
@click.option("--all", "everything", type=_FILE, help="Write every answer that is missed to this JSON file.")
@_accept_kiwi
@_debug
def oracle(tokenizer: Path, dataset: Path, workers: int, everything: Path | None, debug: bool) -> None:
    """Say how well any model could score with TOKENIZER.

    DATASET is a KorQuAD file with answers; TOKENIZER is tokenizer/ of a vocab artifact or of a model. `pieces` is the
    best that a first and a last piece can give, `characters` what cuts inside them add.
    """
    from korbert.tasks import korquad
    from korbert.tasks.korquad_oracle import oracle as measure
    from korbert.tokenization import Tokenizer
    from pipelines.summary import show_oracle

    found = measure(korquad.read(dataset), Tokenizer.load(tokenizer), workers=workers)
    show_oracle(found)
    if everything:
        korquad.write_json(everything, found)


@cli.command()
@_MODEL
@click.argument("input", type=click.File("rb"), default="-")
@_device
@_accept_kiwi
@_debug
def predict(model: Path, input: Any, device: str, debug: bool) -> None:
    """Lines of INPUT (default: standard input) to JSON lines.

    A classifier takes a text a line and gives label and probabilities. A KorQuAD model takes lines of
    {"context": .., "question": ..} and gives answer, span and score.
    """
    import json

    import korbert
    from pipelines.predicting import predict_lines

    for result in predict_lines(korbert.load(model, device=device), input, input.name):
        click.echo(json.dumps(result, ensure_ascii=False))


@cli.command()
@_MODEL
@click.argument("text")
@click.option("--top", type=click.IntRange(min=1), default=5, show_default=True, help="Candidates for each gap.")
@_device
@_accept_kiwi
@_debug
def fill(model: Path, text: str, top: int, device: str, debug: bool) -> None:
    """Fill each [MASK] in TEXT with its likeliest pieces.

    MODEL is model/ of a pretrain artifact, such as artifacts/demo/pretrain/model.
    """
    import korbert
    from korbert.tasks.filling import Filler

    loaded = korbert.load(model, device=device)
    if not isinstance(loaded, Filler):
        raise ModelError(f"{model}: has learned a task and fills no gaps any more: give model/ of a pretrain artifact")
    for number, candidates in enumerate(loaded.fill(text, top=top), 1):
        for candidate in candidates:
            click.echo(f"{number}  {candidate.probability:.4f}  {candidate.piece}")


@cli.command()
@_MODEL
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--check", is_flag=True, help="Load it with transformers and compare the logits.")
@_accept_kiwi
@_debug
def export(model: Path, folder: Path, check: bool, debug: bool) -> None:
    """Write MODEL for Hugging Face's Auto classes.

    MODEL is model/ of any artifact that has one; FOLDER is made.
    """
    from korbert.huggingface import export as write

    for name, difference in write(model, folder, check=check).items():
        click.echo(f"{name}: largest difference {difference:.2e}")
    click.echo(folder)
