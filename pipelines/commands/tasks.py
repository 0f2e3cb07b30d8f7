"""Commands for the user's own task: training data, checks, fine-tuning, distillation, evaluation."""

import dataclasses
import json
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any, get_args

import click

import korbert
from korbert.corpus.pairs import PairSource, pairs_of
from korbert.errors import CorpusError, SettingsError
from korbert.messages import Message, in_language
from korbert.pipelines import artifacts, experiments, inference, recipes, reports, runs
from korbert.pipelines.commands import options
from korbert.pipelines.commands.stages import run_stages
from korbert.records import Form
from korbert.system import (
    JsonObject,
    check_output,
    claim,
    cores,
    is_secondary_rank,
    remove,
    say,
    track,
    world,
    write_atomically,
    write_bytes_atomically,
)
from korbert.tasks.kinds import ALIASES, KINDS, RUNGS, kind_of_task

_FILE = options.PathType()
_PLACE = options.PlaceType()
_SETTINGS = (
    *("set", "kind", "several", "validation_share", "epochs", "minutes", "learning_rates", "features", "scratch"),
    "mask_personal",
)
_rates = partial(click.option, "--learning-rate", "learning_rates", type=float, multiple=True)
_kind = click.option("--kind", type=click.Choice([*KINDS, *ALIASES]), metavar="|".join(KINDS),
                     help="Kind of task.  [default: inferred from the columns]")  # fmt: skip
_several = click.option("--several", is_flag=True, help="Multi-label: a text has any number of labels.")
_learning = options.together(  # model, data and settings of the commands that train
    options.model,
    click.option("--train", type=_PLACE, help="Training file: CSV, TSV, JSON lines, Parquet, CoNLL, .."),
    click.option("--valid", type=_PLACE, help="Validation file, to select epoch and learning rate.  "
                 "[default: part of --train]"),
    click.option("--valid-share", "validation_share", type=options.FloatRange(0, 1, min_open=True, max_open=True),
                 help="Share of --train used for validation.  [default: 0.1]"),
    click.option("--test", type=_PLACE, help="Test file, scored once per seed."),
    click.option("--task", "set", metavar="NAME",
                 help="Use a known data set instead; `korbert tasks` lists them."),
    click.option("--data", type=_FILE, envvar="KORBERT_DATA", show_envvar=True,
                 help="Folder with the files of --task."),
    click.option("--output", type=options.Output(), required=True, help="Folder to write."),
    _kind,
    options.columns,
    click.option("--group", metavar="NAME",
                 help="Column of a customer, thread, ..: whole groups of rows are held out."),
    click.option("--time", metavar="NAME", help="Column of a date or number: the latest rows are held out."),
    options.form,
    _several,
    click.option("--epochs", type=click.IntRange(min=1),
                 help="Epochs; the best is kept.  [default: 3, or up to 20 to reach 200 steps; "
                 "20 with --features]"),
    _rates(help="Learning rate to try; repeat for several.  [default: 2e-4; 3e-3 with --features]"),
    click.option("--seeds", type=click.IntRange(min=1),
                 help="Number of seeds to train with.  [default: 1; `layers`: 3]"),
    click.option("--features", metavar="LAYERS",
                 help='Train a head on layers of the frozen encoder: "last", "concat of last four, bilstm", ..'),
    click.option("--set", "changes", multiple=True, metavar="KEY=VALUE",
                 help="Any other setting of a recipe's task; repeatable."),
    options.workers,
    options.device,
    options.accept_kiwi,
    options.debug,
)  # fmt: skip


