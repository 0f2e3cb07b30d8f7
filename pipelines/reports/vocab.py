"""The page of `vocab`: how well the pieces cover held-out text, where they split most, what they look like."""

from collections.abc import Iterator

import numpy as np

from korbert.tokenization.vocabulary import FIRST_PIECE, unmarked
from pipelines.artifacts import Json
from pipelines.reports import formatting
from pipelines.reports.elements import Bar, Bars, Element, Headline, Section, Story, Table
from pipelines.reports.pictures import Line, columns, curves
from pipelines.reports.record import Artifact, batches, num_rows
from pipelines.reports.usage import Use

__all__ = ["headlines", "story"]

USE = Use(
    "tokenizer",
    "korbert tokenize {} '학교에 방문한다'",
    "from korbert.tokenization import Tokenizer\n"
    "encoding = Tokenizer.load({}).encode('학교에 방문한다')\n"
    "print(encoding.pieces, encoding.spans)",
)

_TOP = 30  # morphemes shown in the bar chart
_MOST_SPLIT = 20
_RANKS = 160  # points of the rank-frequency curve, evenly spaced on its logarithmic axis

_SPLIT_NOTE = "Of the held-out text: those that cost most pieces beyond their first, all occurrences together."

_MEASURES = (
    ("documents", "documents", formatting.count),
    ("morphemes", "morphemes", formatting.count),
    ("pieces_per_morpheme", "pieces / morpheme", lambda number: formatting.decimal(number, 3)),
    ("pieces_per_eojeol", "pieces / eojeol", lambda number: formatting.decimal(number, 3)),
    ("byte_share", "bytes", lambda share: formatting.percent(share, 3)),
)


def headlines(artifact: Artifact) -> tuple[Headline, ...]:
    every = artifact.json("coverage.json")["all"]
    return (
        Headline(formatting.percent(every["whole_morpheme_share"]), "of morphemes in one piece", "held-out text"),
        Headline(formatting.decimal(every["pieces_per_eojeol"]), "pieces an eojeol"),
        Headline(formatting.percent(every["byte_share"], 2), "of pieces are bytes"),
    )


def story(artifact: Artifact) -> Story:
    coverage = artifact.json("coverage.json")
    every = coverage["all"]
    return Story(
        title=f"{formatting.percent(every['whole_morpheme_share'])} of the morphemes in unseen text are one piece",
        lede=f"Measured on {formatting.count(every['morphemes'])} morphemes of {formatting.count(every['documents'])} "
        "held-out documents, which took no part in making the vocabulary.",
        sections=(
            Section("Coverage of held-out text", tuple(_coverage(coverage))),
            Section("What the corpus counts look like", tuple(_counts(artifact))),
            Section("The pieces", (*_pieces(artifact), _used(coverage), *_most_split(coverage))),
        ),
    )


def _coverage(coverage: Json) -> Iterator[Element]:
    sources = sorted(coverage["by_source"].items())
    rows = (*sources, ("all", coverage["all"])) if len(sources) != 1 else tuple(sources)
    yield Bars(
        "Morphemes that are one piece",
        tuple(
            Bar(name, (measured["whole_morpheme_share"],), formatting.percent(measured["whole_morpheme_share"]))
            for name, measured in rows
        ),
        note="Share of the morphemes of each source; the track is 100 %.",
    )
    yield Table(
        "By source",
        ("source", *(label for _, label, _ in _MEASURES)),
        tuple((name, *(show(measured[key]) for key, _, show in _MEASURES)) for name, measured in rows),
        "l" + "r" * len(_MEASURES),
        note="bytes: share of the pieces that stand for one byte of a rare character.",
    )


