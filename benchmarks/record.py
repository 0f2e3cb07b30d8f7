"""The figures of benchmarks as JSON, one file each in benchmarks/results/, from which `make results` writes RESULTS.md.

A file holds:

- title, subject, page (which tables RESULTS.md shows, of what rows and columns), note and archive: they stay when a
  benchmark runs again
- command, commit, processor, date: null where nobody wrote it down
- tables: each with title, columns and rows
- sentences: what has to be known to read the tables
"""

import argparse
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from korbert.system.processor import cores, processor_name

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "benchmarks" / "results"


def add_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--record", type=Path, metavar="FOLDER", help="keep the figures there, as benchmarks/results")


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> dict[str, Any]:
    """A table as `write` takes it. Figures are text, so that each has the digits that it deserves."""
    return {"title": title, "columns": list(columns), "rows": [[str(cell) for cell in row] for row in rows]}


def write(folder: Path | None, name: str, tables: Sequence[dict[str, Any]], sentences: Sequence[str] = ()) -> None:
    """Writes folder/NAME.json with the tables, and how and when they were measured. Nothing without a folder."""
    if folder is None:
        return
    existing = FOLDER / f"{name}.json"
    result: dict[str, Any] = {"title": name, "subject": None}
    if existing.exists():
        result = json.loads(existing.read_text("utf-8"))
    result["command"] = command_line(sys.orig_argv)
    result["commit"] = commit()
    result["processor"] = f"{processor_name()}, {cores()} cores"
    result["date"] = date.today().isoformat()
    result["tables"] = list(tables)
    result["sentences"] = list(sentences)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(dumped(result), "utf-8")


def command_line(words: Sequence[str]) -> str:
    """The command without what is about this machine: folders of absolute paths, and where its figures were put."""
    parts = ["python"]
    for word in words[1:]:
        parts.append(Path(word).name if Path(word).is_absolute() else word)
    if "--record" in parts:
        position = parts.index("--record")
        del parts[position : position + 2]
    return shlex.join(parts)


def commit() -> str | None:
    """The commit of the code, with a plus sign if files differ from it. None outside a clone."""
    try:
        head = subprocess.run(["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, capture_output=True, text=True)
        changes = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True)
    except OSError:  # no git
        return None
    if head.returncode:
        return None
    return head.stdout.strip() + ("+" if changes.stdout else "")


def dumped(result: dict[str, Any]) -> str:
    """JSON with a row of a table on each line."""
    text = json.dumps(result, ensure_ascii=False, indent=2)
    for row in re.findall(r"\[\n[^][{}]*\]", text):
        text = text.replace(row, json.dumps(json.loads(row), ensure_ascii=False))
    return text + "\n"
