"""Commands that give labels: predict, label, suggest."""

import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import click

import korbert
from korbert import training
from korbert.errors import SettingsError
from korbert.messages import Message, language
from korbert.pipelines import inference
from korbert.pipelines.commands import options
from korbert.records import Format, excel
from korbert.system import JsonObject, check_folder, check_output, say, track, write_bytes_atomically
from korbert.tasks.files import ROLES, read_rows

_MOST_TEXTS = 10_000  # at most, that a classifier without labels learns from
_SEPARATOR = ";"  # of several labels, as `korbert finetune --several` reads them
_written = options.together(
    click.option("--csv", "as_csv", is_flag=True, help="Write a CSV table instead of JSON lines."),
    click.option("--output", type=options.Output(), help="Write a file. .csv: a table; .xlsx: an Excel workbook, "
                 "every cell as text. Any other name: Parquet, with the columns of INPUT (Parquet or Arrow) and the "
                 "predictions."),
    click.option("--top", type=click.IntRange(min=1), help="Only the N most probable labels.  [default: all]"),
)  # fmt: skip


@click.command()
@options.model
@click.argument("input", type=options.CorpusType(), default="-")
@options.columns
@options.format_
@_written
@options.corpus
@click.option("--threshold", type=options.FloatRange(0, 1), metavar="P",
              help="Leave out labels and spans that are less probable.  [default: 0.5 for several labels]")  # fmt: skip
@click.option("--why", is_flag=True, help="Labels: add the morphemes that contribute most.")
@click.option("--abstain", type=float, metavar="PERCENT",
              help="Labels and spans: give none with a probability below this.")  # fmt: skip
@options.mask_personal
@options.device
@options.precision
@options.accept_kiwi
@options.debug
def predict(
    model: Path, input: options.Input, form: Format, as_csv: bool, output: Path | None, top: int | None,
    threshold: float | None, why: bool, abstain: float | None, device: str, precision: "training.InferencePrecision",
    mask_personal: bool, workers: int | None, runner: Literal["native", "ray"], address: str | None, **columns: Any,
) -> None:  # fmt: skip
    """Run MODEL on the texts of INPUT; write JSON lines, CSV or a workbook of Excel.

    INPUT is standard input by default; results keep its order. A classifier reads one text per line, JSON of {"text":
    ..}, or a table (.csv, .tsv, .xlsx, .parquet), compressed or not, and returns label and probabilities. A KorQuAD
    model reads {"context": .., "question": ..}, or a table of both, and returns answer, start, end and score. Columns
    or keys are those of the training file, unless options name others (--label names none that is read). Each result
    has its line number, and the record's id if there is one. A line that cannot be read yields {"line": .., "error":
    ..}; the other lines are still processed, and the exit code is 1.

    INPUT may also be a folder or a glob, in quotes: then --output is a folder of Parquet parts, --workers processes
    each load MODEL, and a row has the columns of its record, its file and line, and the columns of --csv. An
    interrupted run resumes.

    \b
    Example:
      korbert predict models/mood 'reviews/*.parquet' --output labelled --workers 8
    """
    spread: JsonObject = {"workers": workers, "runner": runner, "address": address}
    if input.corpus:
        if as_csv:
            raise SettingsError("--csv: is for one file: leave it out, and parts are Parquet")
        make = partial(
            inference.parts.RecordPredictor.of, columns=options.by_role(columns | {"label": None}), abstain=abstain,
            mask_personal=mask_personal, why=why, top=top, threshold=threshold,
        )  # fmt: skip
        options.write_corpus(model, make, input, output, form, device=device, precision=precision, **spread)
        return
    options.refuse_workers(input, spread)
    if output:
        check_output(output, model, input.file)
    loaded = options.load_for_batches(model, device, precision)
    if abstain is not None:
        loaded = loaded.abstaining(abstain)
    by_role = options.by_role(columns | {"label": None})
    results = inference.predicting.predict_lines(
        loaded, input.file, input.name, form=form, columns=by_role, why=why, mask_personal=mask_personal
    )
    threshold = inference.predicting.threshold_of(loaded, threshold)
    _write(loaded, input, form, results, as_csv=as_csv, output=output, top=top, threshold=threshold)


