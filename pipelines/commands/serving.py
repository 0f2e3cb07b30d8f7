"""The command that serves models over HTTP."""

import re
import sys
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import click

from korbert import training
from korbert.errors import SettingsError
from korbert.folders import models_in_the_box
from korbert.messages import Message
from korbert.names import nfc, on_disk
from korbert.pipelines.commands import options
from korbert.system import Interrupted, say

_NAME = re.compile(r"[\w.-]+")


@click.command()
@click.argument("models", nargs=-1, metavar="[[NAME=]MODEL]...", shell_complete=options.model_names)
@click.option("--index", type=options.PathType(), help="Index for /similar, built with one of the models.")
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65_535), default=8000, help="Port to listen on; 0: any free port.")
@click.option("--token", envvar="KORBERT_TOKEN", show_envvar=True, help="Bearer token required of every request.")
@click.option("--insecure", is_flag=True, help="Allow other machines without a token.")
@click.option(
    "--body-bytes", type=click.IntRange(1_024), default=1 << 20, help="Maximum size of a request body, in bytes."
)
@click.option("--texts", type=click.IntRange(1), default=2_048, help="Maximum number of texts per request.")
@click.option("--pieces", type=click.IntRange(16), default=4_096,
              help="Maximum pieces of a text that is read as a whole (answers, spans).")  # fmt: skip
@click.option(
    "--batch-pieces", type=click.IntRange(16), default=2_048, help="Pieces per batch; larger values suit a GPU."
)
@click.option("--queue", type=click.IntRange(1), default=4_096, help="Maximum number of waiting texts.")
@click.option(
    "--seconds",
    type=options.FloatRange(0, 3_600, min_open=True),
    default=30,
    help="Time limit of a request, in seconds.",
)
@options.device
@options.precision
@options.accept_kiwi
@options.debug
def serve(
    models: tuple[str, ...], index: Path | None, host: str, port: int, token: str | None, insecure: bool, device: str,
    precision: "training.InferencePrecision", **limited: Any,
) -> None:  # fmt: skip
    """Serve models over HTTP.

    Endpoints return embeddings, pieces, filled masks, predictions and answers. MODEL is a folder with a model, or the
    name of a bundled one; without MODEL, all bundled models are served. Requests select a model by NAME, by default the
    last part of its path; requests without a name are answered by the first model that can. `POST /v1/embeddings`
    follows OpenAI's API; /docs lists all endpoints. Ctrl-C or SIGTERM stops the server after pending requests are
    answered.

    \b
    Examples:
      korbert serve
      korbert serve artifacts/small/pretrain
      korbert serve mood=models/mood answers=artifacts/small/korquad --port 9000
    """
    from korbert.pipelines.reports.look.page import page
    from korbert.pipelines.service.analysis import AnalysisProcess
    from korbert.pipelines.service.limits import Limits
    from korbert.pipelines.service.running import is_loopback, run

    if token is not None and not token.strip():
        raise click.UsageError(
            Message("--token: is empty, so no client could send it: give one, or leave the option out")
        )
    token = token and token.strip()
    if not token and not insecure and not is_loopback(host):
        raise click.UsageError(
            Message("--host {host} admits other machines: give a --token that they must send, or --insecure", host=host)
        )
    folders = parse_named_models(models or tuple(models_in_the_box()))

    def serving(address: str) -> None:
        say(Message("korbert: serving {names} at {address}", names=", ".join(folders), address=address))

    limits = Limits(**limited)
    try:
        with closing(AnalysisProcess(folders.values())) as process:

            def load() -> Any:
                # Imports PyTorch, so only once the server is listening.
                from korbert.pipelines.service.operations import load_all

                return load_all(folders, index, device, precision, limits, process)

            run(load, host, port, limits=limits, token=token, page=partial(page, None), said=serving)
    except Interrupted as signal:
        say(Message("korbert: ended by {signal}", signal=signal.number.name), err=True)
        sys.exit(128 + signal.number)


def parse_named_models(models: Sequence[str]) -> dict[str, Path]:
    """Parses NAME=FOLDER, or a FOLDER, whose name is its last part (of FOLDER/model, the part before).

    The names are in NFC, the folders as the disk spells them.
    Raises SettingsError for a name with other characters than letters, digits, ".", "-" and "_", or given twice.
    """
    folders: dict[str, Path] = {}
    for model in models:
        name, equals, folder = model.partition("=")
        path = on_disk(Path(folder if equals else model))
        if not equals:
            absolute = path.absolute()
            name = absolute.parent.name if absolute.name == "model" else absolute.name
        name = nfc(name)
        if not _NAME.fullmatch(name):
            raise SettingsError(
                "{model}: {name!r} cannot name a model: give it a name, as in mood={model}", model=model, name=name
            )
        if name in folders:
            raise SettingsError(
                "{model}: {folders} is named {name}, too: rename one, as in b={path}",
                model=model,
                folders=folders[name],
                name=name,
                path=path,
            )
        folders[name] = path
    return folders


COMMANDS = [serve]