@click.command()
@_learning
@click.option("--scratch", is_flag=True, help="Also train the same encoder from random weights, for comparison.")
@click.option(
    "--minutes",
    type=options.FloatRange(0, min_open=True),
    help="Time for all of it: as many epochs as fit, none if need be.",
)
@click.option(
    "--teacher",
    "teachers",
    type=_FILE,
    multiple=True,
    shell_complete=options.model_names,
    help="Model of the same task, ours or of transformers, whose probabilities the encoder learns, too; repeatable.",
)
@click.option("--unlabelled", type=_PLACE, help="Texts without labels, to learn from the teachers.")
@options.mask_personal
@click.option("--quick", is_flag=True, help="Labels: a linear model of words and vectors, in seconds; spans: a CRF.")
@click.option(
    "--only",
    type=click.Choice(RUNGS),
    help="Labels, spans: one part of the model alone.  [default: words (of labels), vectors, and the tuned encoder]",
)
@options.work
def finetune(rebuild: bool, dry_run: bool, quick: bool, only: str | None, **given: Any) -> None:
    """Fine-tune MODEL on a labelled file or a known data set.

    Targets are labels, numbers, spans, choices or answers. MODEL is a folder with a model, such as a pretrain artifact
    or an imported encoder. The --output folder receives model/, scores next to baselines, predictions and a report. The
    same command resumes an interrupted run.

    \b
    Examples:
      korbert finetune artifacts/small/pretrain --train my.csv --text 문장 --label 감정 --output models/mood
      korbert finetune models/electra --task klue-ner --data ~/data --seeds 3 --output models/ner
    """
    if quick and only:
        raise click.UsageError(Message("--quick and --only: give one of them"))
    rungs = ["words", "vectors"] if quick else [only] if only else []
    _train(_pipeline(_single_task(given, rungs), given), rebuild, dry_run)


def _train(pipeline: "runs.Pipeline", rebuild: bool = False, dry_run: bool = False) -> None:
    """Runs the only stage of a pipeline; shows the scores, and how to use the model."""
    (stage,) = pipeline.stages()
    run_stages(pipeline, [stage], rebuild, dry_run)
    if not dry_run and not is_secondary_rank():
        reports.summary.show(pipeline)
        output = str(pipeline.artifact(stage.name))
        say(
            Message(
                "use it: korbert {command} {path} FILE, or korbert.load({quoted}) in Python",
                command=KINDS[pipeline.recipe.section(stage.name).kind].kind_class.command,
                path=shlex.quote(output), quoted=repr(output),
            )
        )  # fmt: skip


@click.command()
@_learning
@options.as_json
def layers(as_json: bool, **given: Any) -> None:
    """Probe every layer of the frozen MODEL on a task.

    A separate head is trained on each layer and on the combinations of Devlin et al. 2019 (table 7), with three seeds.
    Vectors are computed once. Prints the scores; the --output folder receives layers.json and layers.html. Only the
    head of --features is used, as in "last, mlp, 64".
    """
    if is_secondary_rank():
        return
    pipeline = _pipeline(_single_task(given, ["encoder"]), given, is_artifact=False)
    (stage,) = pipeline.stages()
    output: Path = given["output"]
    if (output / artifacts.store.RECORD).is_file():
        raise SettingsError(
            "{output}: is an artifact, which other files would make stale: choose another --output", output=output
        )
    output.mkdir(parents=True, exist_ok=True)
    check_output(output / "layers.json", given["model"], given["train"])
    check_output(output / "layers.html", given["model"], given["train"], may_overwrite=reports.drawing.is_page)
    work = claim(output / ".korbert-layers")
    inputs = dataclasses.replace(pipeline.inputs(stage), encoded=work / "encoded")
    section = pipeline.recipe.section(stage.name)
    record = experiments.layers.layer_table(section, inputs, output, pipeline.runtime, work)
    remove(work)
    reports.layers.write_page(output / "layers.html", kind_of_task(record["task"], str(output)).description(), record)
    if as_json:
        click.echo(inference.lines.as_json(record))
    else:
        best = Message("best by validation: {name}", name=reports.layers.layer_name(record["best"]))
        reports.summary.show_tables([reports.layers.score_table(record)], [best])
        say(output / "layers.html")


def _single_task(given: JsonObject, rungs: Sequence[str] = ()) -> "recipes.one_task.SingleTask":
    """The task that the options of `_learning` ask for; empty settings are left out."""
    if bool(given["set"]) == bool(given["train"]):
        raise click.UsageError(Message("give either --train FILE or --task NAME"))
    if given["set"] and given["data"] is None:
        raise click.UsageError(Message("--task needs --data: the folder with the files of the set"))
    settings = {name: given[name] for name in _SETTINGS if given.get(name)}
    if given.get("teachers"):
        settings["teachers"] = list(given["teachers"])
    if given["seeds"]:
        settings["seeds"] = list(range(given["seeds"]))
    return recipes.one_task.SingleTask(
        model=given["model"],
        output=given["output"],
        files=_files(given),
        settings=settings,
        columns=options.by_role(given),
        form=given["form"],
        changes=given["changes"],
        rungs=rungs,
    )


