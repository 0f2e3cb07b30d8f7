"""Commands that visualize a model: look (one text), words (one word in many texts)."""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import click

import korbert
from korbert import vectors
from korbert.durable import check_output, write_whole
from korbert.errors import ModelError
from korbert.pipelines import inference, reports
from korbert.pipelines.commands import options, vector_options
from korbert.pipelines.commands.vector_options import Failed
from korbert.records.form import Format
from korbert.terminal import say

_SHOWN_DISTANCES = 12  # occurrences up to which `words` prints all distances
_CONTEXT = 30  # characters on each side of a word


@click.command()
@options.model
@click.argument("text")
@click.argument("pair", required=False)
@click.option("--html", type=options.Output(), required=True, help="HTML page to write.")
@options.on_models
def look(model: Path, text: str, pair: str | None, html: Path, device: str, debug: bool) -> None:
    """Visualize MODEL on TEXT, or on TEXT and PAIR.

    The page shows attention, neurons, predictions and vectors. MODEL is an artifact with a model, or its model/. The
    page is self-contained and opens without a server or network. A KorQuAD model takes a question and a context, in
    this order.

    \b
    Example:
      korbert look artifacts/small/pretrain '신용 대출을 신청하고 싶어요' --html look.html
    """
    check_output(html, model, is_ours=inference.outputs.is_page)
    options.logged(debug)
    loaded = korbert.load(model, device)
    try:
        data = reports.look.data.look_data(loaded, text, pair, whole=True)
    except ModelError as error:
        raise ModelError(f"{model}: {error}") from None
    write_whole(html, reports.look.page.page(data).encode())
    say(html)


@click.command()
@options.model
@click.argument("word")
@click.argument("input", type=options.InputType(), default="-")
@click.option(
    "--html", type=options.Output(), help="Write an HTML page that plots the occurrences in 2D, with their sentences."
)
@click.option("--top", type=click.IntRange(min=1), default=3, help="Number of nearest occurrences to list.")
@options.as_json
@vector_options.layers
@vector_options.records
@options.on_models
def words(
    model: Path, word: str, input: Any, html: Path | None, top: int, as_json: bool, text: str | None, form: Format,
    device: str, debug: bool, **given: Any,
) -> None:  # fmt: skip
    """Compare the vectors of WORD across the texts of INPUT.

    WORD is matched by morpheme: 사랑 also matches 사랑해, 걷다 matches 걸었다. 배/NNG matches only that tag.
    Distances are 1 - cosine: 0 for the same direction, up to 2.
    """
    if html is not None:
        check_output(html, model, input.path, is_ours=inference.outputs.is_page)
    failed = Failed(input.name)
    read = chain.from_iterable(inference.embedding.text_records(input.file, input.name, form, text))
    good = [record for record in read if not failed(record)]
    loaded = korbert.load(model, device=device)
    occurrences = loaded.occurrences(word, [record["text"] for record in good], **vector_options.asked_for(given))
    for one in occurrences:
        if one.vector is None:
            place = f"line {good[one.number]['line']}, character {one.span[0] + 1}"
            say(f"korbert: {input.name}: {place}: is beyond the model's maximum length", err=True)
    occurrences = [one for one in occurrences if one.vector is not None]

    _print_occurrences(occurrences, [good[one.number]["line"] for one in occurrences], top, as_json)
    if not occurrences:
        say(f"{word}: does not occur in any of the {len(good):,} texts", err=True)
    elif html is not None:
        texts, spans, vectors = zip(*((one.text, one.span, one.vector) for one in occurrences), strict=True)
        look = reports.look
        shown = look.data.words_data(word, texts, spans, vectors)
        data = {"model": look.data.about(loaded), "texts": [word], "missing": {}, "words": shown}
        write_whole(html, look.page.page(data).encode())
        say(html, err=True)
    failed.end()


def _print_occurrences(
    occurrences: "Sequence[vectors.Occurrence]", lines: Sequence[int], top: int, as_json: bool
) -> None:
    """occurrences: with vectors. lines: the line number of each in the file."""
    apart = vectors.distances(occurrences)
    for number, (one, line) in enumerate(zip(occurrences, lines, strict=True)):
        nearest = [int(other) for other in apart[number].argsort(kind="stable") if other != number][:top]
        near = [{"occurrence": other + 1, "distance": round(float(apart[number, other]), 4)} for other in nearest]
        if as_json:
            assert one.vector is not None
            shown = {"occurrence": number + 1, "line": line, "text": one.text, "span": one.span}
            shown |= {"morphemes": one.morphemes, "nearest": near, "vector": one.vector.tolist()}
            click.echo(inference.lines.as_json(shown))
            continue
        start, end = one.span
        before, after = one.text[max(start - _CONTEXT, 0) : start], one.text[end : end + _CONTEXT]
        marked = f"{before}[{one.text[start:end]}]{after}"
        nearer = ", ".join(f"{other['occurrence']} ({other['distance']:.3f})" for other in near)
        say(f"{number + 1:3}  line {line}  {marked}  {one.morphemes}  nearest: {nearer or '-'}")
    if not as_json and 1 < len(occurrences) <= _SHOWN_DISTANCES:
        say("\n     " + "".join(f"{number:7}" for number in range(1, len(occurrences) + 1)))
        for number, row in enumerate(apart, 1):
            say(f"{number:5}" + "".join(f"{distance:7.3f}" for distance in row))


COMMANDS = [look, words]
