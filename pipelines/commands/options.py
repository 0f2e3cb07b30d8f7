"""What several commands share: options, what they give, and how faulty records are reported."""

import logging
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO, cast, get_args

import click
from click.shell_completion import CompletionItem

from korbert.errors import PartlyFailed, SettingsError
from korbert.folders import models_in_the_box
from korbert.messages import VARIABLE as LANG
from korbert.messages import Message, argument, in_language, join_messages
from korbert.names import did_you_mean, on_disk
from korbert.pipelines import inference, recipes
from korbert.records import FORMATS, FORMS, Format, Sheet
from korbert.system import JsonObject, Messages, check_folder, cores, is_secondary_rank, printable, say, shorten
from korbert.vectors import Mix, PoolingName

if TYPE_CHECKING:
    from korbert.model import Model
    from korbert.training import InferencePrecision
    from korbert.vectors import VectorArgs

ACCEPT = "KORBERT_ACCEPT_KIWI"  # as in korbert.tokenization.folder, which costs more to import than `--help` may

_MOST_WORKERS = 4_096  # half a gigabyte each: more must be a typo
_Given = str | os.PathLike[str]
_Parameter = click.Parameter | None
_Context = click.Context | None
_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def load_for_batches(model: Path, device: str, precision: "InferencePrecision") -> "Model":
    """korbert.load for batches of texts. Says on standard error if `auto` chose a precision that rounds."""
    import korbert

    chosen = korbert.load(model, device, precision)
    if precision == "auto" and chosen.precision != "fp32":
        say(
            Message(
                "korbert: {model} runs in {precision}; exact: --precision fp32", model=model, precision=chosen.precision
            ),
            err=True,
        )
    return chosen


