"""Commands that use what the stages have made: tokenizers and models."""

import sys
from pathlib import Path
from typing import Any

import click

from korbert.errors import ModelError
from pipelines.commands import options

__all__ = ["COMMANDS"]

_MODEL = click.argument("model", type=click.Path(path_type=Path))
_FILE = click.Path(path_type=Path)


@click.command()
@_MODEL
@click.argument("input", type=_FILE)
@click.argument("output", type=_FILE)
@options.device
@options.accept_kiwi
@options.debug
def submit(model: Path, input: Path, output: Path, device: str, debug: bool) -> None:
    """Answer a KorQuAD file.

    INPUT is KorQuAD's JSON, OUTPUT becomes {id: answer} with every id. MODEL is model/ of a korquad artifact.
    """
    from pipelines.submission import submit as answer

    click.echo(f"{answer(model, input, output, device=device):,} answers in {output}", err=True)


@click.command()
@click.argument("dataset", type=_FILE)
@click.argument("predictions", type=_FILE)
@options.debug
def score(dataset: Path, predictions: Path, debug: bool) -> None:
    """Print the official exact match and F1 of PREDICTIONS on DATASET."""
    import json

    from pipelines.submission import score as official

    click.echo(json.dumps(official(dataset, predictions)))


@click.command()
@click.argument("tokenizer", type=_FILE)
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@click.option("--input", type=click.File("rb"), help="A file of texts, one a line; - is standard input.")
@click.option("--json", "as_json", is_flag=True, help="A JSON line for each text.")
@click.option("--html", type=_FILE, help="Write a page instead, the pieces below their characters.")
@click.option("--special-tokens", is_flag=True, help="[MASK] and the like in a text are what they stand for.")
@click.option("--check", is_flag=True, help="Say instead how many pieces the installed Kiwi would change.")
@options.accept_kiwi
@options.debug
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


@click.command()
@click.argument("tokenizer", type=_FILE)
@click.argument("dataset", type=_FILE)
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True, help="Threads of Kiwi.")
@click.option("--all", "everything", type=_FILE, help="Write every answer that is missed to this JSON file.")
@options.accept_kiwi
@options.debug
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


@click.command()
@_MODEL
@click.argument("input", type=click.File("rb"), default="-")
@options.device
@options.accept_kiwi
@options.debug
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


@click.command()
@_MODEL
@click.argument("text")
@click.option("--top", type=click.IntRange(min=1), default=5, show_default=True, help="Candidates for each gap.")
@options.device
@options.accept_kiwi
@options.debug
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


@click.command()
@_MODEL
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--check", is_flag=True, help="Load it with transformers and compare the logits.")
@options.accept_kiwi
@options.debug
def export(model: Path, folder: Path, check: bool, debug: bool) -> None:
    """Write MODEL for Hugging Face's Auto classes.

    MODEL is model/ of any artifact that has one; FOLDER is made.
    """
    from korbert.huggingface import export as write

    for name, difference in write(model, folder, check=check).items():
        click.echo(f"{name}: largest difference {difference:.2e}")
    click.echo(folder)


COMMANDS = [submit, score, tokenize, oracle, predict, fill, export]
