"""Commands that give labels: predict."""

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import chain
from pathlib import Path
from typing import Any

import click

from korbert import training
from korbert.messages import Message, language
from korbert.pipelines import inference
from korbert.pipelines.commands import options
from korbert.records import Format, excel
from korbert.system import JsonObject, check_output, say, track, write_bytes_atomically


@click.command()
@options.model
@click.argument("input", type=options.InputType(), default="-")
@options.columns
@options.format_
@click.option("--csv", "as_csv", is_flag=True, help="Write a CSV table instead of JSON lines.")
@click.option("--output", type=options.Output(), help="Write a file. .xlsx: an Excel workbook, every cell as text. Any "
              "other name: Parquet, with the columns of INPUT (Parquet or Arrow) and the predictions.")  # fmt: skip
@click.option("--top", type=click.IntRange(min=1), help="Only the N most probable labels.  [default: all]")
@click.option("--threshold", type=click.FloatRange(0, 1), metavar="P",
              help="Leave out labels and spans that are less probable.  [default: 0.5 for several labels]")  # fmt: skip
@click.option("--why", is_flag=True, help="Labels: add the morphemes that contribute most.")
@click.option("--abstain", type=float, metavar="PERCENT",
              help="Labels and spans: give none with a probability below this.")  # fmt: skip
@options.device
@options.precision
@options.accept_kiwi
@options.debug
def predict(
    model: Path, input: options.Input, form: Format, as_csv: bool, output: Path | None, top: int | None,
    threshold: float | None, why: bool, abstain: float | None, device: str, precision: "training.InferencePrecision",
    **columns: Any,
) -> None:  # fmt: skip
    """Run MODEL on the texts of INPUT; write JSON lines, CSV or a workbook of Excel.

    INPUT is standard input by default; results keep its order. A classifier reads one text per line, JSON of {"text":
    ..}, or a table (.csv, .tsv, .xlsx, .parquet), compressed or not, and returns label and probabilities. A KorQuAD
    model reads {"context": .., "question": ..}, or a table of both, and returns answer, start, end and score. Columns
    or keys are those of the training file, unless options name others (--label names none that is read). Each result
    has its line number, and the record's id if there is one. A line that cannot be read yields {"line": .., "error":
    ..}; the other lines are still processed, and the exit code is 1.
    """
    if output:
        check_output(output, model, input.file)
    failed = options.Failed(input.name)
    loaded = options.load_for_batches(model, device, precision)
    if abstain is not None:
        loaded = loaded.abstaining(abstain)
    by_role = options.by_role(columns | {"label": None})
    with nullcontext(lambda count: None) if sys.stdout.isatty() else track("predict", None, "lines") as advance:
        predicting = inference.predicting

        def batches() -> Iterator[list[JsonObject]]:
            for results in predicting.predict_lines(
                loaded, input.file, input.name, form=form, columns=by_role, why=why
            ):
                yield [predicting.select_labels(result, top, threshold) for result in results]
                for result in results:
                    failed(result)
                advance(len(results))

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
        elif output:
            predicting.write_parquet(output, loaded, input.file, form, batches())
        elif as_csv:
            if language() == "ko":
                click.echo(b"\xef\xbb\xbf", nl=False)  # without it, Excel reads CP949
            for csv_part in predicting.as_csv(batches()):
                click.echo(csv_part, nl=False)
        else:
            for results in filter(None, batches()):  # blank lines give none
                click.echo(b"\n".join(map(inference.lines.as_json, results)))
    failed.end()


COMMANDS = [predict]