def _files(given: JsonObject) -> JsonObject:
    """Returns part -> its file, from the options of `_learning`."""
    parts = ["unlabelled", *(("train", "valid", "test") if given["train"] else ())]
    return {part: given[part] for part in parts if given.get(part)}


def _pipeline(task: "recipes.one_task.SingleTask", given: JsonObject, *, is_artifact: bool = True) -> "runs.Pipeline":
    """The pipeline of a single task. given: its command's options. is_artifact: whether its output is an artifact."""
    recipe, line = task.recipe()
    if line:
        say(line, err=True)
    runtime = artifacts.Runtime(
        root=task.output.parent if task.output else Path(),
        data=(given.get("data") or Path()).resolve(),
        workers=given["workers"] or cores(),
        device=given["device"],
        given=tuple(word for word in sys.argv[1:] if word != "--rebuild"),
    )
    place = task.output if is_artifact else None
    return runs.Pipeline(recipe, runtime, place)


@click.command()
@options.model
@click.argument("texts", type=_FILE)
@click.option(
    "--teacher",
    required=True,
    metavar="PLACE",
    help="Model of ours, folder of sentence-transformers or transformers, or http://HOST:PORT/v1#MODEL.",
)
@click.option("--valid", type=_FILE, help="Pairs of texts, with scores or without, to validate on.  [default: texts]")
@click.option("--output", type=options.Output(), required=True, help="Folder to write.")
@click.option("--text", metavar="NAME", help="Text column or key.  [default: text, document, 문장, ..]")
@click.option("--epochs", type=click.IntRange(min=1), help="Epochs; the best is kept.  [default: 3, or up to 20]")
@_rates(help="Learning rate to try.  [default: 2e-4]")
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help="Any other setting of kind embedding.")
@options.workers
@options.on_models
def distill(teacher: str, texts: Path, text: str | None, model: Path, output: Path, **given: Any) -> None:
    """Learn the vectors that a teacher gives TEXTS.

    The vectors are computed once, cut to the size of MODEL's, and kept in OUTPUT.teacher.parquet; an interrupted run
    resumes. The --output folder is one of `korbert finetune`.

    \b
    Example:
      korbert distill korbert-mini sentences.txt --teacher models/e5 --valid sts.csv --output models/vectors
    """  # fmt: skip
    if world().size > 1:
        raise SettingsError("distill: the teacher's vectors are computed by one process: leave torchrun out")
    if output.name in ("", ".."):
        raise SettingsError("--output {output}: names no folder of its own: give it a name", output=output)
    vectors = output.with_name(f"{output.name}.teacher.parquet")
    failed = options.Failed(texts.name)
    # Before the teacher's vectors are computed, which may take hours.
    artifacts.store.check_place(output, "output")
    check_output(vectors, model, texts, Path(teacher), may_overwrite=Path.is_file)
    size = korbert.load(model, given["device"]).network.config.hidden_size
    inference.teachers.write_teacher_vectors(teacher, texts, text, vectors, size, failed, given["device"])
    files = {part: file for part, file in (("train", vectors), ("valid", given["valid"])) if file}
    settings = {"kind": "embedding", "near_batches": True} | {
        name: given[name] for name in ("epochs", "learning_rates") if given[name]
    }
    task = recipes.one_task.SingleTask(model, output, files, settings, changes=given["changes"])
    _train(_pipeline(task, given))
    failed.end()


@click.command()
@options.model
@click.argument("file", type=_PLACE)
@options.columns
@options.form
@options.as_json
@click.option("--noise", is_flag=True, help="Also score the rows with wrong spaces, typing errors, emoji and the like.")
@click.option("--html", type=options.Output(),
              help="Write an HTML page: scores under --noise, and rows whose prediction it changes.")  # fmt: skip
