"""Compares ways of pretraining at equal wall time on one machine.

    python -m benchmarks.quality.trials benchmarks/quality/trials.toml --data DATA --root ROOT --minutes 10 [WAY ...]

The file names a recipe, a recipe of tasks, the way that the others are compared with, and `--set` lines for each way.
Everything is kept below ROOT, and the same command resumes after an interruption. There are four steps; --only runs a
single one:

1. calibrate. `korbert plan` times the steps of every way in separate processes, in rounds: first the base, then each
   way. The seconds of a way are those of the base times the median over rounds of their ratio in the same round, so
   that changes in machine speed favour none. They are kept in calibration.json; ways added later are timed against the
   base again. Stop all other work on the machine.
2. pretrain. The number of steps of a way is what fits into --minutes, with all phases scaled alike, and with them the
   warmup, which is a share. A number of steps is reproducible, a time is not. Evaluations, checkpoints and loading come
   on top. The measured seconds of the steps (timing.jsonl) are shown next to the planned ones.
3. score. Bits per character: the MLM loss on the held-out rows of the base, whatever the way's own rows are, with every
   chosen piece masked; in bits, times pieces per character of all held-out documents. Then the tasks, from the model,
   and once for each encoder from its initial weights (untrained).
4. table. trials.md and trials.svg, over all times below ROOT: scores times 100 with their standard deviation over all
   runs (pretraining seeds x fine-tuning seeds), and the gain over the untrained encoder. The last column names the
   tasks with a significant difference from the base of the same time, considering both seeds and test rows
   (korbert/tasks/metrics/statistics.py).

--shards reuses the stages clean to shard of an earlier run of the recipe (its folder, such as artifacts/small).
--threads 1 lets two of these commands, each with its own ways, share two cores after the calibration: the number of
steps is fixed, so that only the time changes.
"""

import argparse
import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Self

import torch
from pydantic import BaseModel, Field, model_validator

from benchmarks.quality.choices import heldout_chars, read_stage
from benchmarks.quality.trials_table import picture, table
from korbert.modeling import PretrainingModel, load_model, save_model
from korbert.pipelines.recipes import loading
from korbert.pipelines.stages.pretrain import ShardRows
from korbert.pipelines.stages.stage_settings import PretrainStage
from korbert.pretraining import PretrainingLoss, SpecialIds, evaluate, heldout_batches
from korbert.system.durable import read_json, write_bytes_atomically, write_json
from korbert.system.processes import die_with_parent
from korbert.system.processor import processor_name
from korbert.tokenization import Tokenizer
from korbert.tokenization.vocabulary import FIRST_PIECE

CORPUS = ("clean", "analyze", "vocab", "shard")


class Way(BaseModel, frozen=True, extra="forbid"):
    """A way of pretraining."""

    about: str = Field("", description="a remark for readers of the file")
    set: tuple[str, ...] = Field((), description="changes of the recipe's [pretrain], as `--set` takes them")
    seeds: tuple[int, ...] = Field((0,), min_length=1, description="seeds of pretraining, each a run of its own")
    steps_of: str = Field("", description="a way whose steps cost the same: this one gets as many, uncalibrated")