class Failed:
    """Counts the records of a file, and reports the errors among them on standard error."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines = 0
        self.failed = 0

    def __call__(self, record: JsonObject) -> bool:
        """Counts a record, and reports its error if it has one, or that it was cut. Returns whether it has an error."""
        self.lines += 1
        if "error" in record:
            say(shorten(f"korbert: {self.name}: line {record['line']}: {record['error']}"), err=True)
            self.failed += 1
        elif record.get("cut"):
            line = Message(
                "korbert: {name}: line {line}: only its beginning was read", name=self.name, line=record["line"]
            )
            say(line, err=True)
        return "error" in record

    def end(self) -> None:
        """Raises PartlyFailed if any record had an error."""
        if self.failed:
            raise PartlyFailed(
                "{name}: {failed:,} of {lines:,} lines failed: see the messages above",
                name=self.name,
                failed=self.failed,
                lines=self.lines,
            )


@dataclass(frozen=True)
class Input:
    """What a command reads. name: for messages. file: a pipe, path or address. corpus: several files, by name."""

    name: str
    file: Any
    corpus: Mapping[str, Any] = field(default_factory=dict)


class FloatRange(click.FloatRange):
    """As that of click, which lets nan through."""

    def convert(self, value: Any, parameter: _Parameter, context: _Context) -> float:
        number: float = super().convert(value, parameter, context)
        if math.isnan(number):
            self.fail(in_language(Message("{value} is not a number", value=value)), parameter, context)
        return number


class PathType(click.Path):
    """A path that a command reads, as the file system spells it."""

    def convert(self, value: _Given, parameter: _Parameter, context: _Context) -> Path:
        return on_disk(Path(os.fsdecode(super().convert(value, parameter, context))))


class PlaceType(PathType):
    """A path, or an address that fsspec opens."""

    def convert(self, value: _Given, parameter: _Parameter, context: _Context) -> Any:
        if not isinstance(value, str) or "://" not in value:
            return super().convert(value, parameter, context)
        from fsspec import get_filesystem_class
        from upath import UPath

        try:
            place = UPath(value)
            get_filesystem_class(place.protocol)
        except (ImportError, ValueError) as error:
            raise SettingsError(
                "{value}: cannot be read ({error}): install that, or name a file here", value=value, error=error
            ) from None
        return place


class InputType(click.ParamType[Input]):
    """A file, a folder saved by `datasets`, an address, or - for standard input."""

    name = "file"

    def convert(self, value: str | Input, parameter: _Parameter, context: _Context) -> Input:
        if isinstance(value, Input):
            return value
        if value == "-":
            return Input(sys.stdin.name, sys.stdin.buffer)
        place = PlaceType().convert(value, parameter, context)
        if isinstance(place, Path) and not os.path.exists(place):  # noqa: PTH110 (as in on_disk)
            pipe = f"echo TEXT | korbert {context.info_name} .." if context else "echo TEXT |"
            near = [other.name for other in place.parent.iterdir()] if place.parent.is_dir() else []
            hints = (did_you_mean(place.name, near), Message("a text itself comes through a pipe: {pipe}", pipe=pipe))
            message = Message(
                "{path!r}: no such file or folder: {hint}", path=str(value), hint=join_messages(hints, " ")
            )
            self.fail(in_language(message), parameter, context)
        return Input(value, place)


class CorpusType(InputType):
    """What InputType takes; or a folder of files of texts, or a glob, whose files together are a corpus."""

    def convert(self, value: str | Input, parameter: _Parameter, context: _Context) -> Input:
        if isinstance(value, Input) or value == "-":
            return super().convert(value, parameter, context)
        place = on_disk(Path(value))
        corpus: Mapping[str, Any] = {}
        exists = os.path.exists(place)  # noqa: PTH110 (as in on_disk)
        if exists and place.is_dir():
            corpus = files_of(place)
        elif not exists and (matches := inference.embedding.globbed_files(value)):
            corpus = inference.embedding.with_usual_endings(matches) or matches
            _say_read(value, corpus, matches)
        return Input(value, place, corpus) if corpus else super().convert(value, parameter, context)


def files_of(folder: Path) -> dict[str, Path]:
    """The files of texts and tables below a folder, by their names. Says on standard error which files are not read."""
    files = inference.embedding.text_files(folder)
    if files:
        _say_read(folder, files, inference.embedding.visible_files(folder))
    return files


def _say_read(corpus: object, files: Mapping[str, Any], names: Iterable[str]) -> None:
    """Says how many files are read, how many of `names`, all the files there, are not, and one of the latter."""
    skipped = [name for name in names if name not in files]
    line = Message(
        "{corpus}: {count:,} file of texts or a table", "{corpus}: {count:,} files of texts and tables",
        corpus=corpus, count=len(files),
    )  # fmt: skip
    if skipped:
        unread = Message("not read: {count:,}, such as {name}", count=len(skipped), name=skipped[0])
        line = join_messages((line, unread))
    say(line, err=True)


def write_corpus(
    model: Path, make: "Callable[[Model], Any]", input: Input, output: Path | None, form: Format, *, device: str,
    precision: "InferencePrecision", workers: int | None, runner: Literal["native", "ray"], address: str | None,
) -> None:  # fmt: skip
    """Writes the results of a model for the files of an input, and says what was written.

    make: makes a processor (inference/parts.py) of the loaded model. Raises SettingsError if no output is named, or if
    it exists or lies in the folder that is read; PartlyFailed if rows have errors.
    """
    from korbert.corpus.execution.workers import Workers

    if output is None:
        raise SettingsError("{input}: is several files: name a folder for the results with --output", input=input.name)
    if address is not None and runner != "ray":
        raise click.UsageError(Message("--address names a Ray cluster: add --runner ray"))
    check_folder(output, model, input.file)
    loaded = load_for_batches(model, device, precision)
    device = loaded.device.type
    place = model.absolute() if model.exists() else model  # actors of a cluster work in other folders
    load = partial(_processor, make, place, device, loaded.precision)
    count = workers or (1 if device == "cuda" and runner == "native" else cores())
    partial_folder = output.with_name(f"{output.name}.partial").absolute()  # a glob may match it
    counts = inference.parts.write_parts(
        make(loaded), load, {name: path for name, path in input.corpus.items() if partial_folder not in _above(path)},
        output.absolute(), form=form,
        workers=Workers(count, runner, address, gpus=int(device == "cuda" and runner == "ray")),
    )  # fmt: skip
    written = Message("{output}: {rows:,} rows", output=output, rows=counts["rows"])
    if counts["resumed"]:
        written = Message("{written}, {count:,} of them from an earlier run", written=written, count=counts["resumed"])
    say(written, err=True)
    if counts["failed"]:
        raise PartlyFailed(
            "{output}: {failed:,} of {rows:,} rows have an error: it is in their column `error`",
            output=output, failed=counts["failed"], rows=counts["rows"],
        )  # fmt: skip


def _above(path: Any) -> Iterable[Path]:
    """The folders above a local file; none for an address."""
    return path.absolute().parents if isinstance(path, Path) else ()


def _processor(make: "Callable[[Model], Any]", model: Path, device: str, precision: "InferencePrecision") -> "Any":
    """Loads the model in a worker process, with the precision chosen by the first process, and makes its processor."""
    import korbert

    return make(korbert.load(model, device, precision))


def refuse_workers(input: Input, given: JsonObject) -> None:
    """Raises SettingsError for options that apply only to several files."""
    # A single worker process is what one file gets anyway.
    if names := [name for name, value in given.items() if value not in (None, 1, "native")]:
        raise SettingsError(
            "{option}: is for a folder or a glob, and {input} is one file: leave it out",
            option=argument(names[0]), input=input.name,
        )  # fmt: skip


def texts_of(arguments: tuple[str, ...], given: Input | None) -> Iterable[tuple[str, str]]:
    """(place, text) of each argument; without arguments, of each record of the input, or line of standard input."""
    if arguments:
        return inference.lines.checked_arguments(arguments)
    if given:
        return inference.lines.texts(given.file, given.name, "auto")
    return inference.lines.texts(sys.stdin.buffer, sys.stdin.name)


class _Layers(click.ParamType[tuple[int, ...]]):
    """Comma-separated layer numbers."""

    name = "N[,N..]"

    def convert(self, value: str | tuple[int, ...], parameter: _Parameter, context: _Context) -> tuple[int, ...]:
        try:
            return value if isinstance(value, tuple) else tuple(int(part) for part in value.split(","))
        except ValueError:
            message = Message("{value!r}: give layer numbers, as in -1 or -4,-3,-2,-1", value=value)
            self.fail(in_language(message), parameter, context)


class Output(click.Path):
    """The path of something that a command writes. Raises SettingsError for a name that would only fail later."""

    def convert(self, value: _Given, param: _Parameter, ctx: _Context) -> Path:
        if value == "":
            name = param.get_error_hint(ctx) if param else "output"
            raise SettingsError("{name}: is empty: give a name", name=name)
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if "://" in os.fsdecode(value):
            raise SettingsError("{value}: is an address, and results are written to files: name one here", value=value)
        if any("\ud800" <= char <= "\udfff" for char in str(path)):
            raise SettingsError(
                "{printable}: the name is not UTF-8: choose another one", printable=printable(str(path))
            )
        if os.path.realpath(path) == path.absolute().anchor:
            raise SettingsError("{path}: is the folder of the whole machine: choose another name", path=path)
        return path


def together(*options: _Decorator) -> _Decorator:
    """Combine several option decorators into one."""

    return lambda function: reduce(lambda inner, option: option(inner), reversed(options), function)


class _AboveBars(logging.StreamHandler[TextIO]):
    """Writes to the current sys.stderr: a progress bar replaces it with a stream that keeps the bar below the lines."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


