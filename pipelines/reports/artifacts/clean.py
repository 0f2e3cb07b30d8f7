"""The page of `clean`: documents kept, drop reasons, and examples of dropped documents."""

import hashlib
from bisect import insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from korbert.messages import Message, join_messages
from korbert.pipelines.artifacts import Artifact, ShownFigure, batches, formatting, label, num_rows
from korbert.pipelines.reports.drawing import (
    Element,
    Example,
    Folded,
    Section,
    Story,
    TableElement,
    Use,
    length_table,
    ranked_bars,
)

_FREQUENT_LINES = 20  # frequent lines listed
_SAMPLES = 20  # dropped documents shown for each reason
_EXCERPT_CHARS = 320
_DUPLICATE = "_duplicate"  # suffix of the reasons whose detail is the id of the kept document
_CONTAMINATION = Message("Documents with text of an evaluation set were dropped, or the matching lines removed.")
_EXAMPLES = Message("Up to 20 per reason, sampled by hash of the id; duplicates with the document that was kept.")

_DETAILS = {  # reason -> what its detail, a measure, says
    "too_short": Message("{measure} visible characters"),
    "too_long": Message("{measure} characters"),
    "too_little_hangul": Message("Hangul share {measure}"),
    "too_many_symbols": Message("{measure} of the visible characters are symbols"),
    "mixed_languages": Message("{measure} of the visible characters are neither Hangul nor Latin"),
    "too_long_words": Message("words have {measure} characters on average"),
    "repeated_lines": Message("{measure} of the characters are in lines that repeat an earlier one"),
    "repeated_words": Message("the top n-gram of 2 to 4 words takes {measure} of its limit"),
    "repeated_passages": Message("repeated n-grams of 5 to 10 words take {measure} of their limit"),
    "boilerplate": Message("{measure} of the characters are in boilerplate"),
    "list_like": Message("{measure} of the lines end like a sentence"),
    "bullets": Message("{measure} of the lines begin with a bullet"),
    "frequent_lines": Message("lines removed: {measure}"),
    "template_made": Message("{measure} of its n-grams are in many documents"),
}


def detail_of(reason: str, detail: str) -> str:
    """The detail of a dropped document, in words where it is a measure."""
    if reason in _DETAILS and detail.replace(".", "").isdigit():
        return Message(_DETAILS[reason].template, measure=detail)
    return detail


def use(_folder: Path) -> Use:
    """Usage: questions from the documents, and the documents as a table."""
    return Use(
        "documents",
        "korbert questions {} --output questions.json",
        "import pandas as pd\nprint(pd.read_parquet({})[['id', 'source', 'text']])",
    )


def figures(artifact: Artifact) -> Sequence[ShownFigure]:
    kept, dropped = (artifact.record["counts"][key] for key in ("documents", "dropped"))
    return (
        ShownFigure(formatting.count(kept), Message("documents kept")),
        ShownFigure(_kept_share(kept, dropped), Message("of documents read")),
        ShownFigure(formatting.count(dropped), Message("documents dropped")),
    )


def _kept_share(kept: int, dropped: int) -> str:
    return formatting.percent(formatting.ratio(kept, kept + dropped))


def story(artifact: Artifact) -> Story:
    counts = artifact.record["counts"]
    drops = Counter[tuple[str, str]]()  # (reason, source) -> documents
    by_reason = Counter[str]()
    for batch in batches(artifact.parts("dropped/*.parquet"), ["reason", "source"]):
        columns = [column.to_pylist() for column in batch.columns]
        drops.update(zip(*columns, strict=True))
        by_reason.update(columns[0])
    reasons = dict(by_reason.most_common())
    lengths = length_table(artifact.parts("documents/*.parquet"), "text", pc.utf8_length, Message("characters"))
    masked = ranked_bars(
        Message("Occurrences masked, by kind"),
        ((label(kind), number) for kind, number in _by_name(counts, "masked").most_common()),
        formatting.count,
        note=Message("Over all rows read, including dropped ones."),
    )
    num_documents = counts["documents"] + counts["dropped"]
    most_common = Message("Nothing was dropped.")
    if reasons:
        most_common = Message("Most common drop reason: {reason}.", reason=label(next(iter(reasons))))
    return Story(
        title=Message("{share} of documents kept", share=_kept_share(counts["documents"], counts["dropped"])),
        lede=join_messages(
            [Message("{count:,} document read.", "{count:,} documents read.", count=num_documents), most_common], " "
        ),
        sections=(
            Section(Message("Dropped documents"), list(drop_elements(_by_name(counts, "kept"), drops, reasons))),
            Section(Message("Frequent lines"), list(frequent_lines(artifact))),
            Section(Message("Contamination"), list(contamination(counts)), _CONTAMINATION),
            Section(Message("Personal data"), list(masked)),
            Section(Message("Examples of dropped documents"), examples(artifact, reasons), _EXAMPLES),
            Section(Message("Kept documents"), list(lengths)),
        ),
    )


def _by_name(counts: Mapping[str, int], prefix: str) -> Counter[str]:
    """The counts whose names begin with the prefix, by names without it: dropped.too_short -> too_short."""
    dotted = f"{prefix}."
    return Counter({key.removeprefix(dotted): number for key, number in counts.items() if key.startswith(dotted)})


