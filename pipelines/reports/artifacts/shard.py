"""The page of `shard`: training and held-out pieces by source, document lengths."""

import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from korbert.messages import Message
from korbert.pipelines.artifacts import Artifact, ShownFigure, formatting, stream
from korbert.pipelines.reports.drawing import Section, Story, TableElement, Use, length_table


def use(folder: Path) -> Use:
    """Usage: how far the shards reach in pretraining, and the counts of their pieces."""
    recipe = shlex.quote(folder.absolute().parent.name)
    return Use(
        "pieces.parquet",
        f"korbert plan {recipe} --hours 8",
        "import pandas as pd\nprint(pd.read_parquet({}).nlargest(20, 'count'))",
    )


def figures(artifact: Artifact) -> Sequence[ShownFigure]:
    counts = artifact.record["counts"]
    return (
        ShownFigure(formatting.compact(counts["pieces"] - counts["heldout_pieces"]), Message("training pieces")),
        ShownFigure(
            formatting.compact(counts["documents"] - counts["heldout_documents"]), Message("training documents")
        ),
        ShownFigure(formatting.compact(counts["heldout_pieces"]), Message("held-out pieces")),
    )


def story(artifact: Artifact) -> Story:
    counts = artifact.record["counts"]
    pieces, documents = (counts[key] - counts[f"heldout_{key}"] for key in ("pieces", "documents"))
    mean = formatting.decimal(formatting.ratio(pieces, documents), 1)
    lengths = length_table(artifact.parts("train/*.arrow"), "input_ids", pc.list_value_length, Message("pieces"))
    return Story(
        title=Message("{pieces} training pieces", pieces=formatting.compact(pieces)),
        lede=Message(
            "{mean} pieces per document on average; {share} of all pieces are held out.",
            mean=mean,
            share=formatting.percent(formatting.ratio(counts["heldout_pieces"], counts["pieces"])),
        ),
        sections=(
            Section(Message("Sources"), [source_table(artifact)]),
            Section(Message("Lengths"), list(lengths)),
        ),
    )


def source_table(artifact: Artifact) -> TableElement:
    """Documents and pieces of each split and source. Reads only the offsets of the documents, not their ids."""
    rows = []
    for split, name in (("train", Message("training")), ("heldout", Message("held out"))):
        documents = Counter[str]()
        pieces = Counter[str]()
        for batch in stream(artifact.parts(f"{split}/*.arrow")):
            sizes = pc.list_value_length(batch.column("input_ids"))
            table = pa.table({"source": batch.column("source"), "pieces": sizes})
            for row in table.group_by("source").aggregate([("pieces", "sum"), ("pieces", "count")]).to_pylist():
                documents[row["source"]] += row["pieces_count"]
                pieces[row["source"]] += row["pieces_sum"]
        for source, number in sorted(documents.items()):
            mean = formatting.decimal(pieces[source] / number, 1)
            rows.append((name, source, formatting.count(number), formatting.count(pieces[source]), mean))
    return TableElement(
        Message("Documents and pieces"),
        (
            Message("split"), Message("source"), Message("documents"), Message("pieces"), Message("pieces / document"),
        ),
        rows,
        "lnrrr",
    )  # fmt: skip