def _configure_logging(context: click.Context, parameter: click.Parameter, debug: bool) -> None:
    """Send log messages to standard error: our own, progress included, and warnings of libraries."""
    handler = _AboveBars()
    handler.setFormatter(Messages("%(message)s"))
    of_libraries = logging.WARNING
    ours = logging.DEBUG if debug else logging.INFO
    if is_secondary_rank():
        of_libraries = ours = logging.ERROR
    logging.basicConfig(level=of_libraries, handlers=[handler])
    logging.getLogger("korbert").setLevel(ours)


def completion(names: Callable[[], Iterable[str]]) -> Callable[..., list[CompletionItem]]:
    """Shell completion by these names; by files where no name begins with what was typed."""
    return lambda context, parameter, incomplete: [
        CompletionItem(incomplete, type="file"),
        *(CompletionItem(name) for name in names() if name.startswith(incomplete)),
    ]


texts_input = click.option(
    "--input", type=InputType(), help="File of texts, one per line, or a table; - is standard input."
)
texts = together(click.argument("texts", nargs=-1, metavar="[TEXT]..."), texts_input)
model_names = completion(models_in_the_box)
model = click.argument("model", type=PathType(), shell_complete=model_names)
recipe_names = completion(lambda: recipes.files.shipped_names())
recipe = click.argument("recipe", shell_complete=recipe_names)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON: one object, or a line for each text.")
accept_kiwi = click.option(  # in the environment, which worker processes inherit
    "--accept-kiwi", is_flag=True, expose_value=False, envvar=None,
    callback=lambda context, parameter, accepted: accepted and os.environ.update({ACCEPT: "1"}),
    help="Accept a Kiwi version other than the tokenizer's; saved files record it.",
)  # fmt: skip
lang = click.option(
    "--lang", type=click.Choice(["en", "ko"]), expose_value=False, envvar=None, is_eager=True,
    callback=lambda context, parameter, lang: lang and os.environ.update({LANG: lang}),
    help="Language of pages, results and help.  [default: the locale's; of a served page, the browser's]",
)  # fmt: skip
debug = together(
    lang,
    click.option(
        "--debug", is_flag=True, expose_value=False, callback=_configure_logging, help="Show the traceback of an error."
    ),
)
device = click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", help="Device to run on.")
precision = click.option(
    "--precision", type=click.Choice(["auto", "fp32", "bf16", "int8"]), default="auto",
    envvar="KORBERT_PRECISION", show_envvar=True,
    help="Precision of the model. fp32: exact. bf16 and int8 round vectors and scores to 2 or 3 digits. auto: the "
    "fastest here; int8 needs korbert[onnx] and a CPU with VNNI.",
)  # fmt: skip
on_models = together(device, accept_kiwi, debug)
workers = click.option(
    "--workers", type=click.IntRange(1, _MOST_WORKERS), help="Worker processes, or Kiwi threads.  [default: cores]"
)
row_workers = click.option(
    "--row-workers", type=click.IntRange(0, _MOST_WORKERS),
    help="pretrain: data-loading processes on this machine, divided among its ranks; 0: a thread.  "
    "[default: 0 on CPU, up to 4 per GPU]",
)  # fmt: skip