class Trials(BaseModel, frozen=True, extra="forbid"):
    """The file of trials. Its recipes are shipped ones, or files relative to it."""

    recipe: str = Field(description="what all ways change")
    tasks: str = Field(description="a recipe of tasks, all of which have an `init`")
    base: str = Field(description="the way that the others are compared with")
    set: tuple[str, ...] = Field((), description="changes of [pretrain] for all ways")
    ways: dict[str, Way]

    @model_validator(mode="after")
    def _ways_pretrain(self) -> Self:
        if self.base not in self.ways:
            raise ValueError(f"base {self.base!r} is none of the ways {', '.join(self.ways)}")
        if unknown := {way.steps_of for way in self.ways.values()} - {"", *self.ways}:
            raise ValueError(f"steps_of {unknown.pop()!r} is none of the ways {', '.join(self.ways)}")
        for change in (*self.set, *(change for way in self.ways.values() for change in way.set)):
            if not change.startswith("pretrain."):
                raise ValueError(f"{change}: the ways share their shards: change settings of pretrain only")
        return self

    @classmethod
    def load(cls, path: Path) -> Self:
        raw = tomllib.loads(path.read_text("utf-8"))
        local_files = {name: path.parent / str(raw.get(name, "")) for name in ("recipe", "tasks")}
        return cls.model_validate(raw | {name: str(file) for name, file in local_files.items() if file.is_file()})

    def changes(self, way: str) -> list[str]:
        return [*self.set, *self.ways[way].set]

    def settings(self, way: str) -> PretrainStage:
        return loading.load(self.recipe, self.changes(way)).section("pretrain")

    def first_like(self, way: str) -> str:
        """The first way with the same encoder, whose untrained scores are shared."""
        encoder = self.settings(way).encoder
        return next(name for name in self.ways if self.settings(name).encoder == encoder)

    def task_names(self) -> list[str]:
        return list(tomllib.loads(Path(self.tasks).read_text("utf-8"))["tasks"])


def korbert(command: str, recipe: str, *words: object, changes: Iterable[str] = ()) -> str:
    """The output of a command, run in a separate process. Signals are passed on, so that it saves its work and ends."""
    options = [word for change in changes for word in ("--set", change)]
    line = [sys.executable, "-m", "korbert", command, recipe, *map(str, words), *options]
    set_up = partial(die_with_parent, os.getpid())
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=set_up) as child:
        try:
            output, _ = child.communicate()
        except SystemExit:
            child.terminate()
            raise
    if child.returncode:
        sys.exit(child.returncode if child.returncode > 0 else 128 - child.returncode)
    return output


