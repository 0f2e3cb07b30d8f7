"""The page of `vocab`: coverage of held-out text, morpheme frequencies, and the vocabulary itself."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow.compute as pc

from korbert.pipelines.artifacts.store import Json
from korbert.pipelines.reports import formatting
from korbert.pipelines.reports.distributions import number_and_share, ranked_bars
from korbert.pipelines.reports.elements import Bar, Bars, Section, Story, Table, Use
from korbert.pipelines.reports.figures import Figure, label, text
from korbert.pipelines.reports.record import Artifact, batches, num_rows

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


def figures(artifact: Artifact) -> Sequence[Figure]:
    overall = artifact.json("coverage.json")["all"]
    return (
        Figure(text(_WHOLE, overall[_WHOLE]), "of morphemes in one piece", "held-out text"),
        *(Figure(text(key, overall[key]), label(key)) for key in _MEASURES[2:]),
    )


def story(artifact: Artifact) -> Story:
    coverage = artifact.json("coverage.json")
    overall = coverage["all"]
    return Story(
        title=f"{text(_WHOLE, overall[_WHOLE])} of held-out morphemes are single pieces",
        lede=f"Measured on {formatting.count(overall['morphemes'])} morphemes in "
        f"{formatting.count(overall['documents'])} held-out documents that were not used to build the vocabulary.",
        sections=(
            Section("Coverage of held-out text", [coverage_table(coverage)]),
            Section("Morpheme frequencies", list(frequency_elements(artifact))),
            Section("Vocabulary", [piece_usage(coverage["used"]), *most_split(coverage)]),
        ),
    )


def coverage_table(coverage: Json) -> Table:
    sources = sorted(coverage["by_source"].items())
    rows = []
    for source, values in sources if len(sources) == 1 else [*sources, ("all", coverage["all"])]:
        counts = (formatting.count(values[key]) for key in ("documents", "morphemes"))
        rows.append((source, *counts, *(text(key, values[key], 1) for key in _MEASURES)))
    head = ("source", "documents", "morphemes", *map(label, _MEASURES))
    note = "Byte pieces: share of pieces that encode one byte of a rare character."
    return Table("Tokenization by source", head, rows, "n" + "r" * (len(head) - 1), note=note)


def frequency_elements(artifact: Artifact) -> Iterator[Bars]:
    parts = artifact.parts("counts.parquet")  # the most frequent morpheme first
    total = sum(pc.sum(batch.column("count")).as_py() for batch in batches(parts, ["count"]))
    if total:
        rows = next(batches(parts, ["form", "tag", "count"])).slice(0, _TOP).to_pylist()
        top = ((f"{row['form']}/{row['tag']}", row["count"]) for row in rows)
        note = f"Share of {formatting.count(total)} morphemes, {formatting.count(num_rows(parts))} of them distinct."
        title = "Most frequent morphemes"
        yield ranked_bars(title, top, lambda count: formatting.percent(count / total, 2), note=note, korean=True)


def piece_usage(used: Json) -> Bars:
    often = used["entries"] - used["never"] - used["rarely"]
    show = number_and_share(used["entries"])
    bars = [
        Bar(name, number / used["entries"], show(number))
        for name, number in (("10 times or more", often), ("1 to 9 times", used["rarely"]), ("never", used["never"]))
    ]
    return Bars("Piece usage in the corpus", bars)


def most_split(coverage: Json) -> Iterator[Table]:
    head = ("morpheme", "tag", "count", "pieces")
    note = "Held-out text, ordered by extra pieces: count × (pieces − 1)."
    for source, entries in coverage["most_split"].items():
        if source != "all":
            rows = [
                (entry["form"], entry["tag"], formatting.count(entry["count"]), formatting.count(entry["pieces"]))
                for entry in entries[:_MOST_SPLIT]
            ]
            yield Table(f"Most fragmented morphemes, {source}", head, rows, "knrr", note=note)
