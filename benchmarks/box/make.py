"""Makes the models of the box from raw text and named teachers: `make box`, or

    python -m benchmarks.box.make --data $KORBERT_DATA --work FOLDER [--only MODEL ..] [--set NAME=VALUE ..]

The steps are those of steps.toml; `--dry-run` prints them as a table, with their commands below. A step whose product
is there is skipped, and one that was interrupted goes on where its command does. FOLDER/box receives the models, and
FOLDER/made.json says of each step its command, and where and when it ran. With --encoder korbert-mini nothing is
pretrained: the others are made from that model, which two cores can do in hours. With --reader korbert-mini-korquad,
or --tagger korbert-mini-ner, the next model of that kind goes on from that one, which takes them an hour.
"""

import argparse
import json
import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks import record
from korbert.system import write_json
from korbert.system.processor import processor_name

HERE = Path(__file__).parent
_PROGRAMS = {"korbert": ("-m", "korbert"), "python": ()}
_OF_ENCODER = {"all", "korbert-mini"}
_FIRST = {"reader": "first-reader", "tagger": "first-tagger"}  # what others go on from -> the step that makes it


@dataclass(frozen=True)
class Step:
    """A command and what it makes, both with names in braces. facts: as in steps.toml."""

    name: str
    makes: str
    run: str
    facts: Mapping[str, Any]

    @property
    def models(self) -> list[str]:
        return str(self.facts["model"]).split(", ")

    def command(self, values: Mapping[str, object]) -> list[str]:
        """The words of its command. KeyError for a name that has no value."""
        return [word.format_map(values) for word in shlex.split(self.run)]


def read_steps(
    only: Sequence[str] = (), *, pretrains: bool = True, given: Collection[str] = ()
) -> tuple[list[Step], dict[str, Any], dict[str, str]]:
    """The steps of some models and of the encoder that they need, all by default; the values; and the teachers.

    pretrains: False leaves the steps of the encoder out. given: those of _FIRST that need not be made.
    """
    table = tomllib.loads((HERE / "steps.toml").read_text("utf-8"))
    steps = [step for entry in table["step"] for step in _expanded(entry)]
    if only:
        steps = [step for step in steps if {*_OF_ENCODER, *only} & set(step.models)]
    if not pretrains:
        steps = [step for step in steps if not _OF_ENCODER & set(step.models)]
    steps = [step for step in steps if step.name not in {_FIRST[name] for name in given}]
    return steps, table["values"], table["teachers"]


def _expanded(entry: Mapping[str, Any]) -> Iterator[Step]:
    for item in entry.get("each", [""]):
        yield Step(*(entry[name].replace("{item}", str(item)) for name in ("name", "makes", "run")), facts=entry)


def table_of(steps: Sequence[Step]) -> str:
    columns = ("model", "step", "two cores, minutes", "H200, minutes", "adds", "differs from the box")
    lines = [f"| {' | '.join(columns)} |", "|" + " --- |" * len(columns)]
    for step in steps:
        facts = {name: step.facts.get(name, "") for name in ("two_cores", "h200", "adds", "differs")}
        minutes = [
            facts["two_cores"] or "not measured",
            facts["h200"] or "not measured" if step.facts.get("gpu") else "-",
        ]
        lines.append(f"| {' | '.join([step.facts['model'], step.name, *minutes, facts['adds'], facts['differs']])} |")
    return "\n".join(lines)


def folders(data: object, work: object, encoder: str | None, given: Mapping[str, str]) -> dict[str, object]:
    """What the steps name beside values and teachers.

    encoder: a packed model in the place of a pretrained one. given: models in the place of those of _FIRST.
    """
    return {
        "data": data,
        "work": work,
        "here": HERE,
        "encoder": encoder or f"{work}/encoder/pretrain",
        "base": encoder or f"{work}/box/korbert-mini",
        **{name: given.get(name, f"{work}/{step}") for name, step in _FIRST.items()},
    }


def make(steps: Sequence[Step], values: Mapping[str, object], work: Path) -> None:
    """Runs the steps whose product is not there. SystemExit for a product that another command made.

    CalledProcessError if a step fails.
    """
    (work / "box").mkdir(parents=True, exist_ok=True)
    for step in steps:
        command = step.command(values)
        record_path = work / "made.json"
        entries = json.loads(record_path.read_text("utf-8")) if record_path.exists() else {}
        if (work / step.makes).exists():
            command_before = entries.get(step.name, {}).get("command", "a command that made.json does not know")
            if step.name in entries and command_before != shlex.join(command):
                raise SystemExit(
                    f"{work / step.makes}: was made by {command_before}: remove it, or take another --work"
                )
            print(f"{step.name}: is there, made by {command_before}", flush=True)
            continue
        print(f"{step.name}: {shlex.join(command)}", flush=True)
        began = time.monotonic()
        subprocess.run([sys.executable, *_PROGRAMS[command[0]], *command[1:]], check=True)
        entries[step.name] = {
            "command": shlex.join(command), "commit": record.commit(), "processor": processor_name(),
            "date": date.today().isoformat(), "minutes": round((time.monotonic() - began) / 60, 1),
        }  # fmt: skip
        write_json(record_path, entries)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the files of docs/data.md")
    parser.add_argument("--work", type=Path, help="the folder of all products")
    parser.add_argument("--only", nargs="*", default=[], metavar="MODEL", help="models to make, with what they need")
    parser.add_argument("--encoder", metavar="MODEL", help="make the others from this packed encoder: pretrain none")
    for name, what in (("reader", "answers questions"), ("tagger", "finds entities")):
        parser.add_argument(f"--{name}", metavar="MODEL", help=f"go on from this model that {what}: make no first one")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", dest="changes")
    parser.add_argument("--dry-run", action="store_true", help="print the steps, and run nothing")
    arguments = parser.parse_args()
    encoder = arguments.encoder
    given = {name: model for name in _FIRST if (model := getattr(arguments, name))}
    steps, values, teachers = read_steps(arguments.only, pretrains=encoder is None, given=given)
    if unknown := set(arguments.only) - {model for step in read_steps()[0] for model in step.models}:
        parser.error(f"--only {' '.join(sorted(unknown))}: no such model")
    changes = dict(change.split("=", 1) for change in arguments.changes)
    if unknown := changes.keys() - values.keys() - teachers.keys():
        parser.error(f"--set {', '.join(unknown)}: there are {', '.join([*values, *teachers])}")
    if arguments.dry_run:
        placeholders: dict[str, object] = {name: f"<{about}>" for name, about in teachers.items()}
        placeholders |= folders("DATA", "WORK", encoder, given)
        print(table_of(steps))
        for step in steps:
            print(f"\n{step.name}:\n    {' '.join(step.command({**placeholders, **values, **changes}))}")
        return
    if arguments.data is None or arguments.work is None:
        parser.error("--data and --work: name both folders")
    missing = [name for name in teachers if name not in changes and any(f"{{{name}}}" in step.run for step in steps)]
    if missing:
        parser.error(f"--set {missing[0]}=FOLDER: name the teacher's folder: {teachers[missing[0]]}")
    named = folders(arguments.data.resolve(), arguments.work.resolve(), encoder, given)
    make(steps, {**named, **values, **changes}, arguments.work.resolve())


if __name__ == "__main__":
    main()