@click.option("--output", type=options.Output(), help="Write one JSON line per row, with its prediction.")
@options.on_models
def evaluate(
    model: Path, file: Path, form: Form, as_json: bool, noise: bool, html: Path | None, output: Path | None,
    device: str, **columns: Any,
) -> None:  # fmt: skip
    """Evaluate MODEL on a labelled FILE.

    MODEL is a folder written by `korbert finetune`, or the artifact of a [tasks.NAME] section. Each score comes with a
    95 % bootstrap interval over rows.
    """
    if output:
        check_output(output, model, file)
    if html:
        check_output(html, model, file, may_overwrite=reports.drawing.is_page)
    by_role = options.by_role(columns)
    loaded = korbert.load(model, device)
    result = experiments.evaluating.evaluate_file(loaded, file, by_role, form, noise=noise or html is not None)
    for line in result.notes:
        say(line, err=True)
    if output:
        write_bytes_atomically(output, b"".join(inference.lines.as_json(row) + b"\n" for row in result.rows))
    if html:
        reports.noise.write_page(html, str(model), loaded.task, result)
        say(Message("page: {path}", path=html), err=True)
    if as_json:
        ends = {metric: bounds or (None, None) for metric, bounds in result.intervals.items()}
        scores = {
            name: {"score": value, "low": ends[name][0], "high": ends[name][1]} for name, value in result.scores.items()
        }
        with_noise = {"noise": result.noise} if result.noise else {}
        click.echo(json.dumps(scores | with_noise, ensure_ascii=False, indent=2))
        return
    rows = Message("{count:,} row", "{count:,} rows", count=len(result.rows))
    shown = [(rows, metric, result) for metric in result.scores]
    shown += [
        (artifacts.figures.label(name), next(iter(evaluation.scores)), evaluation)
        for name, evaluation in result.with_noise.items()
    ]
    for title, metric, evaluation in shown:
        value = evaluation.scores[metric]
        bounds = evaluation.intervals[metric]
        score = in_language(Message("undefined")) if value is None else f"{value:.4f}"
        interval = ""
        if bounds is not None:
            interval = in_language(Message("{low:.4f} to {high:.4f}", low=bounds[0], high=bounds[1]))
        say(f"{metric:<24} {score}   {interval:<16}   {in_language(title)}")


@click.command()
@click.argument("file", type=_PLACE)
@click.option("--test", type=_PLACE, help="Test file: rows of FILE with its texts are found.")
@click.option("--model", type=_FILE, default=Path("korbert-mini"), shell_complete=options.model_names,
              help="Model whose vectors the labels are compared by.")  # fmt: skip
@_kind
@options.columns
@options.form
@_several
@click.option("--html", type=options.Output(), help="Write an HTML page: what was found, and doubtful labels.")
@click.option("--output", type=options.Output(), help="Write a CSV file: the rows with findings, most doubtful first.")
@options.on_models
def check(
    file: Path, test: Path | None, model: Path, kind: str | None, form: Form, several: bool, html: Path | None,
    output: Path | None, device: str, **columns: Any,
) -> None:  # fmt: skip
    """Find what may be wrong in a labelled FILE.

    Labels that a model of the other rows finds unlikely; names of labels that may be slips; texts that stand there
    twice, or with other labels, or in the test file, too; rows that are left out, and texts that are cut; labels of few
    rows; personal data. FILE stays as it is.

    \b
    Example:
      korbert check my.csv --text 문장 --label 감정 --output found.csv --html found.html
    """
    if output:
        check_output(output, model, file, test)
    if html:
        check_output(html, model, file, test, may_overwrite=reports.drawing.is_page)
    task = recipes.one_task.SingleTask(
        model=model,
        output=None,
        files={"train": file} | ({"test": test} if test else {}),
        settings={name: value for name, value in (("kind", kind), ("several", several)) if value},
        columns=options.by_role(columns),
        form=form,
        rungs=("words", "vectors"),
    )
    pipeline = _pipeline(task, {"workers": None, "device": device}, is_artifact=False)
    (stage,) = pipeline.stages()
    section, inputs = pipeline.recipe.section(stage.name), pipeline.inputs(stage)
    checked = experiments.checking.check(section, inputs, pipeline.runtime.data, korbert.load(model, device))
    for line in checked.facts:
        say(line)
    if output:
        write_bytes_atomically(output, experiments.checking.as_csv(checked.rows))
        say(Message("{output}: {count:,} rows with findings", output=output, count=len(checked.rows)), err=True)
    if html:
        reports.checking.write_page(html, str(file), checked)
        say(Message("page: {path}", path=html), err=True)


