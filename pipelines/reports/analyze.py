"""The page of `analyze`: speed and failures of Kiwi, document lengths, tag frequencies."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.reports import formatting
from pipelines.reports.distributions import Lengths, most_frequent, ranked_bars
from pipelines.reports.elements import Element, Entry, Folded, Section, Story, Table, Use
from pipelines.reports.figures import Figure, label
from pipelines.reports.pictures import columns
from pipelines.reports.record import Artifact, batches, num_rows, sampled

_TOP_TAGS = 15
_SAMPLES = 20  # failed documents shown for each reason
_EOJEOL_MORPHEMES = 8  # last column of the chart: this many or more

# Names of the tags of the Sejong corpus (세종 말뭉치) as used by Kiwi, and of those of Kiwi itself.
_TAGS = dict(
    line.split("\t") for line in (files("pipelines.reports") / "tags.tsv").read_text(encoding="utf-8").splitlines()
)


@dataclass
class _Measured:
    """Lengths by source, tag frequencies, and eojeols by their number of morphemes (capped)."""

    morphemes: Lengths = field(default_factory=Lengths)
    sentences: Lengths = field(default_factory=Lengths)
    tags: Counter[str] = field(default_factory=Counter)
    eojeols: np.ndarray = field(default_factory=lambda: np.zeros(_EOJEOL_MORPHEMES + 1, dtype=np.int64))


def use(_folder: Path) -> Use:
    """Usage: the morphemes of documents as a table; no command reads them."""
    return Use("morphemes", "", "import pandas as pd\nprint(pd.read_parquet({})[['id', 'form', 'tag']])")


def figures(artifact: Artifact) -> Sequence[Figure]:
    documents, failed = _documents(artifact)
    shown = [Figure(formatting.compact(documents), "documents analysed")]
    if "morphemes" in artifact.record["counts"]:
        shown.append(Figure(formatting.compact(artifact.record["counts"]["morphemes"]), "morphemes"))
    if seconds := _seconds(artifact):
        shown.append(Figure(formatting.compact(documents / seconds), "documents/s"))
    return *shown, Figure(formatting.count(failed) if failed else "none", "failed")


def _documents(artifact: Artifact) -> tuple[int, int]:
    """Numbers of documents analysed and failed."""
    return num_rows(artifact.parts("morphemes/*.parquet")), num_rows(artifact.parts("failed/*.parquet"))


def _seconds(artifact: Artifact) -> float | None:
    """Duration of the whole stage; None if unknown, as after a resumed run."""
    return None if artifact.run.get("resumed") else artifact.seconds


def story(artifact: Artifact) -> Story:
    parts, note = sampled(artifact.parts("morphemes/*.parquet"))
    measured = measure(batches(parts, ["source", "tag", "sentence", "eojeol"]))
    documents, failed = _documents(artifact)
    lengths = (
        *measured.morphemes.elements("Morphemes per document", unit="morphemes", note=note),
        *measured.sentences.elements("Sentences per document", unit="sentences", note=note),
    )
    return Story(
        f"{formatting.count(documents)} documents analysed, {formatting.count(failed) if failed else 'none'} failed",
        speed_in_words(artifact),
        (
            Section("Lengths", lengths),
            Section("Morphemes", list(morpheme_elements(measured, note))),
            Section("Failures", list(failure_elements(artifact))),
        ),
    )


def speed_in_words(artifact: Artifact) -> str:
    seconds = _seconds(artifact)
    if not seconds:
        return "Total duration unknown: run.json is missing, or the run was resumed."
    workers = artifact.run.get("workers")
    with_workers = f" with {workers} worker{'' if workers == 1 else 's'}" if workers else ""
    morphemes = artifact.record["counts"].get("morphemes")
    speed = f": {formatting.compact(morphemes / seconds)} morphemes/s, startup included" if morphemes else ""
    return f"Kiwi took {formatting.duration(seconds)}{with_workers}{speed}."


def measure(morpheme_batches: Iterator[pa.RecordBatch]) -> _Measured:
    measured = _Measured()
    for batch in morpheme_batches:
        tags = batch.column("tag")
        measured.morphemes.add(batch.column("source"), pc.list_value_length(tags))
        for entry in pc.value_counts(tags.flatten()).to_pylist():
            measured.tags[entry["values"]] += entry["counts"]

        # A sentence or eojeol starts where its number or the document changes. All three: (morphemes of the batch,).
        document = pc.list_parent_indices(tags).to_numpy()
        sentence, eojeol = (np.asarray(batch.column(name).flatten().to_numpy()) for name in ("sentence", "eojeol"))
        next_document = np.diff(document, prepend=-1)
        sentence_starts = np.flatnonzero(next_document | np.diff(sentence, prepend=-1))
        eojeol_starts = np.flatnonzero(next_document | np.diff(eojeol, prepend=-1))

        sentences = np.bincount(document[sentence_starts], minlength=batch.num_rows)
        measured.sentences.add(batch.column("source"), pa.array(sentences))
        sizes = np.minimum(np.diff(eojeol_starts, append=len(document)), _EOJEOL_MORPHEMES)
        measured.eojeols += np.bincount(sizes, minlength=_EOJEOL_MORPHEMES + 1)
    return measured


def morpheme_elements(measured: _Measured, note: str) -> Iterator[Element]:
    total = measured.tags.total()
    if not total:
        return
    top = list(most_frequent(measured.tags).items())[:_TOP_TAGS]
    yield ranked_bars(
        "Most frequent tags",
        ((f"{tag} {_gloss(tag)}".rstrip(), number) for tag, number in top),
        lambda number: formatting.percent(number / total),
        note=f"{note}Share of {formatting.count(total)} morphemes.",
        korean=True,
    )
    mean = formatting.ratio(total, int(measured.eojeols.sum()))
    yield columns(
        "Morphemes per eojeol",
        measured.eojeols[1:].tolist(),
        x=f"morphemes ({_EOJEOL_MORPHEMES}: {_EOJEOL_MORPHEMES} or more)",
        y="eojeols",
        first=1,
        note=f"{note}Mean: {formatting.decimal(mean)}.",
    )


def _gloss(tag: str) -> str:
    """The Korean name of a tag. The suffixes -I and -R mark irregular and regular verbs and adjectives (VV-I)."""
    stem, _, irregular = tag.partition("-")
    return _TAGS.get(stem, "") + {"I": ", 불규칙", "R": ", 규칙"}.get(irregular, "")


def failure_elements(artifact: Artifact) -> Iterator[Element]:
    totals: Counter[str] = Counter()
    samples: dict[str, list[Entry]] = {}
    for batch in batches(artifact.parts("failed/*.parquet"), ["id", "source", "reason", "detail"]):
        for row in batch.to_pylist():
            totals[row["reason"]] += 1
            if totals[row["reason"]] <= _SAMPLES:
                facts = [(name, row[name]) for name in ("source", "detail") if row[name]]
                samples.setdefault(row["reason"], []).append(Entry(row["id"], facts=facts))
    reasons = most_frequent(totals)
    if reasons:
        rows = [(label(reason), formatting.count(number)) for reason, number in reasons.items()]
        yield Table("Failed documents", ("reason", "documents"), rows, "lr")
    for reason in reasons:
        yield Folded(f"{label(reason)} · {len(samples[reason])} shown", samples[reason])