def _write(
    loaded: "korbert.Model", input: options.Input, form: Format, results: Iterator[list[JsonObject]], *,
    as_csv: bool, output: Path | None, top: int | None, threshold: float | None = None,
) -> None:  # fmt: skip
    """Writes the results of the records of an input. Raises PartlyFailed if some results are errors."""
    predicting = inference.predicting
    failed = options.Failed(input.name)
    with nullcontext(lambda count: None) if sys.stdout.isatty() else track("predict", None, "lines") as advance:

        def batches() -> Iterator[list[JsonObject]]:
            for batch in results:
                yield [predicting.select_labels(result, top, threshold) for result in batch]
                for result in batch:
                    failed(result)
                advance(len(batch))

        if output and output.suffix == ".xlsx":
            data, cut = excel.workbook_of(chain.from_iterable(predicting.as_table(batches())))
            write_bytes_atomically(output, data)
            if cut:
                say(
                    Message(
                        "korbert: {output}: {count:,} texts were cut to 32,767 characters, which is Excel's limit",
                        output=output, count=cut,
                    ),
                    err=True,
                )  # fmt: skip
        elif output and output.suffix == ".csv":
            predicting.write_csv(output, batches())
        elif output:
            predicting.write_parquet(output, loaded, input.file, form, batches())
        elif as_csv:
            if language() == "ko":
                click.echo(b"\xef\xbb\xbf", nl=False)  # without it, Excel reads CP949
            for csv_part in predicting.as_csv(batches()):
                click.echo(csv_part.encode(), nl=False)
        else:
            for batch in filter(None, batches()):  # blank lines give none
                click.echo(b"\n".join(map(inference.lines.as_json, batch)))
    failed.end()


@click.command()
@click.argument("file", type=options.InputType())
@click.option("--labels", required=True, multiple=True, metavar="NAME,NAME..", help="Names of the labels.")
@click.option("--describe", multiple=True, metavar="NAME: SENTENCE",
              help="What texts of a label say; repeat for several labels.")  # fmt: skip
@click.option("--model", type=options.PathType(), default=Path("korbert-mini-embed"),
              shell_complete=options.model_names, help="Model whose vectors are compared.")  # fmt: skip
@click.option("--save", type=options.Output(), metavar="FOLDER", help="Also write the classifier as a model.")
@options.records
@_written
@options.device
@options.precision
@options.accept_kiwi
@options.debug
def label(
    file: options.Input, labels: Sequence[str], describe: Sequence[str], model: Path, save: Path | None,
    text: str | None, form: Format, as_csv: bool, output: Path | None, top: int | None, device: str,
    precision: "training.InferencePrecision",
) -> None:  # fmt: skip
    """Label the texts of FILE by the names of the labels alone.

    A classifier learns from the vectors of the names, the descriptions, and the texts, up to 10,000 of them; results
    are written as by `korbert predict`. Nothing checks them: label some rows yourself, as `korbert suggest` proposes,
    and score them with `korbert evaluate`, or train with `korbert finetune`.

    \b
    Example:
      korbert label inquiries.csv --labels 환불,배송,결제 --describe '환불: 돈을 돌려받고 싶다' --save models/first
    """
    if output:
        check_output(output, model, file.file)
    if save:
        check_folder(save, model, file.file)
    descriptions: dict[str, str] = {}
    for description in describe:
        name, colon, sentence = description.partition(":")
        if not colon or not sentence.strip():
            raise click.UsageError(Message("--describe {one}: give it as NAME: SENTENCE", one=description))
        name = name.strip()
        if name in descriptions:
            raise click.UsageError(
                Message("--describe {one}: {name} is described twice: give one sentence", one=description, name=name)
            )
        descriptions[name] = sentence.strip()
    names = [name.strip() for part in labels for name in part.split(",")]
    texts = [record["text"] for record in _records_of(file, form, text) if "error" not in record]
    sample = random.Random(0).sample(texts, min(_MOST_TEXTS, len(texts)))
    embedder = options.load_for_batches(model, device, precision)
    loaded = korbert.zero_shot(names, sample, descriptions, embedder)
    if save:
        loaded.save(save)
        say(Message("model: {path}", path=save), err=True)
    columns = {"text": [text]} if text else {}
    results = inference.predicting.predict_lines(loaded, file.file, file.name, form=form, columns=columns)
    _write(loaded, file, form, results, as_csv=as_csv, output=output, top=top)