def drop_elements(kept: Counter[str], drops: Counter[tuple[str, str]], reasons: Mapping[str, int]) -> Iterator[Element]:
    """Yields a chart of the drop reasons and, with several sources, a table of documents by reason and source."""
    yield from ranked_bars(
        Message("Drop reasons"), ((label(reason), number) for reason, number in reasons.items()), formatting.count
    )
    sources = sorted(kept | Counter(source for _, source in drops))
    if len(sources) < 2:
        return

    rows = [(label(reason), *(formatting.count(drops[reason, source]) for source in sources)) for reason in reasons]
    rows.append((Message("kept"), *(formatting.count(kept[source]) for source in sources)))
    lost = {source: sum(drops[reason, source] for reason in reasons) for source in sources}
    rows.append((Message("share kept"), *(_kept_share(kept[source], lost[source]) for source in sources)))
    yield TableElement(
        Message("Documents by reason and source"), (Message("reason"), *sources), rows, "l" + "r" * len(sources)
    )


def frequent_lines(artifact: Artifact) -> Iterator[TableElement]:
    parts = artifact.parts("frequent/*.parquet")  # the most frequent line first
    if batch := next(batches(parts, ["text", "documents"]), None):
        lines = batch.slice(0, _FREQUENT_LINES).to_pylist()
        rows = [(excerpt(line["text"]), formatting.count(line["documents"])) for line in lines]
        remaining = num_rows(parts) - len(rows)
        note = Message("{more:,} more in the folder `frequent`.", more=remaining) if remaining else ""
        yield TableElement(
            Message("Frequent lines removed"), (Message("line"), Message("documents")), rows, "kr", note=note
        )


def contamination(counts: Mapping[str, int]) -> Iterator[TableElement]:
    rows = []
    for name in (key.split(".")[1] for key in counts if key.startswith("evaluation.") and key.endswith(".texts")):
        texts, searched, matched = (counts[f"evaluation.{name}.{kind}"] for kind in ("texts", "looked_for", "found"))
        row = (
            name,
            *map(formatting.count, (texts, searched, matched)),
            formatting.percent(formatting.ratio(matched, searched)),
            formatting.count(counts.get(f"contaminated.{name}", 0)),
        )
        rows.append(row)
    if rows:
        yield TableElement(
            Message("Evaluation texts found in the corpus"),
            (
                Message("evaluation set"), Message("texts"), Message("searched for"), Message("found"),
                Message("share found"), Message("documents"),
            ),
            rows,
            "nrrrrr",
            note=Message(
                "Texts that are too short or too repetitive are not searched for. Documents: number with a match."
            ),
        )  # fmt: skip


def examples(artifact: Artifact, reasons: Iterable[str]) -> list[Folded]:
    """Returns at most 20 dropped documents per reason; a duplicate comes with an excerpt of the kept original."""
    # Reason -> the rows with the lowest hashes of their ids, each with its hash.
    dropped: dict[str, list[tuple[bytes, dict[str, Any]]]] = {}
    for batch in batches(artifact.parts("dropped/*.parquet"), ["id", "source", "reason", "detail", "text"]):
        ids = batch.column("id").to_pylist()
        for index, (id, reason) in enumerate(zip(ids, batch.column("reason").to_pylist(), strict=True)):
            drawn = dropped.setdefault(reason, [])
            id_hash = hashlib.blake2b(str(id).encode(), digest_size=8).digest()
            if len(drawn) < _SAMPLES or id_hash < drawn[-1][0]:  # few rows: only these are converted
                (row,) = batch.slice(index, 1).to_pylist()
                row = {name: value or "" for name, value in row.items()}  # a bad record has no id
                insort(drawn, (id_hash, row), key=lambda sample: sample[0])
                del drawn[_SAMPLES:]
    duplicates = {row["detail"] for name in dropped if name.endswith(_DUPLICATE) for _, row in dropped[name]}
    # Id -> excerpt. All documents are read only if there are duplicates to compare.
    originals: dict[str, str] = {}
    for batch in batches(artifact.parts("documents/*.parquet"), ["id", "text"]) if duplicates else ():
        matching = batch.filter(pc.is_in(batch.column("id"), pa.array(sorted(duplicates), pa.string()))).to_pylist()
        originals.update((row["id"], excerpt(row["text"])) for row in matching)
    elements = []
    for reason in reasons:
        entries = []
        for _, row in dropped[reason]:
            text = excerpt(row["text"])
            size = "" if text == row["text"] else formatting.count(len(row["text"]))
            facts = [
                (Message("source"), row["source"]),
                (Message("detail"), detail_of(reason, row["detail"])),
                (Message("characters"), size),
                (Message("kept instead"), originals.get(row["detail"], "")),
            ]
            entries.append(Example(row["id"], text, [fact for fact in facts if fact[1]]))
        title = join_messages([label(reason), Message("{shown} shown", shown=len(entries))], " · ")
        elements.append(Folded(title, entries))
    return elements


def excerpt(text: str) -> str:
    """The first 320 characters, with an ellipsis if there are more."""
    return text if len(text) <= _EXCERPT_CHARS else text[:_EXCERPT_CHARS].rstrip() + " …"
