"""The page of `shard`: training and held-out pieces by source, document lengths."""

import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from korbert.messages import Message
from korbert.pipelines.artifacts import formatting
from korbert.pipelines.artifacts.figures import Figure
from korbert.pipelines.artifacts.record import Artifact, sampled, stream
from korbert.pipelines.reports.drawing import Section, Story, Table, Use, length_table


def use(folder: Path) -> Use:
    """Usage: how far they reach in pretraining, and the counts of their pieces."""
    recipe = shlex.quote(folder.absolute().parent.name)
    counts = "import pandas as pd\nprint(pd.read_parquet({}).nlargest(20, 'count'))"
    return Use("pieces.parquet", f"korbert plan {recipe} --hours 8", counts)


def figures(artifact: Artifact) -> Sequence[Figure]:
    counts = artifact.record["counts"]
    return (
        Figure(formatting.compact(counts["pieces"] - counts["heldout_pieces"]), Message("training pieces")),
        Figure(formatting.compact(counts["documents"] - counts["heldout_documents"]), Message("training documents")),
        Figure(formatting.compact(counts["heldout_pieces"]), Message("held-out pieces")),
    )


def story(artifact: Artifact) -> Story:
    counts = artifact.record["counts"]
    pieces, documents = (counts[key] - counts[f"heldout_{key}"] for key in ("pieces", "documents"))
    mean = formatting.decimal(formatting.ratio(pieces, documents), 1)
    parts, note = sampled(artifact.parts("train/*.arrow"))
    lengths = ((batch.column("source"), pc.list_value_length(batch.column("input_ids"))) for batch in stream(parts))
    heldout_share = formatting.percent(formatting.ratio(counts["heldout_pieces"], counts["pieces"]))
    return Story(
        title=Message("{pieces} training pieces", pieces=formatting.compact(pieces)),
        lede=Message(
            "{mean} pieces per document on average; {share} of all pieces are held out.", mean=mean, share=heldout_share
        ),
        sections=(
            Section(Message("Sources"), [source_table(artifact)]),
            Section(Message("Lengths"), list(length_table(lengths, Message("pieces"), note))),
        ),
    )


def source_table(artifact: Artifact) -> Table:
    """Documents and pieces of each split and source. Reads only the offsets of the documents, not their ids."""
    rows = []
    for split, name in (("train", Message("training")), ("heldout", Message("held out"))):
        documents, pieces = Counter[str](), Counter[str]()
        for batch in stream(artifact.parts(f"{split}/*.arrow")):
            sizes = pc.list_value_length(batch.column("input_ids"))
            table = pa.table({"source": batch.column("source"), "pieces": sizes})
            for row in table.group_by("source").aggregate([("pieces", "sum"), ("pieces", "count")]).to_pylist():
                documents[row["source"]] += row["pieces_count"]
                pieces[row["source"]] += row["pieces_sum"]
        for source in sorted(documents):
            counts = documents[source], pieces[source]
            rows.append((name, source, *map(formatting.count, counts), formatting.decimal(counts[1] / counts[0], 1)))
    head = (
        Message("split"), Message("source"), Message("documents"), Message("pieces"), Message("pieces / document"),
    )  # fmt: skip
    return Table(Message("Documents and pieces"), head, rows, "lnrrr")
