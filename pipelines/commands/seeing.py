"""The command that visualizes a model on a text."""

from pathlib import Path

import click

import korbert
from korbert.durable import check_output, write_whole
from korbert.errors import ModelError
from korbert.pipelines import inference, reports
from korbert.pipelines.commands import options
from korbert.terminal import say


@click.command()
@options.model
@click.argument("text")
@click.argument("pair", required=False)
@click.option("--html", type=options.Output(), required=True, help="HTML page to write.")
@options.on_models
def look(model: Path, text: str, pair: str | None, html: Path, device: str) -> None:
    """Visualize MODEL on TEXT, or on TEXT and PAIR.

    The page shows attention, neurons, predictions and vectors. MODEL is an artifact with a model, or its model/. The
    page is self-contained and opens without a server or network. A KorQuAD model takes a question and a context, in
    this order.

    \b
    Example:
      korbert look artifacts/small/pretrain '신용 대출을 신청하고 싶어요' --html look.html
    """
    check_output(html, model, is_ours=inference.outputs.is_page)
    loaded = korbert.load(model, device)
    try:
        data = reports.look.data.look_data(loaded, text, pair, whole=True)
    except ModelError as error:
        raise ModelError(f"{model}: {error}") from None
    write_whole(html, reports.look.page.page(data).encode())
    say(html)


COMMANDS = [look]
