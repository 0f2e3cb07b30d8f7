"""Commands that show what a model does with a text."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from korbert.errors import ModelError
from korbert.tasks.files.form import FORMS
from pipelines.commands import options

if TYPE_CHECKING:
    from korbert.tasks.files import Form
    from pipelines.looking_layers import Way

__all__ = ["COMMANDS"]

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("model", type=_FILE)
@click.argument("text", required=False)
@click.argument("pair", required=False)
@click.option("--html", type=_FILE, required=True, help="Page to write.")
@click.option(
    "--layers",
    type=_FILE,
    metavar="FILE",
    help="Instead of a text: the texts of FILE in every layer, coloured by their labels.",
)
@click.option("--text", "text_column", metavar="NAME", help="Column of the text in FILE.  [default: text, 문장, ..]")
@click.option("--label", metavar="NAME", help="Column of the label in FILE.  [default: label, ..]")
@click.option("--form", type=click.Choice(FORMS), default="auto", show_default=True, help="Format of FILE.")
@click.option(
    "--way",
    type=click.Choice(["pca", "tsne"]),
    default="pca",
    show_default=True,
    help="How vectors of texts become two numbers: principal components, or t-SNE.",
)
@click.option("--most", type=click.IntRange(min=3), default=500, show_default=True, help="Texts of FILE to draw.")
@options.device
@options.accept_kiwi
@options.debug
def look(model: Path, text: str | None, pair: str | None, html: Path, layers: Path | None, text_column: str | None,
         label: str | None, form: "Form", way: "Way", most: int, device: str, debug: bool) -> None:  # fmt: skip
    """Show what MODEL does with TEXT, or with TEXT and PAIR: attention, neurons, guesses, vectors.

    MODEL is an artifact with a model, or its model/. The page needs no network; it works by double click. A reader
    (KorQuAD) takes a question and a text, in this order.

    \b
    Examples:
      korbert look artifacts/small/pretrain '신용 대출을 신청하고 싶어요' --html look.html
      korbert look artifacts/small/pretrain --layers ratings_test.txt --html layers.html
    """
    from korbert.durable import check_output, write_whole
    from pipelines.look_data import load_any, look_data
    from pipelines.looking import page

    if (text is None) == (layers is None):
        raise click.UsageError("give either TEXT or --layers FILE")
    check_output(html, model, *([layers] if layers else []))
    options.show_progress()
    loaded = load_any(model, device)
    if layers:
        from pipelines.looking_layers import layer_points
        from pipelines.reports.layers import write_pictures

        columns = {role: [name] for role, name in (("text", text_column), ("label", label)) if name}
        write_pictures(html, str(model), layer_points(loaded, layers, columns, form, way=way, most=most))
    else:
        assert text is not None
        try:
            data = look_data(loaded, text, pair, whole=True)
        except ModelError as error:
            raise ModelError(f"{model}: {error}") from None
        write_whole(html, page(data).encode())
    click.echo(f"{html}")


COMMANDS = [look]