def link(path: Path, target: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.symlink_to(target.resolve())


def steps_within(seconds: float, recipe_seconds: float, steps: Sequence[int]) -> list[int]:
    """Steps of each phase, scaled alike, at least one each. recipe_seconds: time of the given steps."""
    return [max(1, round(number * seconds / recipe_seconds)) for number in steps]


@dataclass(frozen=True)
class Bench:
    """The trials below one root. minutes: training time of each way. threads: None: as the recipes say."""

    trials: Trials
    root: Path
    data: Path
    minutes: float
    threads: int | None = None

    @property
    def corpus(self) -> Path:
        return self.root / "corpus" / Path(self.trials.recipe).stem

    def place(self, way: str, seed: int) -> Path:
        return self.root / f"{self.minutes:g}" / f"{way}-{seed}"

    def made(self) -> list[tuple[str, float, list[Path]]]:
        """(way, minutes, folders of its finished runs), for all times below the root."""
        finished = []
        for minutes in sorted(float(path.name) for path in self.root.glob("[0-9]*")):
            places = replace(self, minutes=minutes).runs(self.trials.ways)
            for way, way_runs in groupby(places, key=lambda run: run[0]):
                finished_places = [
                    place for _, _, place in way_runs if (self.artifact(place, "pretrain") / "stage.json").exists()
                ]
                finished += [(way, minutes, finished_places)] if finished_places else []
        return finished

    def artifact(self, place: Path, stage: str) -> Path:
        recipe = self.trials.tasks if stage.startswith("tasks.") else self.trials.recipe
        return place / Path(recipe).stem / stage

    def runs(self, ways: Iterable[str]) -> Iterator[tuple[str, int, Path]]:
        return ((way, seed, self.place(way, seed)) for way in ways for seed in self.trials.ways[way].seeds)

    def prepare(self, shards: Path | None) -> None:
        """The stages that all ways share."""
        for stage in CORPUS if shards else ():
            link(self.corpus / stage, shards / stage)
        korbert("run", self.trials.recipe, "--root", self.corpus.parent, "--data", self.data, "--to", "shard")

    def calibrate(self, ways: Sequence[str], rounds: int, seconds: int) -> None:
        """Writes calibration.json: the seconds of the recipe's steps in each round, and the result for each way."""
        path, trials = self.root / "calibration.json", self.trials
        calibration = read_json(path) if path.exists() else {"processor": processor_name(), "rounds": [], "ways": {}}
        if calibration["processor"] != processor_name():
            sys.exit(f"{path}: is of {calibration['processor']}, this is {processor_name()}: take another --root here")
        ways = [trials.ways[way].steps_of or way for way in ways]
        ways = [way for way in dict.fromkeys([trials.base, *ways]) if way not in calibration["ways"]]
        rounds_done = [entry["seconds"] for entry in calibration["rounds"] if entry["ways"] == ways]
        while ways and len(rounds_done) < rounds:
            seconds_of_way = {}
            for way in dict.fromkeys([trials.base, *ways]):
                seconds_of_way[way] = self._recipe_seconds(way, seconds)
                print(
                    f"round {len(rounds_done) + 1}: {way}: {seconds_of_way[way]:,.0f} s for all of the recipe",
                    flush=True,
                )
            rounds_done.append(seconds_of_way)
            calibration["rounds"].append({"ways": ways, "seconds": seconds_of_way})
            write_json(path, calibration)
        base = calibration["ways"].get(trials.base, {}).get("seconds") or statistics.median(
            entry[trials.base] for entry in rounds_done
        )
        for way in ways:
            ratio = statistics.median(entry[way] / entry[trials.base] for entry in rounds_done)
            calibration["ways"][way] = {"set": trials.changes(way), "seconds": ratio * base}
        write_json(path, calibration)

    def _recipe_seconds(self, way: str, seconds: int) -> float:
        """Seconds of all steps of the recipe, from a trial of `seconds`, or longer if its steps had too few rows."""
        words = ("--root", self.corpus.parent, "--data", self.data, "--seconds", seconds, "--json")
        planned = json.loads(korbert("plan", self.trials.recipe, *words, changes=self.trials.changes(way)))
        if any(phase["tried_rows"] < phase["batch_size"] for phase in planned["phases"]):
            return self._recipe_seconds(way, 2 * seconds)
        return float(planned["timing"]["training"])

    def steps(self, way: str) -> list[int]:
        """Steps of each phase, from the calibration."""
        path = self.root / "calibration.json"
        way = self.trials.ways[way].steps_of or way
        calibrated = read_json(path)["ways"].get(way) if path.exists() else None
        if calibrated is None:
            sys.exit(f"{way}: is not calibrated: run --only calibrate first")
        if calibrated["set"] != self.trials.changes(way):
            sys.exit(f"{path}: {way} was calibrated as {calibrated['set']}: give other settings another name")
        phases = self.trials.settings(way).phases
        return steps_within(60 * self.minutes, calibrated["seconds"], [phase.steps for phase in phases])

    def pretrain(self, ways: Sequence[str]) -> None:
        for way, seed, place in self.runs(ways):
            for stage in CORPUS:
                link(self.artifact(place, stage), self.corpus / stage)
            steps = [f"pretrain.phases.{phase}.steps={number}" for phase, number in enumerate(self.steps(way))]
            changes = [*self.trials.changes(way), f"pretrain.seed={seed}", *steps]
            changes += [f"pretrain.threads={self.threads}"] if self.threads else []
            korbert("pretrain", self.trials.recipe, "--root", place, "--data", self.data, changes=changes)

    def score(self, ways: Sequence[str], tasks: Sequence[str]) -> None:
        for way in dict.fromkeys(map(self.trials.first_like, ways)):
            place = self.root / "untrained" / way
            self._save_untrained(way, place / "model")
            self._tasks(place, place / "model", tasks, baselines=way == self.trials.first_like(self.trials.base))
        for _, _, place in self.runs(ways):
            model = self.artifact(place, "pretrain")
            if not (place / "heldout.json").exists():
                write_json(place / "heldout.json", {"bits": self._bits(model)})
            self._tasks(place, model, tasks)

    def _save_untrained(self, way: str, folder: Path) -> None:
        """Saves the initial model of pretraining, with the recipe's own seed."""
        if folder.exists():
            return
        tokenizer, settings = Tokenizer.load(self.corpus / "vocab" / "tokenizer"), self.trials.settings(way)
        config, generator = settings.encoder.config(tokenizer.vocab_size), torch.Generator().manual_seed(settings.seed)
        aside = folder.with_name("model.making")
        shutil.rmtree(aside, ignore_errors=True)
        save_model(aside, PretrainingModel(config, generator), tokenizer)
        aside.rename(folder)

    def _bits(self, folder: Path) -> float | None:
        """Bits per character of a model; None for models without an MLM head (rtd)."""
        path, shards = self.corpus.parent / "heldout.json", self.corpus / "shard"
        if not path.exists():
            pieces = read_stage(self.corpus, "shard")["counts"]["heldout_pieces"]
            write_json(path, {"pieces": pieces, "characters": heldout_chars(self.corpus)})
        heldout, settings = read_json(path), self.trials.settings(self.trials.base)
        torch.set_num_threads(self.threads or settings.threads)
        model, tokens = load_model(folder)
        if not isinstance(model, PretrainingModel):
            return None
        ids = SpecialIds(tokens.cls_id, tokens.sep_id, tokens.mask_id, FIRST_PIECE, tokens.vocab_size)
        rows = ShardRows.of(settings, shards, ids)
        batches = heldout_batches(rows.heldout(), settings.heldout_rows)
        loss = evaluate(model.eval(), batches, rows.counts, PretrainingLoss())["mlm_loss"]
        return loss / math.log(2) * heldout["pieces"] / heldout["characters"]

    def _tasks(self, place: Path, model: Path, tasks: Sequence[str], baselines: bool = False) -> None:
        """Runs the tasks. Every task of the recipe needs an existing `init`."""
        settings = {"init": model.resolve(), "baselines": str(baselines).lower()}
        settings |= {"threads": self.threads} if self.threads else {}
        changes = [
            f"tasks.{task}.{key}={value}" for task in self.trials.task_names() for key, value in settings.items()
        ]
        korbert("tasks", self.trials.tasks, *tasks, "--root", place, "--data", self.data, changes=changes)


STEPS = ("calibrate", "pretrain", "score", "table")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trials", type=Path, help="file of the ways")
    parser.add_argument("ways", nargs="*", help="default: all of them")
    parser.add_argument("--data", type=Path, required=True, help="folder of docs/data.md")
    parser.add_argument("--root", type=Path, required=True, help="for all that is made: a gigabyte a run")
    parser.add_argument("--minutes", type=float, default=10, help="of training, for each way")
    parser.add_argument("--shards", type=Path, help="artifacts of the recipe, of an earlier run")
    parser.add_argument("--tasks", type=lambda text: text.split(","), help="A,B,..; default: all of them")
    parser.add_argument("--rounds", type=int, default=3, help="of calibration")
    parser.add_argument("--seconds", type=int, default=40, help="of calibration, for each way and round")
    parser.add_argument("--threads", type=int, help="of pretraining and scoring; default: those of the recipes")
    parser.add_argument("--only", choices=STEPS, help="one step of the four")
    arguments = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: sys.exit(128 + number))

    trials = Trials.load(arguments.trials)
    ways, tasks = arguments.ways or list(trials.ways), arguments.tasks or trials.task_names()
    for names, available in ((ways, trials.ways), (tasks, trials.task_names())):
        if unknown := [name for name in names if name not in available]:
            sys.exit(f"{arguments.trials}: has no {unknown[0]}, only {', '.join(available)}")
    bench = Bench(trials, arguments.root.absolute(), arguments.data.absolute(), arguments.minutes, arguments.threads)
    steps = [arguments.only] if arguments.only else STEPS
    if steps != ["table"]:
        bench.prepare(arguments.shards)
    if "calibrate" in steps:
        bench.calibrate(ways, arguments.rounds, arguments.seconds)
    if "pretrain" in steps:
        bench.pretrain(ways)
    if "score" in steps:
        bench.score(ways, tasks)
    if "table" in steps:
        table_text = table(bench)
        write_bytes_atomically(bench.root / "trials.md", table_text.encode())
        picture(bench, bench.root / "trials.svg")
        print(table_text, end="")


if __name__ == "__main__":
    main()