place = together(
    click.option("--root", type=Output(), default=Path("artifacts"),
                 help="Folder for all artifacts."),
    click.option("--data", type=PathType(), envvar="KORBERT_DATA", show_envvar=True,
                 help="Base folder of the recipe's relative paths.  [default: the recipe's folder]"),
    click.option("--set", "changes", multiple=True, metavar="KEY=VALUE",
                 help="Override a recipe value, e.g. vocab.size=32000; repeatable."),
    accept_kiwi,
    debug,
)  # fmt: skip
corpus = together(
    workers,
    click.option("--runner", type=click.Choice(["native", "ray"]), default="native",
                 help="Run these processes on this machine or on a Ray cluster."),
    click.option("--address", help="Ray cluster address.  [default: RAY_ADDRESS, or a cluster started here]"),
)  # fmt: skip
work = together(
    click.option("--rebuild", is_flag=True, help="Rebuild artifacts even if they are fresh."),
    click.option("--dry-run", is_flag=True, help="Show what would run, and stop."),
)

mask_personal = click.option(
    "--mask-personal", is_flag=True,
    help="Replace e-mail addresses, phone, account and other numbers of persons in the texts by tags, as clean does.",
)  # fmt: skip
columns = together(
    click.option("--text", metavar="NAME", help="Column of the text.  [default: text, sentence, 문장, ..]"),
    click.option("--pair", metavar="NAME", help="Column of the second text of a pair."),
    click.option("--label", metavar="NAME", help="Column of the label, or of the target number."),
    click.option("--column", "others", multiple=True, metavar="ROLE=NAME",
                 help="Column for another role (choices, tokens, tags, spans, id, ..); repeatable."),
)  # fmt: skip

