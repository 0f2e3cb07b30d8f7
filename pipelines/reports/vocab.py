"""The page of `vocab`: coverage of held-out text, morpheme frequencies, and the vocabulary itself."""

from collections.abc import Iterator

import numpy as np

from korbert.tokenization.vocabulary import FIRST_PIECE, unmarked
from pipelines.artifacts.store import Json
from pipelines.reports import formatting
from pipelines.reports.elements import Bar, Bars, Element, Headline, Section, Story, Table
from pipelines.reports.pictures import Line, columns, curves
from pipelines.reports.record import Artifact, batches, num_rows
from pipelines.reports.stage_page import Use

__all__ = ["headlines", "story"]

USE = Use(
    "tokenizer",
    "korbert tokenize {} '학교에 방문한다'",
    "from korbert.tokenization import Tokenizer\n"
    "encoding = Tokenizer.load({}).encode('학교에 방문한다')\n"
    "print(encoding.pieces, encoding.spans)",
)

_TOP = 30  # morphemes in the bar chart
_MOST_SPLIT = 20
_RANKS = 160  # points of a curve over ranks, evenly spaced on its logarithmic axis

_MEASURES = (
    ("documents", "documents", formatting.count),
    ("morphemes", "morphemes", formatting.count),
    ("pieces_per_morpheme", "pieces / morpheme", lambda number: formatting.decimal(number, 3)),
    ("pieces_per_eojeol", "pieces / eojeol", lambda number: formatting.decimal(number, 3)),
    ("byte_share", "byte pieces", lambda share: formatting.percent(share, 3)),
)


def headlines(artifact: Artifact) -> tuple[Headline, ...]:
    overall = artifact.json("coverage.json")["all"]
    return (
        Headline(formatting.percent(overall["whole_morpheme_share"]), "of morphemes in one piece", "held-out text"),
        Headline(formatting.decimal(overall["pieces_per_eojeol"]), "pieces per eojeol"),
        Headline(formatting.percent(overall["byte_share"], 2), "byte pieces"),
    )


def story(artifact: Artifact) -> Story:
    coverage = artifact.json("coverage.json")
    overall = coverage["all"]
    return Story(
        title=f"{formatting.percent(overall['whole_morpheme_share'])} of held-out morphemes are single pieces",
        lede=f"Measured on {formatting.count(overall['morphemes'])} morphemes in "
        f"{formatting.count(overall['documents'])} held-out documents that were not used to build the vocabulary.",
        sections=(
            Section("Coverage of held-out text", tuple(_coverage(coverage))),
            Section("Morpheme frequencies", tuple(_frequencies(artifact))),
            Section("Vocabulary", tuple(_vocabulary(artifact, coverage))),
        ),
    )


def _coverage(coverage: Json) -> Iterator[Element]:
    sources = sorted(coverage["by_source"].items())
    rows = (*sources, ("all", coverage["all"])) if len(sources) != 1 else tuple(sources)
    yield Bars(
        "Single-piece morphemes",
        tuple(
            Bar(name, (measured["whole_morpheme_share"],), formatting.percent(measured["whole_morpheme_share"]))
            for name, measured in rows
        ),
        note="Share of each source's morphemes; the full width is 100 %.",
    )
    yield Table(
        "Tokenization by source",
        ("source", *(label for _, label, _ in _MEASURES)),
        tuple((name, *(show(measured[key]) for key, _, show in _MEASURES)) for name, measured in rows),
        "l" + "r" * len(_MEASURES),
        note="Byte pieces: share of pieces that encode one byte of a rare character.",
    )


def _frequencies(artifact: Artifact) -> Iterator[Element]:
    parts = artifact.parts("counts.parquet")  # the most frequent morpheme first
    num_distinct = num_rows(parts)
    if not num_distinct:
        return
    ranks = np.unique(np.geomspace(1, num_distinct, _RANKS).round().astype(np.int64))
    counts, sums = _at_ranks(artifact, ranks)
    total = int(sums[-1])
    yield curves(
        "Rank and frequency",
        [Line("morphemes", ranks.tolist(), counts.tolist())],
        x="rank",
        y="count",
        log_x=True,
        log_y=True,
        note=f"{formatting.count(num_distinct)} distinct morphemes (form and tag), most frequent first.",
    )
    yield curves(
        "Cumulative frequency",
        [Line("morphemes", ranks.tolist(), (sums / total).tolist())],
        x="most frequent morphemes",
        y="share of the corpus",
        percent=True,
        log_x=True,
        floor=0,
        note=f"{formatting.count(total)} morphemes in total.",
    )
    top = next(batches(parts, ["form", "tag", "count"])).slice(0, _TOP).to_pylist()
    bars = tuple(
        Bar(
            f"{row['form']}/{row['tag']}",
            (row["count"] / top[0]["count"],),
            formatting.percent(row["count"] / total, 2),
            korean=True,
        )
        for row in top
    )
    yield Bars("Most frequent morphemes", bars, note="Share of all morphemes.")


def _at_ranks(artifact: Artifact, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The count at each rank (from 1) and the cumulative count up to it, without holding all counts in memory."""
    at, sums = [], []
    seen = summed = 0
    for batch in batches(artifact.parts("counts.parquet"), ["count"]):
        counts = batch.column("count").to_numpy()
        wanted = ranks[(ranks > seen) & (ranks <= seen + len(counts))] - seen - 1
        at.append(counts[wanted])
        sums.append(counts.cumsum()[wanted] + summed)
        seen, summed = seen + len(counts), summed + int(counts.sum())
    return np.concatenate(at), np.concatenate(sums)


def _vocabulary(artifact: Artifact, coverage: Json) -> Iterator[Element]:
    # Lengths of the pieces that stand for text, without word boundary marks.
    lengths = []
    for line in artifact.text("tokenizer/pieces.txt").split("\n"):
        number, tab, piece = line.partition("\t")
        if tab and int(number) >= FIRST_PIECE:
            lengths.append(len(unmarked(piece)))
    sizes = np.bincount(lengths)[1:]
    if sizes.size:
        mean = np.average(np.arange(1, len(sizes) + 1), weights=sizes)
        yield columns(
            "Piece length",
            sizes.tolist(),
            x="characters",
            y="pieces",
            first=1,
            note=f"{formatting.count(sizes.sum())} pieces, mean length {formatting.decimal(mean)} characters; special, "
            "reserved and byte entries excluded.",
        )

    used = coverage["used"]
    usage = {"10 times or more": used["entries"] - used["never"] - used["rarely"]}
    usage |= {"1 to 9 times": used["rarely"], "never": used["never"]}
    bars = tuple(
        Bar(
            name,
            (number / used["entries"],),
            f"{formatting.count(number)}, {formatting.percent(number / used['entries'])}",
        )
        for name, number in usage.items()
    )
    yield Bars("Piece usage in the corpus", bars, note="Pieces never used are mostly intermediate merges.")

    for source, entries in coverage["most_split"].items():
        if source == "all" and len(coverage["most_split"]) > 2:
            continue  # the sources are shown one by one
        rows = tuple(
            (entry["form"], entry["tag"], formatting.count(entry["count"]), formatting.count(entry["pieces"]))
            for entry in entries[:_MOST_SPLIT]
        )
        title = "Most fragmented morphemes" + ("" if source == "all" else f", {source}")
        note = "Held-out text, ordered by extra pieces: count × (pieces − 1)."
        yield Table(title, ("morpheme", "tag", "count", "pieces"), rows, "klrr", note)