@click.command()
@click.argument("corpus")
@click.option("--output", type=options.Output(), required=True, help="File to write: .json, in KorQuAD format.")
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="Stop after the first N questions.")
@click.option(
    "--per-paragraph", type=click.IntRange(1, 100), default=2, help="Maximum number of questions per paragraph."
)
@click.option("--seed", type=click.IntRange(min=0), default=0,
              help="Random seed for choosing sentences, answers and question forms.")  # fmt: skip
@click.option(
    "--text", default="text", metavar="NAME", help="Field or column that holds the text (JSON lines, tables)."
)
@click.option("--documents", type=click.Choice(["line", "blank", "file"]), default="line",
              help="Document unit in text files: a line, a block between blank lines, or the whole file.")  # fmt: skip
@options.workers
@options.debug
def questions(corpus: str, output: Path, workers: int | None, **settings: Any) -> None:
    """Generate questions with answers from unlabelled text.

    They warm up a reading comprehension model before it is trained on real questions.

    CORPUS is a file, a folder or a glob: text, JSON lines, CSV, Parquet, compressed or not, or documents/ of a clean
    artifact. Each question asks for a name, a date, a number, a place or a thing in one sentence; its answer occurs
    once in the paragraph. The korquad stage and `korbert finetune --kind question-answering` read the output. The same
    seed and text give the same file, whatever the number of workers. After Ctrl-C, the same command resumes.

    \b
    Example:
      korbert questions wiki.jsonl.zst --count 100000 --output made.json
    """
    if not corpus:
        raise click.UsageError(Message("CORPUS is empty: name a file, a folder or a glob"))
    counts = inference.questions.write_questions(corpus, output, workers=workers or cores(), **settings)
    for line in inference.questions.describe_counts(output, counts):
        say(line)


@click.command()
@click.argument("corpus", type=_PLACE)
@click.option("--output", type=options.Output(), required=True, help="File of JSON lines to write.")
@click.option("--title", default="title", metavar="NAME", help="Field or column of the title.")
@click.option("--text", metavar="NAME", help="Field or column of the text.  [default: text, document, 문장, ..]")
@options.debug
def pairs(corpus: Path, output: Path, title: str, text: str | None) -> None:
    """Take pairs of queries and passages from the documents of CORPUS, to learn vectors without labels.

    CORPUS is a file of documents with titles: JSON lines or a table. A title and the first paragraph, a heading and its
    section, and a sentence and the rest of its paragraph are pairs. `korbert finetune` reads the output (kind
    embedding), `korbert negatives`, too.
    """
    check_output(output, corpus)
    failed = options.Failed(str(corpus))
    counts = Counter[PairSource]()

    def write(file: IO[bytes]) -> None:
        records = inference.embedding.text_records(corpus, corpus.name, text=text, fields=True)
        with track("pairs", None, "documents") as advance:
            for record in chain.from_iterable(records):
                advance(1)
                if failed(record):
                    continue
                name = record["fields"].get(title)
                name = name if isinstance(name, str) else ""
                for pair in pairs_of(name, record["text"]):
                    counts[pair.source] += 1
                    file.write(inference.lines.as_json(pair._asdict()) + b"\n")
        if not counts:
            raise CorpusError(
                "{corpus}: holds no pairs: give documents of several lines, with titles (--title NAME)", corpus=corpus
            )

    write_atomically(output, write)
    say(f"{output}: {', '.join(f'{counts[source]:,} {source}' for source in get_args(PairSource))}", err=True)
    failed.end()


COMMANDS = [questions, pairs, check, finetune, distill, evaluate, layers]
