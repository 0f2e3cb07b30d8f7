"""What is right where a command says that all went well, by other means than its own."""

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.hostile.pipeline import record_of
from tests.running import Outcome

Oracle = Callable[[Path, Outcome], Iterator[str]]  # the folder of the case -> what is wrong

_BESIDE = {"stage.json", "run.json", "plan.json", "timing.jsonl", "tensorboard", "report.html", "work", "checkpoints"}


def strict_json(text: str) -> Any:
    """JSON as the standard has it. Raises ValueError for NaN and Infinity, too."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def artifact_is_whole(artifact: Path) -> Iterator[str]:
    """As docs/formats.md has it: the files of the record and no others, and the digest over what made them."""
    record = record_of(artifact)
    found = {}
    for path in artifact.rglob("*"):
        name = path.relative_to(artifact).as_posix()
        if path.is_file() and name.split("/")[0] not in _BESIDE:
            found[name] = {"size": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    if found != record["files"]:
        yield f"{artifact.name}: its files are not those of its record"
    covered = {key: record[key] for key in ("format", "stage", "stage_version", "settings", "inputs", "files")}
    text = json.dumps(covered, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    if hashlib.sha256(text.encode()).hexdigest() != record["digest"]:
        yield f"{artifact.name}: its digest is not that of its record"


def stage_is_right(stage: str, name: str = "tiny") -> Oracle:
    def check(folder: Path, outcome: Outcome) -> Iterator[str]:
        artifact = folder / "artifacts" / name / stage
        if not (artifact / "stage.json").is_file():
            yield f"{artifact} is not there"
            return
        yield from artifact_is_whole(artifact)
        counts = record_of(artifact)["counts"]
        if stage == "clean":
            yield from _documents_are_right(artifact, counts)
        if stage == "analyze":
            rows = sum(pq.read_metadata(path).num_rows for path in (artifact / "morphemes").iterdir())
            if counts["documents"] != rows:
                yield f"analyze counts {counts['documents']} documents, its files hold {rows}"

    return check


def _documents_are_right(artifact: Path, counts: dict[str, Any]) -> Iterator[str]:
    documents = pq.read_table(artifact / "documents").to_pylist()
    dropped = pq.read_table(artifact / "dropped").to_pylist()
    reasons = sum(number for name, number in counts.items() if name.startswith("dropped."))
    if not counts["read"] == counts["documents"] + reasons == len(documents) + len(dropped):
        told = f"clean read {counts['read']} rows, kept {counts['documents']} and dropped {reasons}"
        yield f"{told}; its files hold {len(documents)} and {len(dropped)}"
    if len({one["id"] for one in documents}) < len(documents):
        yield "an id stands twice in documents"
    for one in documents:
        if not unicodedata.is_normalized("NFC", one["text"]) or "\x1b" in one["text"] or "\x00" in one["text"]:
            yield f"document {one['id']} is not normalised"
    for one in dropped:
        if not one["reason"]:
            yield "a document was dropped without a reason"


def json_lines(count: int | None = None) -> Oracle:
    """Standard output is so many lines of JSON."""

    def check(folder: Path, outcome: Outcome) -> Iterator[str]:
        lines = outcome.out.split("\n")[:-1]
        for line in lines:
            try:
                strict_json(line)
            except ValueError as error:
                yield f"{line[:80]!r}: {error}"
        if count is not None and len(lines) != count:
            yield f"{len(lines)} lines for {count}"

    return check


def scores_fit(folder: Path, outcome: Outcome) -> Iterator[str]:
    """`score`: two percentages."""
    found = strict_json(outcome.out)
    if set(found) != {"exact_match", "f1"} or not all(0 <= value <= 100 for value in found.values()):
        yield f"{outcome.out[:80]!r} are no scores"


def answers_fit(questions: str, answers: str) -> Oracle:
    """`submit`: a text for each id of the file."""

    def check(folder: Path, outcome: Outcome) -> Iterator[str]:
        content = json.loads((folder / questions).read_bytes().decode("utf-8-sig"))
        ids = {qa["id"] for one in content["data"] for paragraph in one["paragraphs"] for qa in paragraph["qas"]}
        found = strict_json((folder / answers).read_text(encoding="utf-8"))
        if set(found) != ids or not all(isinstance(text, str) for text in found.values()):
            yield "the answers are not to the questions of the file"

    return check


def guesses_fit(folder: Path, outcome: Outcome) -> Iterator[str]:
    """`fill`: something is said, and every probability in it is one."""
    for found in re.findall(r"(?<![\d.])\d+\.\d{4}(?!\d)", outcome.out):
        if not 0 <= float(found) <= 1:
            yield f"probability {found}"
    if "nan" in outcome.out.lower():
        yield "a probability that is no number"
