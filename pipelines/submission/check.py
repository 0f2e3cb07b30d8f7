"""Runs a submission as a competition server would: in isolation, without network, timed, and checks its answers.

The environment of the program has only PATH and HOME, an empty folder. guard.py refuses network access
through Python.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from korbert.errors import ArtifactError, CorpusError, ModelError
from korbert.pipelines.artifacts.sources import sample_folder
from korbert.pipelines.reports import formatting
from korbert.tasks import korquad
from korbert.versions import installed_version

_PROGRAM, _OUTPUT = "predict.py", "predictions.json"
_SHOWN = 5  # faults of each kind


@dataclass(frozen=True)
class Verdict:
    """The result of a run without faults.

    seconds: wall time. memory: peak bytes of the process; None if unknown. scores: official scores in percent; None if
    the questions came without answers. notes: limitations of this check.
    """

    dataset: Path
    questions: int
    seconds: float
    memory: int | None
    scores: Mapping[str, float] | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Ended:
    """code: exit code, negative for a signal, None after the time limit. lines: of the guard's report."""

    code: int | None
    seconds: float
    error: str
    lines: list[dict[str, Any]]


def check(bundle: Path, dataset: Path | None = None, *, limit_seconds: float = 3600.0) -> Verdict:
    """Runs the bundle on a KorQuAD file, with or without answers. dataset: None for the sample questions of korbert.

    bundle: the submission folder, or an artifact that has one. Raises ArtifactError if there is none, CorpusError for a
    file that is not KorQuAD, ModelError listing the faults of the run: a crash, a limit, network access, answers that
    are missing, extra, or not strings.
    """
    source = _source(bundle)
    path = sample_folder() / "korquad" / "valid.json" if dataset is None else dataset
    rows = korquad.read(path)
    asked = [row["id"] for row in rows]
    with tempfile.TemporaryDirectory(prefix="korbert-judge-") as name:
        cell = Path(name).resolve()
        shutil.copytree(source, cell / "submission")
        for folder in ("home", "work", "judge"):
            (cell / folder).mkdir()
        shutil.copyfile(path, cell / "work" / "questions.json")
        answers: dict[str, str] = {}
        ended = _run(cell, limit_seconds)
        faults = list(_faults_of_run(ended, limit_seconds))
        if ended.code == 0:
            try:
                answers = korquad.read_predictions(cell / "work" / _OUTPUT)
                (cell / "work" / _OUTPUT).read_text(encoding="utf-8")  # as the official script reads it
                faults += _faults_of_answers(answers, asked)
            except CorpusError as error:
                faults.append(str(error).replace(f"{cell / 'work'}/", ""))
            except UnicodeDecodeError as error:
                faults.append(f"{_OUTPUT}: byte {error.start} is not UTF-8: write it with encoding='utf-8'")
        if faults:
            raise ModelError("\n  ".join([f"{source}: would fail in the competition:", *faults]))
    scores = korquad.score(rows, answers) if any(row["answers"] for row in rows) else None
    memory = next((line["memory"] for line in ended.lines if "memory" in line), None)
    return Verdict(path, len(asked), ended.seconds, memory, scores, tuple(_other_versions(source)))


def _source(bundle: Path) -> Path:
    """The folder with the program."""
    for folder in (bundle, bundle / "submission"):
        if (folder / _PROGRAM).is_file():
            return folder
    raise ArtifactError(
        f"{bundle}: has no {_PROGRAM}: name the folder submission/ of a korquad artifact, such as "
        "artifacts/RECIPE/korquad/submission"
    )


def _run(cell: Path, limit_seconds: float) -> _Ended:
    """Runs the program to its end or the time limit, then kills its remaining process group."""
    guard = files("korbert.pipelines.submission").joinpath("guard.py").read_text(encoding="utf-8")
    report, output = cell / "judge" / "report.jsonl", cell / "judge" / "said.txt"
    program = str(cell / "submission" / _PROGRAM)
    command = [sys.executable, "-B", "-c", guard, str(report), program, "questions.json", _OUTPUT]
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(cell / "home")}
    begun = time.monotonic()
    with output.open("wb") as file:
        process = subprocess.Popen(
            command, cwd=cell / "work", env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
            start_new_session=True,
        )  # fmt: skip
        code: int | None = None
        try:
            with suppress(subprocess.TimeoutExpired):
                code = process.wait(limit_seconds)
            seconds = time.monotonic() - begun
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    lines = report.read_text(encoding="utf-8").splitlines() if report.exists() else []
    printed = output.read_text(encoding="utf-8", errors="replace")
    return _Ended(code, seconds, printed, list(map(json.loads, lines)))


def _faults_of_run(ended: _Ended, limit_seconds: float) -> Iterator[str]:
    last = " | ".join(line.strip() for line in ended.error.splitlines()[-3:])
    if ended.code is None:
        limit = formatting.duration(limit_seconds)
        yield f"{_PROGRAM}: was stopped after {limit}: make it faster, or allow more with --time-limit"
    elif ended.code < 0:
        name = signal.Signals(-ended.code).name
        yield f"{_PROGRAM}: was killed by {name} (SIGKILL: out of memory?): fix it; its last output: {last or 'none'}"
    elif ended.code:
        yield f"{_PROGRAM}: ended with exit code {ended.code}: fix the error: {last or 'no output'}"
    tried = list(dict.fromkeys(line["network"] for line in ended.lines if "network" in line))
    for what in tried[:_SHOWN]:
        yield f"{_PROGRAM}: used the network ({what}): put what it needs into the folder"


def _faults_of_answers(answers: Mapping[str, str], asked: Sequence[str]) -> Iterator[str]:
    known = set(asked)
    faults = {
        "without an answer: answer every question, with '' if nothing fits": [id for id in asked if id not in answers],
        "not among the questions: answer only the questions of INPUT": [id for id in answers if id not in known],
    }
    for what, ids in faults.items():
        if ids:
            yield f"{_OUTPUT}: {len(ids):,} of {len(asked):,} ids, such as {ids[0]!r}, {what}"


def _other_versions(source: Path) -> Iterator[str]:
    """Notes on libraries whose installed version differs from requirements.txt."""
    path = source / "requirements.txt"
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        if pin := re.fullmatch(r"([\w.-]+)==(\S+)", line.strip()):
            name, wanted = pin.groups()
            if (here := installed_version(name)) != wanted:
                yield f"requirements.txt: {name} {wanted}, but this run used {here}"


def worksheet(bundle: Path, memory: int | None) -> list[str]:
    """The commands for a CodaLab worksheet, from the tutorial of KorQuAD 1.0. memory: peak bytes of the run.

    IMAGE stands for a Docker image with the libraries of requirements.txt, NAME for the name of the model.
    """
    source = _source(bundle)
    dev, asked = "KorQuAD_v1.0_dev.json", -(-3 * (memory or 2 * 10**9) // (2 * 10**9))  # GB, half as much again
    return [
        f"cl upload {shlex.quote(str(source))} -n submission",
        f"cl add bundle korquad-data//{dev} .",
        f"cl run {dev} :submission 'python submission/{_PROGRAM} {dev} {_OUTPUT}' -n run-predictions "
        f"--request-docker-image IMAGE --request-memory {asked}g",
        f"cl make run-predictions/{_OUTPUT} -n predictions-NAME",
        "cl macro korquad-utils/dev-evaluate-v1.0 predictions-NAME",
    ]
