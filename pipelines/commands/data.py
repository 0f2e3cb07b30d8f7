"""Commands that generate training data from text: questions, pairs."""

from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Literal, get_args

import click

from corpus import pairs as corpus_pairs
from corpus.pairs import Source
from korbert.durable import aside_of, check_output, write_aside
from korbert.errors import CorpusError
from korbert.processor import cores
from korbert.progress import track
from korbert.terminal import say
from pipelines import inference
from pipelines.commands import options
from pipelines.commands.vector_options import Failed

__all__ = ["COMMANDS"]


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


@click.command()
@click.argument("corpus", type=options.PlaceType())
@click.option("--output", type=options.Output(), required=True, help="File of JSON lines to write.")
@click.option(
    "--source",
    "sources",
    type=click.Choice(get_args(Source)),
    multiple=True,
    help="Only pairs of this kind; repeatable.  [default: all]",
)
@click.option("--title", default="title", show_default=True, metavar="NAME", help="Field or column of the title.")
@click.option("--text", metavar="NAME", help="Field or column of the text.  [default: text, document, 문장, ..]")
@options.debug
def pairs(
    corpus: Path, output: Path, sources: tuple[Source, ...], title: str, text: str | None, debug: bool
) -> None:  # fmt: skip
    """Take pairs of queries and passages from the documents of CORPUS, to learn vectors without labels.

    CORPUS is a file of documents with titles: JSON lines or a table. A title and the first paragraph, a heading and its
    section, and a sentence and the rest of its paragraph are pairs. `korbert finetune` reads the output (kind
    embedding), `korbert negatives`, too.
    """
    options.show_progress()
    check_output(output, *([corpus] if isinstance(corpus, Path) else []), is_ours=inference.outputs.is_nothing_else)
    failed, counts, wanted = Failed(str(corpus)), Counter[Source](), sources or get_args(Source)

    def write(aside: Path) -> None:
        records = inference.embedding.text_records(corpus, corpus.name, text=text, fields=True)
        with aside.open("wb") as file, track("pairs", None, "documents") as advance:
            for record in chain.from_iterable(records):
                advance(1)
                if failed(record):
                    continue
                name = record["fields"].get(title)
                for pair in corpus_pairs.pairs_of(name if isinstance(name, str) else "", record["text"]):
                    if pair.source in wanted:
                        counts[pair.source] += 1
                        file.write(inference.lines.as_json(pair._asdict()) + b"\n")
        if not counts:
            raise CorpusError(f"{corpus}: holds no pairs: give documents of several lines, with titles (--title NAME)")

    write_aside(output, write, aside_of(output))
    say(f"{output}: {', '.join(f'{counts[source]:,} {source}' for source in wanted)}", err=True)
    failed.end()


COMMANDS = [questions, pairs]
