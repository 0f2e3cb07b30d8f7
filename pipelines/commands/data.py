"""The command that generates training data: questions."""

from pathlib import Path
from typing import Literal

import click

from korbert.processor import cores
from korbert.terminal import say
from pipelines import inference
from pipelines.commands import options


@click.command()
@click.argument("corpus")
@click.option("--output", type=options.Output(), required=True, help="File to write: .json (KorQuAD format) or .jsonl.")
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="Stop after the first N questions.")
@click.option(
    "--per-paragraph",
    type=click.IntRange(1, 100),
    default=2,
    show_default=True,
    help="Maximum number of questions per paragraph.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Random seed for choosing sentences, answers and question forms.",
)
@click.option(
    "--text",
    default="text",
    show_default=True,
    metavar="NAME",
    help="Field or column that holds the text (JSON lines, tables).",
)
@click.option(
    "--documents",
    type=click.Choice(["line", "blank", "file"]),
    default="line",
    show_default=True,
    help="Document unit in text files: a line, a block between blank lines, or the whole file.",
)
@options.workers
@options.debug
def questions(
    corpus: str,
    output: Path,
    count: int | None,
    per_paragraph: int,
    seed: int,
    text: str,
    documents: Literal["line", "blank", "file"],
    workers: int | None,
    debug: bool,
) -> None:
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
    options.show_progress()
    if not corpus:
        raise click.UsageError("CORPUS is empty: name a file, a folder or a glob")
    counts = inference.questions.write_questions(
        corpus, output, per_paragraph=per_paragraph, seed=seed, text=text, documents=documents, count=count,
        workers=workers or cores(),
    )  # fmt: skip
    for line in inference.questions.described(output, counts):
        say(line)


COMMANDS = [questions]