def _used(coverage: Json) -> Bars:
    used = coverage["used"]
    numbers = {"ten times or more": used["entries"] - used["never"] - used["rarely"]}
    numbers |= {"once to nine times": used["rarely"], "never": used["never"]}
    bars = tuple(
        Bar(
            name,
            (number / used["entries"],),
            f"{formatting.count(number)}, {formatting.percent(number / used['entries'])}",
        )
        for name, number in numbers.items()
    )
    return Bars(
        "How often the corpus uses its pieces", bars, note="Those never used are steps on the way to longer ones."
    )


def _most_split(coverage: Json) -> Iterator[Table]:
    for source, entries in coverage["most_split"].items():
        if source == "all" and len(coverage["most_split"]) > 2:
            continue  # its sources are shown
        rows = tuple(
            (entry["form"], entry["tag"], formatting.count(entry["count"]), formatting.count(entry["pieces"]))
            for entry in entries[:_MOST_SPLIT]
        )
        title = "Most split morphemes" + ("" if source == "all" else f", {source}")
        yield Table(title, ("morpheme", "tag", "count", "pieces"), rows, "klrr", note=_SPLIT_NOTE)


def _counts(artifact: Artifact) -> Iterator[Element]:
    parts = artifact.parts("counts.parquet")
    total = num_rows(parts)
    if not total:
        return
    ranks = np.unique(np.geomspace(1, total, _RANKS).round().astype(np.int64))
    counts, sums = _at_ranks(artifact, ranks)
    yield curves(
        "Rank and frequency",
        [Line("morphemes", ranks.tolist(), counts.tolist())],
        x="rank",
        y="count",
        log_x=True,
        log_y=True,
        note=f"All {formatting.count(total)} different morphemes (form and tag), the commonest first.",
    )
    yield curves(
        "How far the commonest go",
        [Line("morphemes", ranks.tolist(), (sums / sums[-1]).tolist())],
        x="commonest morphemes",
        y="share of the corpus",
        percent=True,
        log_x=True,
        floor=0,
        note=f"{formatting.count(sums[-1])} morphemes in all.",
    )
    yield _commonest(artifact, int(sums[-1]))


def _at_ranks(artifact: Artifact, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The count at each rank (from 1) and the sum of all counts down to it, without holding all counts."""
    at, sums = [], []
    seen = summed = 0
    for batch in batches(artifact.parts("counts.parquet"), ["count"]):
        counts = batch.column("count").to_numpy()
        wanted = ranks[(ranks > seen) & (ranks <= seen + len(counts))] - seen - 1
        at.append(counts[wanted])
        sums.append(counts.cumsum()[wanted] + summed)
        seen, summed = seen + len(counts), summed + int(counts.sum())
    return np.concatenate(at), np.concatenate(sums)


def _commonest(artifact: Artifact, total: int) -> Bars:
    first = next(batches(artifact.parts("counts.parquet"), ["form", "tag", "count"])).slice(0, _TOP).to_pylist()
    bars = tuple(
        Bar(
            f"{row['form']}/{row['tag']}",
            (row["count"] / first[0]["count"],),
            formatting.percent(row["count"] / total, 2),
            korean=True,
        )
        for row in first
    )
    return Bars("The commonest morphemes", bars, note="Share of all morphemes.")


def _pieces(artifact: Artifact) -> Iterator[Element]:
    sizes = np.bincount([len(piece) for piece in _texts(artifact)])[1:]
    if not sizes.size:
        return
    mean = np.average(np.arange(1, len(sizes) + 1), weights=sizes)
    yield columns(
        "Length of the pieces",
        sizes.tolist(),
        x="characters",
        y="pieces",
        first=1,
        note=f"{formatting.count(sizes.sum())} pieces, {formatting.decimal(mean)} characters on average, without "
        "special, reserved and byte entries.",
    )


def _texts(artifact: Artifact) -> Iterator[str]:
    """The pieces that stand for text, without marks."""
    for line in artifact.text("tokenizer/pieces.txt").split("\n"):
        number, tab, piece = line.partition("\t")
        if tab and int(number) >= FIRST_PIECE:
            yield unmarked(piece)
