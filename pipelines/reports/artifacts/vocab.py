"""The page of `vocab`: coverage of held-out text, morpheme frequencies, and the vocabulary itself."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow.compute as pc

from korbert.messages import Message
from korbert.pipelines.artifacts import Artifact, ShownFigure, batches, formatting, label, num_rows, text
from korbert.pipelines.reports.drawing import (
    Bar,
    Bars,
    Section,
    Story,
    TableElement,
    Use,
    number_and_share,
    ranked_bars,
)
from korbert.system import JsonObject

_TOP = 30  # morphemes in the bar chart
_MOST_SPLIT = 20
_WHOLE = "whole_morpheme_share"
_MEASURES = (_WHOLE, "pieces_per_morpheme", "pieces_per_eojeol", "byte_share")


def use(_folder: Path) -> Use:
    """Usage: splitting text with the tokenizer."""
    return Use(
        "tokenizer",
        "korbert tokenize {} '학교에 방문한다'",
        "from korbert.tokenization import Tokenizer\n"
        "encoding = Tokenizer.load({}).encode('학교에 방문한다')\n"
        "print(encoding.pieces, encoding.spans)",
    )


def figures(artifact: Artifact) -> Sequence[ShownFigure]:
    overall = artifact.json("coverage.json")["all"]
    return (
        ShownFigure(text(_WHOLE, overall[_WHOLE]), Message("of morphemes in one piece"), Message("held-out text")),
        *(ShownFigure(text(key, overall[key]), label(key)) for key in _MEASURES[2:]),
    )


def story(artifact: Artifact) -> Story:
    coverage = artifact.json("coverage.json")
    overall = coverage["all"]
    return Story(
        title=Message("{share} of held-out morphemes are single pieces", share=text(_WHOLE, overall[_WHOLE])),
        lede=Message(
            "Measured on {morphemes:,} morphemes in {documents:,} held-out documents that were not used to build the "
            "vocabulary.",
            morphemes=overall["morphemes"],
            documents=overall["documents"],
        ),
        sections=(
            Section(Message("Coverage of held-out text"), [coverage_table(coverage)]),
            Section(Message("Morpheme frequencies"), list(frequency_elements(artifact))),
            Section(Message("Vocabulary"), [piece_usage(coverage["used"]), *most_split(coverage)]),
        ),
    )


def coverage_table(coverage: JsonObject) -> TableElement:
    sources = sorted(coverage["by_source"].items())
    if len(sources) > 1:
        sources.append((Message("all"), coverage["all"]))
    rows = []
    for source, values in sources:
        counts = (formatting.count(values[key]) for key in ("documents", "morphemes"))
        rows.append((source, *counts, *(text(key, values[key], 1) for key in _MEASURES)))
    return TableElement(
        Message("Tokenization by source"),
        (Message("source"), Message("documents"), Message("morphemes"), *map(label, _MEASURES)),
        rows,
        "nrr" + "r" * len(_MEASURES),
        note=Message("Byte pieces: share of pieces that encode one byte of a rare character."),
    )


def frequency_elements(artifact: Artifact) -> Iterator[Bars]:
    parts = artifact.parts("counts.parquet")  # the most frequent morpheme first
    if total := sum(pc.sum(batch.column("count")).as_py() for batch in batches(parts, ["count"])):
        rows = next(batches(parts, ["form", "tag", "count"])).slice(0, _TOP).to_pylist()
        yield from ranked_bars(
            Message("Most frequent morphemes"),
            ((f"{row['form']}/{row['tag']}", row["count"]) for row in rows),
            lambda count: formatting.percent(count / total, 2),
            note=Message(
                "Share of {morphemes:,} morphemes, {distinct:,} of them distinct.",
                morphemes=total,
                distinct=num_rows(parts),
            ),
            korean=True,
        )


def piece_usage(used: JsonObject) -> Bars:
    often = used["entries"] - used["never"] - used["rarely"]
    show = number_and_share(used["entries"])
    uses = (
        (Message("10 times or more"), often),
        (Message("1 to 9 times"), used["rarely"]),
        (Message("never"), used["never"]),
    )
    return Bars(
        Message("Piece usage in the corpus"),
        [Bar(name, number / used["entries"], show(number)) for name, number in uses],
    )


def most_split(coverage: JsonObject) -> Iterator[TableElement]:
    for source, entries in coverage["most_split"].items():
        if source != "all":
            yield TableElement(
                Message("Most fragmented morphemes, {source}", source=source),
                (Message("morpheme"), Message("tag"), Message("count"), Message("pieces")),
                [
                    (entry["form"], entry["tag"], formatting.count(entry["count"]), formatting.count(entry["pieces"]))
                    for entry in entries[:_MOST_SPLIT]
                ],
                "knrr",
                note=Message("Held-out text, ordered by extra pieces: count × (pieces − 1)."),
            )
