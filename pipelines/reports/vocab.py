"""The page of `vocab`: coverage of held-out text, morpheme frequencies, and the vocabulary itself."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from korbert.pipelines.artifacts.store import Json
from korbert.pipelines.reports import formatting
from korbert.pipelines.reports.distributions import number_and_share, rank_curve, ranked_bars, ranks
from korbert.pipelines.reports.elements import Bar, Bars, Element, Section, Story, Table, Use
from korbert.pipelines.reports.figures import Figure, label, text
from korbert.pipelines.reports.pictures import Line, columns, curves
from korbert.pipelines.reports.record import Artifact, batches
from korbert.tokenization.vocabulary import FIRST_PIECE, unmarked

_TOP = 30  # morphemes in the bar chart
_MOST_SPLIT = 20
_WHOLE = "whole_morpheme_share"
_MEASURES = ("pieces_per_morpheme", "pieces_per_eojeol", "byte_share")


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
        *(Figure(text(key, overall[key]), label(key)) for key in _MEASURES[1:]),
    )


def story(artifact: Artifact) -> Story:
    coverage = artifact.json("coverage.json")
    overall = coverage["all"]
    return Story(
        title=f"{text(_WHOLE, overall[_WHOLE])} of held-out morphemes are single pieces",
        lede=f"Measured on {formatting.count(overall['morphemes'])} morphemes in "
        f"{formatting.count(overall['documents'])} held-out documents that were not used to build the vocabulary.",
        sections=(
            Section("Coverage of held-out text", coverage_elements(coverage)),
            Section("Morpheme frequencies", list(frequency_elements(artifact))),
            Section("Vocabulary", [*piece_lengths(artifact), piece_usage(coverage["used"]), *most_split(coverage)]),
        ),
    )


def coverage_elements(coverage: Json) -> Sequence[Element]:
    sources = sorted(coverage["by_source"].items())
    measured = sources if len(sources) == 1 else [*sources, ("all", coverage["all"])]
    bars, rows = [], []
    for source, values in measured:
        bars.append(Bar(source, (values[_WHOLE],), text(_WHOLE, values[_WHOLE])))
        counts = (formatting.count(values[key]) for key in ("documents", "morphemes"))
        rows.append((source, *counts, *(text(key, values[key], 1) for key in _MEASURES)))
    head = ("source", "documents", "morphemes", *map(label, _MEASURES))
    note = "Byte pieces: share of pieces that encode one byte of a rare character."
    return (
        Bars("Single-piece morphemes", bars, note="Share of each source's morphemes; the full width is 100 %."),
        Table("Tokenization by source", head, rows, "lrrrrr", note=note),
    )


def frequency_elements(artifact: Artifact) -> Iterator[Element]:
    parts = artifact.parts("counts.parquet")  # the most frequent morpheme first
    counts = np.concatenate([[], *(batch.column("count").to_numpy() for batch in batches(parts, ["count"]))])
    if not len(counts):
        return
    at, sums = ranks(len(counts)), counts.cumsum()
    total = sums[-1]
    note = f"{formatting.count(len(counts))} distinct morphemes (form and tag), most frequent first."
    yield from rank_curve("morphemes", counts, note=note)
    line = Line("morphemes", at, sums[at - 1] / total)
    x, y, note = "most frequent morphemes", "share of the corpus", f"{formatting.count(total)} morphemes in total."
    yield from curves("Cumulative frequency", [line], x=x, y=y, percent=True, log_x=True, floor=0, note=note)
    rows = next(batches(parts, ["form", "tag", "count"])).slice(0, _TOP).to_pylist()
    top = ((f"{row['form']}/{row['tag']}", row["count"]) for row in rows)
    title, note = "Most frequent morphemes", "Share of all morphemes."
    yield ranked_bars(title, top, lambda count: formatting.percent(count / total, 2), note=note, korean=True)


def piece_lengths(artifact: Artifact) -> Iterator[Element]:
    """Lengths of the pieces that stand for text, without word boundary marks."""
    lines = [line.partition("\t") for line in artifact.text("tokenizer/pieces.txt").split("\n")]
    lengths = [len(unmarked(piece)) for number, tab, piece in lines if tab and int(number) >= FIRST_PIECE]
    if lengths:
        mean = formatting.decimal(float(np.mean(lengths)))
        note = f"{formatting.count(len(lengths))} pieces, mean length {mean} characters; "
        note += "special, reserved and byte entries excluded."
        sizes = np.bincount(lengths)[1:].tolist()
        yield columns("Piece length", sizes, x="characters", y="pieces", first=1, note=note)


def piece_usage(used: Json) -> Bars:
    often = used["entries"] - used["never"] - used["rarely"]
    show = number_and_share(used["entries"])
    bars = [
        Bar(name, (number / used["entries"],), show(number))
        for name, number in (("10 times or more", often), ("1 to 9 times", used["rarely"]), ("never", used["never"]))
    ]
    return Bars("Piece usage in the corpus", bars, note="Pieces never used are mostly intermediate merges.")


def most_split(coverage: Json) -> Iterator[Table]:
    for source, entries in coverage["most_split"].items():
        if source == "all" and len(coverage["most_split"]) > 2:
            continue  # the sources are shown one by one
        rows = [
            (entry["form"], entry["tag"], formatting.count(entry["count"]), formatting.count(entry["pieces"]))
            for entry in entries[:_MOST_SPLIT]
        ]
        title = "Most fragmented morphemes" + ("" if source == "all" else f", {source}")
        note = "Held-out text, ordered by extra pieces: count × (pieces − 1)."
        yield Table(title, ("morpheme", "tag", "count", "pieces"), rows, "klrr", note=note)
