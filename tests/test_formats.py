"""docs/formats.md against the code and, where `make demo` has left them, the demo's artifacts; tables of settings."""

import importlib.util
import json
import re
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from korbert.corpus import counts, morphemes, shards
from korbert.corpus.cleaning.filters import FILTERS
from korbert.pipelines.artifacts import store
from korbert.pipelines.stages.table import STAGES
from korbert.tasks.kinds import KINDS
from korbert.tasks.metrics.misses import Cause

ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / "artifacts" / "demo"
_HOOKS = importlib.util.spec_from_file_location("docs_hooks", ROOT / "docs" / "hooks.py")
hooks = importlib.util.module_from_spec(_HOOKS)
_HOOKS.loader.exec_module(hooks)

_TASKS = ("nsmc", "korquad")  # stages whose keys are those of a task
_PART = re.compile(r"part-\d+")
_METRICS = re.compile(r"metrics/\w+-rate-[\d.e-]+-seed-\d+\.jsonl")
_FOLDERS = ("model", "tokenizer")  # have sections of their own


_PARTS = re.split(r"^## (.+)$", (ROOT / "docs" / "formats.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
SECTIONS = dict(zip(_PARTS[1::2], _PARTS[2::2], strict=True))  # heading -> text


def named(section):
    """What stands in code marks in a section: whole, and word by word."""
    text = SECTIONS[section] + (SECTIONS["tasks"] if section in _TASKS else "")
    marked = re.findall(r"`([^`\n]+)`", text)
    return {*marked, *(word for text in marked for word in re.findall(r"[\w*./-]+", text))}


@pytest.mark.parametrize("section", [*STAGES, "tasks"])
def test_every_setting_is_described(section):
    rows = [re.fullmatch(r"\| `(.+?)` \| (.+?) \| (.*) \|", line) for line in [*hooks.settings_table(section)][2:]]
    assert rows
    assert [row[1] for row in rows if not row[3]] == []


def test_the_page_of_settings_has_all_sections():
    marks = {"<!-- settings -->", "<!-- settings: tasks -->"}
    assert marks <= {*(ROOT / "docs" / "settings.md").read_text(encoding="utf-8").splitlines()}
    headings = re.findall(r"^## (.+)$", hooks.settings_of_stages(), re.MULTILINE)
    assert headings == [*STAGES]


def test_the_korean_guide_has_all_stages():
    assert "<!-- stages -->" in (ROOT / "docs" / "ko" / "guide.md").read_text(encoding="utf-8").splitlines()
    rows = [*hooks.korean_stages()][2:]
    assert [row.split("`")[1] for row in rows] == [*STAGES]
    assert all(re.search("[가-힣]", row) for row in rows)


def test_tables_of_settings_open_what_is_inside():
    table = [*hooks.settings_table("clean")]
    assert "| `clean.sources.name` | needed | short name in lower case: wiki, reviews |" in table
    assert any(line.startswith("| `clean.filters.min_chars` | `10` | ") for line in table)
    own = [line.split("`")[1] for line in [*hooks.settings_table("nsmc")][2:]]
    assert "nsmc.label_names" in own
    assert "nsmc.batch_size" not in own  # as in every other task


def test_kinds_with_another_default_or_a_key_of_their_own_are_named():
    lines = [*hooks.settings_table("tasks")][2:]
    rows = dict(re.fullmatch(r"\| `tasks\.NAME\.(.+?)` \| (.+) \|", line).groups() for line in lines)
    assert rows["max_length"].startswith("`128` | ")
    assert rows["max_length"].endswith("(question-answering, slots: `384`)")
    assert rows["several"].endswith("(classification)")
    for name, entry in KINDS.items():
        for key, default, _ in hooks.settings_rows(entry.section_class, "x"):
            row = rows[key.removeprefix("x.")]
            assert row.startswith(default) or re.search(rf"{name}[^:;]*: {re.escape(default)}", row) or key == "x.kind"


def test_what_the_code_writes_is_there():
    assert {*STAGES, "tasks"} <= set(SECTIONS)
    around = named("Around all artifacts")
    assert {*store.Plan("clean", 1, {}, {}).as_json(), "files", "counts", "versions", "numerics", "digest"} <= around
    assert {store.RECORD, store.RUN, store.PLAN} <= around
    assert {name.removesuffix("/") for name in store.BESIDE} <= {name.removesuffix("/") for name in around}
    assert set(morphemes.SCHEMA.names) <= named("analyze")
    assert set(counts._SCHEMA.names) <= named("vocab")
    assert set(shards.SCHEMA.names) <= named("shard")
    assert set(get_args(Cause)) <= named("tasks")


def test_every_reason_to_drop_is_there():
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "corpus").rglob("*.py"))
    reasons = set(re.findall(r'"(bad_\w+|\w+_duplicate|contaminated|frequent_lines|template_made|too_long)"', sources))
    reasons |= {entry.reason for entry in FILTERS}
    assert len(reasons) >= 22
    assert reasons <= named("clean")


@pytest.mark.parametrize("stage", STAGES)
def test_all_that_the_demo_has_is_named(stage):
    """Every file, every field in it, the counts, and the numerics of a training."""
    folder = DEMO / stage
    record = store.read_json(folder / store.RECORD)
    if record is None:
        pytest.skip(f"{folder} is absent: `make demo` makes it")
    missing = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        section, name = _where(stage, path.relative_to(folder).as_posix())
        missing += [(section, path.name, key) for key in (name, *_fields(path)) if key not in named(section)]
    assert missing == []
    shown = [re.sub(r"^(kept|dropped|masked)\..+", r"\1.", key) for key in record["counts"]]
    known = named(stage) | ({"kept.", "dropped.", "masked."} if stage == "clean" else set())
    assert [key for key in shown if key not in known] == []
    if STAGES[stage].trains:
        assert set(record["numerics"]) <= named("Around all artifacts")


def _where(stage, name):
    """The section that has to name a file, and how."""
    if name == "timing.jsonl":
        return stage, name
    if name in store.BESIDE or name.startswith("tensorboard/"):
        return "Around all artifacts", "tensorboard/" if "/" in name else name
    *outer, last = name.split("/")
    if outer[:2] == ["submission", "korbert"]:
        return stage, "korbert/"
    if outer and outer[-1] in _FOLDERS:
        return f"{outer[-1].capitalize()} folder", last
    if outer == ["submission"]:
        return stage, last
    return stage, _METRICS.sub("metrics/NAME-rate-RATE-seed-SEED.jsonl", _PART.sub("part-*", "/".join([*outer, last])))


def _fields(path):
    """Columns of a table, keys of JSON objects and of the objects directly in them; nothing for other files."""
    if path.suffix == ".parquet":
        yield from pq.read_schema(path).names
    elif path.suffix == ".arrow":
        yield from pa.ipc.open_stream(path).schema.names
    elif path.suffix == ".jsonl":
        yield from {key for line in path.read_text(encoding="utf-8").splitlines() for key in json.loads(line)}
    elif path.suffix == ".json" and path.name != "predictions.json":
        value = json.loads(path.read_text(encoding="utf-8"))
        yield from _keys(value[0] if isinstance(value, list) else value, path.name)


_OPEN = {"head", "vocabulary", "rows", "models", "details", "misses", "trials", "by_cause"}


def _keys(value, name):
    for key, inner in value.items():
        yield "validation_METRIC" if key.startswith("validation_") else key
        first = inner[0] if isinstance(inner, list) and inner else inner
        if isinstance(first, dict) and (key in _OPEN or (name == "scores.json" and key == "counts")):
            yield from _keys(first, name)
