"""The command that visualizes a model on a text."""

from pathlib import Path
from typing import Literal

import click

import korbert
from korbert.durable import check_output, write_whole
from korbert.errors import ModelError
from korbert.pipelines import inference, reports
from korbert.pipelines.commands import options
from korbert.records.form import FORMS, Form
from korbert.terminal import say

_FILE = options.PathType()


@click.command()
@options.model
@click.argument("text", required=False)
@click.argument("pair", required=False)
@click.option("--html", type=options.Output(), required=True, help="HTML page to write.")
@click.option("--layers", type=_FILE, metavar="FILE",
              help="Instead of TEXT: plot the texts of FILE in every layer, coloured by label.")  # fmt: skip
@click.option("--text", "text_column", metavar="NAME", help="Text column of FILE.  [default: text, 문장, ..]")
@click.option("--label", metavar="NAME", help="Label column of FILE.  [default: label, ..]")
@click.option("--form", type=click.Choice(FORMS), default="auto", help="Format of FILE.")
@click.option("--way", type=click.Choice(["pca", "tsne"]), default="pca",
              help="Projection of the text vectors to 2D: principal components or t-SNE.")  # fmt: skip
@click.option("--most", type=click.IntRange(min=3), default=500, help="Maximum number of texts to plot.")
@options.device
@options.accept_kiwi
@options.debug
def look(model: Path, text: str | None, pair: str | None, html: Path, layers: Path | None, text_column: str | None,
         label: str | None, form: Form, way: Literal["pca", "tsne"], most: int, device: str,
         debug: bool) -> None:  # fmt: skip
    """Visualize MODEL on TEXT, or on TEXT and PAIR.

    The page shows attention, neurons, predictions and vectors. MODEL is an artifact with a model, or its model/. The
    page is self-contained and opens without a server or network. A KorQuAD model takes a question and a context, in
    this order.

    \b
    Examples:
      korbert look artifacts/small/pretrain '신용 대출을 신청하고 싶어요' --html look.html
      korbert look artifacts/small/pretrain --layers ratings_test.txt --html layers.html
    """
    if (text is None) == (layers is None):
        raise click.UsageError("give either TEXT or --layers FILE")
    check_output(html, model, *([layers] if layers else []), is_ours=inference.outputs.is_page)
    options.show_progress()
    loaded = korbert.load(model, device)
    if layers:
        columns = {role: [name] for role, name in (("text", text_column), ("label", label)) if name}
        points = reports.look.layers.layer_points(loaded, layers, columns, form, way=way, most=most)
        reports.layers.write_pictures(html, str(model), points)
    else:
        assert text is not None
        try:
            data = reports.look.data.look_data(loaded, text, pair, whole=True)
        except ModelError as error:
            raise ModelError(f"{model}: {error}") from None
        write_whole(html, reports.look.page.page(data).encode())
    say(html)


COMMANDS = [look]
