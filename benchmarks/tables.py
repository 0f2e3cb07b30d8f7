"""Writes benchmarks/RESULTS.md from the figures in benchmarks/results/ (`make results`)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SECTIONS = (  # the files of results/ that RESULTS.md shows, in its order; it links to the others
    "demo",
    "third-edition",
    "trials",
    "pretraining-full",
    "gpu",
    "tasks",
    "questions",
    "heads",
    "slots",
    "search-model",
    "index-engines",
    "damaged-index",
    "embedding",
    "eight-bits",
    "vocabulary",
    "filters-review",
    "clean-rivals",
    "analyze",
    "mutations",
)
INTRODUCTION = """\
# Results

Written by `make results` from `benchmarks/results/`, one file of JSON for each measurement, which has more tables than
this page. Machines were shared, so compare ratios rather than absolute times. What was tried and why is in the notes;
the [archive](archive/2026-11-28.md) has all that was written until 28 November 2026, with every condition, and what
came [before](archive/2026-11.md). Commands are as they ran: `benchmarks/NAME.py` of then is in `benchmarks/speed/`,
`quality/` or `damage/` now, and runs as `python -m benchmarks.speed.NAME`.
Nothing that is not listed has been measured, above all an index of more than a million texts, and several GPUs (NCCL).
"""


def read_results(folder: Path = HERE / "results") -> dict[str, dict[str, Any]]:
    """The results of all files, by their names."""
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))}


def page(results: dict[str, dict[str, Any]]) -> str:
    """The text of RESULTS.md."""
    parts = [INTRODUCTION]
    for name in SECTIONS:
        parts.append("\n".join(section(name, results[name])))
    parts.append("\n".join(others(results)))
    return "\n".join(parts)


def section(name: str, result: dict[str, Any]) -> Iterator[str]:
    yield f"## {result['title']}"
    yield " ".join([measured(result), *result["sentences"], links(name, result)])
    for shown in result["page"]:
        yield ""
        yield from lines_of(result, shown)
    yield ""


def measured(result: dict[str, Any]) -> str:
    """Says how and when the figures were measured, and which of these facts are not recorded."""
    parts = []
    if result["command"]:
        parts.append(f"`{result['command']}`")
    if result["commit"]:
        parts.append(f"commit {result['commit']}")
    parts += [result[key] for key in ("processor", "date") if result[key]]
    missing = [key for key in ("command", "commit", "processor", "date") if not result[key]]
    if missing:
        parts.append(f"not recorded: {', '.join(missing)}")
    return "; ".join(parts) + "."


def links(name: str, result: dict[str, Any]) -> str:
    parts = [f"[All tables](results/{name}.json)"]
    if result["note"]:
        parts.append(f"[notes](notes/{result['note']})")
    if result["archive"]:
        parts.append(f"[in full](archive/{result['archive']})")
    return ", ".join(parts) + "."


def lines_of(result: dict[str, Any], shown: dict[str, Any]) -> Iterator[str]:
    """A table in Markdown: the rows (by their first cell) and columns that `shown` names, or all of them."""
    tables = {one["title"]: one for one in result["tables"]}
    table = tables[shown["table"]]
    columns = shown.get("columns", table["columns"])
    rows = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
    if "rows" in shown:
        by_name = {row[table["columns"][0]]: row for row in rows}
        rows = [by_name[name] for name in shown["rows"]]
    yield line(columns)
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield line([row[column] for column in columns])


def line(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def others(results: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Links to the files that have no section here, by subject."""
    yield "## More figures"
    yield ""
    for subject in dict.fromkeys(result["subject"] for result in results.values()):
        named = [
            f"[{result['title']}](results/{name}.json)"
            for name, result in results.items()
            if result["subject"] == subject and name not in SECTIONS
        ]
        if named:
            yield f"- **{subject}**: {' · '.join(named)}"
    yield ""


if __name__ == "__main__":
    (HERE / "RESULTS.md").write_text(page(read_results()), "utf-8")
