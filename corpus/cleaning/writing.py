"""Writing, the third step of cleaning: each part of rows becomes a part of documents and a part of dropped rows."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from korbert.corpus.cleaning.filters import too_short
from korbert.corpus.cleaning.frequent_lines import without_lines
from korbert.corpus.corpus_settings import CleanSettings
from korbert.corpus.execution.parts import (
    ROW_GROUP_ROWS,
    OutputPart,
    keep_only,
    key_of,
    read_table,
    write_parquet,
)
from korbert.corpus.execution.workers import Workers, run_parts

_SUMS = ("read", "documents", "dropped", "chars")


def write_documents(
    settings: CleanSettings,
    parts: Sequence[OutputPart],
    removals: Mapping[str, Path],
    output: Path,
    workers: int | Workers,
) -> dict[str, int]:
    """Writes documents/ and dropped/, a part in each for every part of rows. Returns their counts.

    removals: the files that `deduplicate` returns.
    """
    key = key_of(settings, *(part.key for part in parts))
    work = {OutputPart(output, "write", part.name, key): (i, removals, settings) for i, part in enumerate(parts)}
    totals = run_parts("clean: write", _write_part, work, workers=workers)
    for folder in ("documents", "dropped"):
        keep_only(output / folder, [f"{part.name}.parquet" for part in work])
    if "frequent_lines" not in removals:
        keep_only(output / "frequent", ())
    names = [*_SUMS, *sorted(totals.keys() - set(_SUMS))]  # sums before their parts
    return {name: totals[name] for name in names}


def _write_part(part: OutputPart, number: int, removals: Mapping[str, Path], settings: CleanSettings) -> dict[str, int]:
    # The findings of deduplication are marked in the rows, and frequent lines cut out of their texts.
    table = read_table(part.scratch("read"))
    cut_counts: dict[str, int] = {}
    for reason, path in removals.items():
        # Only the row groups that hold the part are read.
        removed_rows = read_table(path, filters=[("part", "=", number)])
        if reason == "frequent_lines":
            table, cut_counts = _without_lines(table, removed_rows, settings)
        else:
            details = removed_rows[removed_rows.schema.names[-1]].to_pylist()
            table = _drop_rows(table, removed_rows["position"].to_numpy(), reason, details)

    # Rows without a reason are documents.
    documents = table.filter(pc.is_null(table["reason"])).select(["id", "source", "text"])
    dropped = table.filter(pc.is_valid(table["reason"])).select(["id", "source", "reason", "detail", "text"])
    files = [
        write_parquet(part.output / folder / f"{part.name}.parquet", rows, part.output, ROW_GROUP_ROWS)
        for folder, rows in (("documents", documents), ("dropped", dropped))
    ]

    chars = pc.sum(pc.utf8_length(documents["text"])).as_py() or 0
    counts = {"read": table.num_rows, "documents": documents.num_rows, "dropped": dropped.num_rows, "chars": chars}
    for prefix, column in (("kept", documents["source"]), ("dropped", dropped["reason"])):
        counts |= {f"{prefix}.{pair['values']}": pair["counts"] for pair in column.value_counts().to_pylist()}
    return part.finish(files, counts | cut_counts)


def _drop_rows(table: pa.Table, positions: np.ndarray, reason: str, details: Sequence[str]) -> pa.Table:
    """Returns the table with `reason` and `details` set in the rows at `positions`."""
    for name, values in (("reason", [reason] * len(positions)), ("detail", details)):
        column = np.array(table[name].to_pylist(), object)
        column[positions] = values
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(column, pa.string()))
    return table


def _without_lines(table: pa.Table, lines: pa.Table, settings: CleanSettings) -> tuple[pa.Table, dict[str, int]]:
    """Cuts `lines` out of the texts of the table. A document of which too little is left is dropped.

    Returns the table, and the numbers of documents and lines that were cut.
    """
    if not lines.num_rows:
        return table, {}
    texts = np.array(table["text"].to_pylist(), object)
    positions, starts = np.unique(lines["position"].to_numpy(), return_index=True)
    details: dict[int, str] = {}  # of dropped documents, by position
    num_cut = 0
    for position, numbers in zip(positions, np.split(lines["line"].to_numpy(), starts[1:]), strict=True):
        remaining_text = without_lines(texts[position], numbers.tolist())
        if too_short(remaining_text, settings.filters):
            details[position] = str(len(numbers))
        else:
            texts[position] = remaining_text
            num_cut += len(numbers)
    column = pa.array(texts, pa.large_string())
    table = table.set_column(table.schema.get_field_index("text"), "text", column)
    table = _drop_rows(table, np.array(list(details), np.int64), "frequent_lines", list(details.values()))
    return table, {"cut.documents": len(positions) - len(details), "cut.lines": num_cut}
