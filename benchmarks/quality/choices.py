"""Compares the best tokenization units of benchmarks/quality/vocabulary.py by equal pretraining and fine-tuning.

    python -m benchmarks.quality.choices FOLDER --data $KORBERT_DATA

Runs the stages of the recipe for each choice in FOLDER/NAME, with fewer steps. It takes hours; the same command resumes
after an interruption. All models have the same number of parameters and see the same bytes of text: the steps of each
are those of the first choice times the ratio of their piece counts on the corpus. Metrics: bits per character (held-out
MLM loss in bits, times pieces per character of the held-out documents), NSMC fine-tuned on 20,000 rows chosen by hash
(mean and standard deviation over fine-tuning seeds), and the KorQuAD split. There is one pretraining per choice.
"""

import argparse
import json
import math
import shutil
import statistics
import subprocess
import sys
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks import record
from korbert.corpus.documents import is_heldout

KORBERT = [sys.executable, "-m", "korbert"]
MERGED = [sys.executable, "-m", "benchmarks.quality.merged"]
CHOICES: dict[str, tuple[list[str], list[str]]] = {  # what runs the stages, and what changes in the recipe
    "forms": (KORBERT, []),
    "merged": (MERGED, []),
    "merged-eojeol": (MERGED, ["vocab.mark=eojeol"]),
}
ROWS = 20_000  # of NSMC to learn from


def fill_data(folder: Path, data: Path) -> None:
    """Writes a data folder with fewer NSMC training rows, chosen by the hash of their ids."""
    (folder / "nsmc").mkdir(parents=True, exist_ok=True)
    for name in ("corpus", "korquad1", "nsmc/ratings_test.txt"):
        if not (folder / name).exists():
            (folder / name).symlink_to((data / name).resolve())
    header, *rows = (data / "nsmc" / "ratings_train.txt").read_text("utf-8").splitlines(keepends=True)
    rows.sort(key=lambda row: blake2b(row.partition("\t")[0].encode()).digest())
    (folder / "nsmc" / "ratings_train.txt").write_text(header + "".join(rows[:ROWS]), "utf-8")


def borrow(source: Path, target: Path) -> None:
    """Copies a stage from another choice, completely or not at all."""
    if target.exists():
        return
    aside = target.with_name(f"{target.name}.copying")
    shutil.rmtree(aside, ignore_errors=True)
    shutil.copytree(source, aside)
    aside.rename(target)


def run(name: str, arguments: list[str], last: str) -> None:
    program, changes = CHOICES[name]
    changes = [part for change in changes for part in ("--set", change)]
    subprocess.run([*program, "run", *arguments, *changes, "--to", last], check=True)


def read_stage(folder: Path, stage: str) -> dict[str, Any]:
    return json.loads((folder / stage / "stage.json").read_text("utf-8"))


def heldout_chars(folder: Path) -> int:
    """Number of characters in the held-out documents."""
    settings = read_stage(folder, "vocab")["settings"]
    chars = 0
    for path in sorted((folder / "clean" / "documents").glob("part-*.parquet")):
        for batch in pq.ParquetFile(path).iter_batches(1000, columns=["id", "text"]):
            for id, text in zip(*(batch[column].to_pylist() for column in ("id", "text")), strict=True):
                chars += len(text) * is_heldout(id, settings["seed"], settings["heldout_share"])
    return chars


def scores(folder: Path, chars: int) -> dict[str, float]:
    shard, pretrain, nsmc, korquad = (
        json.loads((folder / stage / "scores.json").read_text("utf-8"))
        if stage != "shard"
        else read_stage(folder, stage)
        for stage in ("shard", "pretrain", "nsmc", "korquad")
    )
    pieces = shard["counts"]["heldout_pieces"]
    accuracies = [100 * row["scores"]["accuracy"] for row in nsmc["rows"] if row["name"] == "pretrained"]
    return {
        "pieces a character": pieces / chars,
        "steps": pretrain["steps"],
        "loss": pretrain["mlm_loss"],
        "bits a character": pretrain["mlm_loss"] / math.log(2) * pieces / chars,
        "nsmc": statistics.mean(accuracies),
        "spread": statistics.stdev(accuracies) if len(accuracies) > 1 else math.nan,
        "em": 100 * korquad["rows"][0]["scores"]["exact_match"],
        "f1": 100 * korquad["rows"][0]["scores"]["f1"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="for data and artifacts, 3 GB a choice")
    parser.add_argument("--data", type=Path, required=True, help="folder of docs/data.md")
    parser.add_argument("--recipe", default="small")
    parser.add_argument("--steps", type=int, nargs=2, default=[700, 150], help="of rows of 128 and of 512 pieces")
    parser.add_argument("--seeds", type=int, default=3, help="of fine-tuning on NSMC")
    record.add_option(parser)
    arguments = parser.parse_args()
    fill_data(arguments.folder / "data", arguments.data)
    first, pieces = next(iter(CHOICES)), {}
    rows: list[list[str]] = []
    stage_folders: dict[str, Path] = {}  # of stages without the vocabulary, by what made them
    for name, (program, _) in CHOICES.items():
        root = arguments.folder / name
        folder = root / arguments.recipe
        for stage, source in (("clean", stage_folders.get("clean")), ("analyze", stage_folders.get(program[-1]))):
            if source is not None:
                borrow(source / stage, folder / stage)
        common = [arguments.recipe, "--root", str(root), "--data", str(arguments.folder / "data")]
        run(name, common, "shard")
        stage_folders |= {"clean": folder, program[-1]: folder}
        pieces[name] = read_stage(folder, "shard")["counts"]["pieces"]
        short, long = (round(steps * pieces[name] / pieces[first]) for steps in arguments.steps)
        phases = f"{{length=128,batch_size=64,steps={short}}},{{length=512,batch_size=24,steps={long}}}"
        changes = [f"pretrain.phases=[{phases}]", f"nsmc.seeds={list(range(arguments.seeds))}", "nsmc.scratch=false"]
        run(name, [*common, *(part for change in changes for part in ("--set", change))], "korquad")
        figures = scores(folder, heldout_chars(folder))
        print(name, json.dumps(figures), flush=True)
        rows.append([name, *(f"{value:.3f}" for value in figures.values())])
        columns = ["scheme", *figures]
    record.write(arguments.record, "choices", [record.table("Schemes, pretrained", columns, rows)])


if __name__ == "__main__":
    main()