_SHEET = "korbert.sheet"
_sheet = click.option(  # before --form, whose value it becomes
    "--sheet", metavar="NAME", is_eager=True, expose_value=False,
    callback=lambda context, parameter, name: context.meta.update({_SHEET: name}),
    help="Sheet of a workbook (.xlsx).  [default: the first sheet]",
)  # fmt: skip


def _form_or_sheet(context: click.Context, parameter: click.Parameter, form: Format) -> Format:
    if (sheet := context.meta.get(_SHEET)) is None:
        return form
    if form not in ("auto", "xlsx"):
        raise click.UsageError(Message("--sheet is for workbooks: leave --form {form} out", form=form))
    return Sheet(f"xlsx:{sheet}")


form = together(
    click.option("--form", type=click.Choice(FORMS), default="auto", show_default=True, callback=_form_or_sheet,
                 help="File format; auto: by extension, else by content."),
    _sheet,
)  # fmt: skip
format_ = together(
    click.option("--form", type=click.Choice(FORMATS), default="auto", callback=_form_or_sheet,
                 help="File format; auto: by file name, else by the first line."),
    _sheet,
)  # fmt: skip
layers = together(
    click.option("--layer", type=_Layers(), help="Layers to use: 0 the embeddings, -1 the last layer.  [default: -1]"),
    click.option("--mix", type=click.Choice(get_args(Mix)), help="How to combine several layers.  [default: mean]"),
)
vectors = together(
    layers,
    click.option("--pooling", type=click.Choice(get_args(PoolingName)),
                 help="How piece vectors are pooled into one text vector.  [default: the model's, else mean]"),
    click.option("--no-special-tokens", is_flag=True, help="Leave [CLS] and [SEP] out of the pooling."),
    click.option("--size", type=click.IntRange(min=1), help="Keep only the first N dimensions."),
    precision,
)  # fmt: skip
records = together(
    click.option("--text", metavar="NAME", help="Text column or key.  [default: text, document, 문장, ..]"),
    format_,
)


def by_role(given: JsonObject) -> dict[str, list[str]]:
    """Returns role -> its columns, as the options `columns` give them."""
    columns_by_role = {role: [given[role]] for role in ("text", "pair", "label", "group", "time") if given.get(role)}
    for option in given["others"]:
        role, equals, name = option.partition("=")
        if not equals:
            raise click.UsageError(Message("--column {one}: give it as ROLE=NAME, as in choices=보기", one=option))
        columns_by_role.setdefault(role, []).append(name)
    return columns_by_role


def asked_for(given: JsonObject) -> "VectorArgs":
    """The vector settings among the given options."""
    names = ("layer", "mix", "pooling", "side", "size")
    settings = cast("VectorArgs", {name: given[name] for name in names if given.get(name)})
    if given["no_special_tokens"]:
        settings["special_tokens"] = False
    if given.get("raw"):
        settings["normalize"] = False
    return settings
