"""Commands that answer and score KorQuAD files, check submissions, and compare runs."""

import json
from dataclasses import asdict
from pathlib import Path

import click

from korbert.messages import Message
from korbert.pipelines import inference, reports, submission
from korbert.pipelines.commands import options
from korbert.system import check_output, say

_FILE = options.PathType()


@click.command()
@click.argument("model", type=_FILE, required=False, shell_complete=options.model_names)
@click.argument("input", type=_FILE, required=False)
@click.argument("output", type=options.Output(), required=False)
@click.option("--check", "bundle", type=_FILE, metavar="BUNDLE", help="Run the submission folder as a judge would.")
@click.option("--dataset", type=_FILE, help="Questions for --check.  [default: korbert's own sample]")
@click.option("--time-limit", type=options.FloatRange(min=0, min_open=True), default=60.0,
              metavar="MINUTES", help="Time limit of --check.")  # fmt: skip
@options.as_json
@options.on_models
def submit(
    model: Path | None,
    input: Path | None,
    output: Path | None,
    bundle: Path | None,
    dataset: Path | None,
    time_limit: float,
    as_json: bool,
    device: str,
) -> None:
    """Answer a KorQuAD file, or check a submission.

    INPUT is a KorQuAD JSON file; OUTPUT becomes {id: answer} for every id. MODEL is a korquad artifact or its model/.
    --check BUNDLE replaces all three: it runs submission/ of a korquad artifact in a fresh folder, validates the
    answers, and prints time, memory and scores.
    """
    if bundle is not None:
        if model is not None:
            raise click.UsageError(Message("--check takes BUNDLE alone: leave {model} out", model=model))
        verdict = submission.bundle.check(bundle, dataset, limit_seconds=60 * time_limit)
        if as_json:
            click.echo(inference.lines.as_json(asdict(verdict) | {"dataset": str(verdict.dataset)}))
        else:
            reports.summary.show_check(verdict)
        return
    if dataset is not None:
        raise click.UsageError(Message("--dataset is for --check BUNDLE: INPUT names the questions to answer"))
    if model is None or input is None or output is None:
        raise click.UsageError(Message("name MODEL INPUT OUTPUT, or --check BUNDLE"))
    count = submission.bundle.submit(model, input, output, device=device)
    say(Message("{count:,} answers in {output}", count=count, output=output), err=True)


@click.command()
@click.argument("dataset", type=_FILE)
@click.argument("predictions", type=_FILE)
@options.debug
def score(dataset: Path, predictions: Path) -> None:
    """Print official exact match and F1 of PREDICTIONS on DATASET."""
    click.echo(json.dumps(submission.bundle.score(dataset, predictions)))


@click.command()
@click.argument("folders", type=options.PathType(), nargs=-1, metavar="FOLDER FOLDER...")
@click.option("--model", "models", multiple=True, metavar="NAME",
              help="Tasks: model to compare (tuned, linear, words, pretrained, ..), once or once per folder.  "
              "[default: the first]")  # fmt: skip
@click.option("--html", "--page", "page", type=options.Output(),
              help="Write an HTML page: curves of runs, examples of tasks.")  # fmt: skip
@options.as_json
@options.debug
def compare(folders: tuple[Path, ...], models: tuple[str, ...], page: Path | None, as_json: bool) -> None:
    """Compare pretraining runs, or models of one task.

    Pretraining: FOLDER is a pretrain artifact, finished or running (pretrain.partial), or its recipe's folder; runs are
    compared at equal time and at equal pieces. Tasks: FOLDER is the output of `korbert finetune` or of a [tasks.NAME]
    section; the first is compared with each of the others on the same rows, with a significance test.
    """
    if page:
        check_output(page, *folders, may_overwrite=reports.drawing.is_page)
    shown, details = reports.compare.compare_artifacts(folders, models)
    if as_json:
        click.echo(inference.lines.as_json(details))
    else:
        reports.summary.show_tables(shown.tables, shown.sentences)
    if page:
        say(Message("page: {path}", path=reports.compare.write_page(page, shown)), err=as_json)


COMMANDS = [submit, score, compare]