@click.command()
@options.model
@click.argument("file", type=options.InputType())
@click.option("--rows", "count", type=click.IntRange(min=1), default=50, help="Number of rows to suggest.")
@click.option("--labelled", type=options.PathType(), help="File of an earlier round: its labelled rows come first, and "
              "are not suggested again.")  # fmt: skip
@click.option("--output", type=options.Output(), required=True, help="CSV file to write, *.csv.")
@options.records
@options.device
@options.precision
@options.accept_kiwi
@options.debug
def suggest(
    model: Path, file: options.Input, count: int, labelled: Path | None, output: Path, text: str | None,
    form: Format, device: str, precision: "training.InferencePrecision",
) -> None:  # fmt: skip
    """Choose the rows of FILE that are most worth labelling next.

    Half of them are those that MODEL, a classifier, is least sure of, and unlike each other; half are drawn at random.
    With a model without labels, such as korbert-mini-embed, they stand for the whole file. The CSV file has their line
    and text, the guess of MODEL with its probability, and an empty column `label`: fill it in, and give the file to
    `korbert finetune --train`, which leaves out the rows without a label.

    \b
    Example:
      korbert suggest korbert-mini-embed inquiries.csv --rows 50 --output next.csv
    """
    if output.suffix.lower() != ".csv":
        raise SettingsError("--output {output}: is a CSV file: give it a name that ends in .csv", output=output)
    check_output(output, model, file.file, labelled)
    rows: list[Sequence[object]] = []
    if labelled:
        labelled_rows = read_rows(labelled, [ROLES["text"], ROLES["label"]])
        for line in labelled_rows.summary():
            say(line, err=True)
        for row in labelled_rows:
            labels = [row["label"]] if isinstance(row["label"], str) else row["label"]
            rows.append(("", row["text"], "", "", _SEPARATOR.join(labels)))
    labelled_texts = {row[1] for row in rows}
    failed = options.Failed(file.name)
    good = [record for record in _records_of(file, form, text) if not failed(record)]
    unlabelled = [record for record in good if record["text"] not in labelled_texts]
    loaded = options.load_for_batches(model, device, precision)
    for suggestion in korbert.suggest(loaded, [record["text"] for record in unlabelled], count):
        probability = "" if suggestion.probability is None else f"{suggestion.probability:.3f}"
        number = unlabelled[suggestion.place]["line"]
        rows.append((number, suggestion.text, _SEPARATOR.join(suggestion.labels), probability, ""))
    table = "".join(map(inference.predicting.csv_line, [("line", "text", "guess", "probability", "label"), *rows]))
    write_bytes_atomically(output, table.encode("utf-8-sig"))  # without its mark, Excel reads CP949
    say(Message("{output}: {count:,} rows to label", output=output, count=sum(not row[-1] for row in rows)), err=True)
    failed.end()


def _records_of(file: options.Input, form: Format, text: str | None) -> Iterator[JsonObject]:
    """The line number and text, or the error, of each record of a file."""
    if not isinstance(file.file, Path):
        raise click.UsageError(Message("{name}: is read twice: give a file", name=file.name))
    return chain.from_iterable(inference.embedding.text_records(file.file, file.name, form, text))


COMMANDS = [predict, label, suggest]
