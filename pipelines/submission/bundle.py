"""KorQuAD submissions: answers a file of questions, scores answers, writes a folder that runs elsewhere, and checks it.

The check runs the folder as a competition server would: in a fresh folder, timed, with an environment of PATH and
HOME, an empty folder. The libraries are those installed here, whatever requirements.txt pins.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import korbert
from korbert.corpus.documents import SAMPLE_FOLDER
from korbert.errors import ArtifactError, CorpusError, ModelFailed
from korbert.messages import Message
from korbert.pipelines.artifacts import formatting
from korbert.system import check_output, installed_version, peak_memory, read_object, write_json
from korbert.tasks import korquad

_NEEDS = (
    "kiwipiepy", "kiwipiepy_model", "lazy_loader", "numpy", "pydantic", "rich", "safetensors", "sentencepiece", "torch"
)  # fmt: skip
_LEFT_OUT = ("__pycache__", ".*", "box", "corpus", "pipelines")  # box: the models that come with korbert
_PROGRAM = "predict.py"
_OUTPUT = "predictions.json"


def submit(model: str | Path, input: str | Path, output: str | Path, *, device: str = "auto") -> int:
    """Answers every question of `input`, an official file with or without answers, and writes {id: answer} to `output`.

    model: a folder of kind "question-answering", or an artifact that has one. Returns the number of answers. `output`
    is written completely or not at all. Raises SettingsError, before any work, if it cannot be written or is one of
    the inputs, and CorpusError if `input` is not a KorQuAD file.
    """
    check_output(Path(output), Path(input), Path(model))
    rows = korquad.read(input)
    loaded = korbert.load(model, device)
    answers = loaded.answer([row["question"] for row in rows], [row["context"] for row in rows])
    predictions = {row["id"]: answer.answer for row, answer in zip(rows, answers, strict=True)}
    write_json(Path(output), predictions)
    return len(predictions)


def score(dataset: str | Path, predictions: str | Path) -> dict[str, float]:
    """Scores as the official script computes them: {"exact_match", "f1"}, in percent."""
    return korquad.score(korquad.read(dataset), korquad.read_predictions(predictions))


def write_submission(model: Path, folder: Path) -> None:
    """Writes a submission folder: predict.py, korbert/ (the package), model/ with its tokenizer, requirements.txt.

    Equal models, code and library versions give equal bytes. `folder` must not exist.
    """
    shutil.copytree(model, folder / "model")
    shutil.copytree(Path(korbert.__file__).parent, folder / "korbert", ignore=shutil.ignore_patterns(*_LEFT_OUT))
    shutil.copyfile(Path(__file__).with_name("script.py"), folder / _PROGRAM)
    foreign = read_object(model / "config.json")["encoder"].get("architecture") == "transformers"
    needs = (*_NEEDS, "transformers") if foreign else _NEEDS
    pins = "".join(f"{name}=={installed_version(name)}\n" for name in needs)
    (folder / "requirements.txt").write_text(pins, encoding="utf-8")


@dataclass(frozen=True)
class Verdict:
    """The result of a run without faults.

    seconds: wall time. memory: peak bytes of the largest process that this one has run; None where it is not counted.
    scores: official scores in percent; None if the questions came without answers.
    """

    dataset: Path
    questions: int
    seconds: float
    memory: int | None
    scores: Mapping[str, float] | None


def check(bundle: Path, dataset: Path | None = None, *, limit_seconds: float = 3600.0) -> Verdict:
    """Runs the bundle on a KorQuAD file, with or without answers. dataset: None for the sample questions of korbert.

    bundle: the submission folder, or an artifact that has one. Raises ArtifactError if there is none, CorpusError for a
    file that is not KorQuAD, ModelFailed naming the fault of the run: a crash, a limit, answers that are missing,
    extra, or not strings.
    """
    source = next((folder for folder in (bundle, bundle / "submission") if (folder / _PROGRAM).is_file()), None)
    if source is None:
        raise ArtifactError(
            "{bundle}: has no {program}: name the folder submission/ of a korquad artifact, such as "
            "artifacts/RECIPE/korquad/submission",
            bundle=bundle,
            program=_PROGRAM,
        )
    path = dataset or SAMPLE_FOLDER / "korquad" / "valid.json"
    rows = korquad.read(path)
    with tempfile.TemporaryDirectory(prefix="korbert-judge-") as name:
        # Only what a server would have: the bundle, the questions, and an empty home.
        cell = Path(name).resolve()
        shutil.copytree(source, cell / "submission")
        for folder in ("home", "work"):
            (cell / folder).mkdir()
        shutil.copyfile(path, cell / "work" / "questions.json")
        begun = time.monotonic()
        fault = _fault_of_run(cell, limit_seconds)
        seconds = time.monotonic() - begun
        answers = {}
        if fault is None:
            try:
                answers = korquad.read_predictions(cell / "work" / _OUTPUT)
                (cell / "work" / _OUTPUT).read_text(encoding="utf-8")  # as the official script reads it
                fault = _fault_of_answers(answers, [row["id"] for row in rows])
            except CorpusError as error:
                fault = error.message.map_texts(lambda text: text.replace(f"{cell / 'work'}/", ""))
            except UnicodeDecodeError as error:
                fault = Message(
                    "{file}: byte {start} is not UTF-8: write it with encoding='utf-8'", file=_OUTPUT, start=error.start
                )
    if fault is not None:
        raise ModelFailed("{source}: would fail in the competition: {fault}", source=source, fault=fault)
    scores = korquad.score(rows, answers) if any(row["answers"] for row in rows) else None
    return Verdict(path, len(rows), seconds, peak_memory(of_children=True), scores)


def _fault_of_run(cell: Path, limit_seconds: float) -> Message | None:
    """Runs the program to its end or the time limit. Returns the fault of the run, or None."""
    command = [sys.executable, "-B", str(cell / "submission" / _PROGRAM), "questions.json", _OUTPUT]
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(cell / "home")}
    output = cell / "said.txt"
    try:
        with output.open("wb") as file:
            run = subprocess.run(
                command, cwd=cell / "work", env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file,
                timeout=limit_seconds, check=False,
            )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Message(
            "{program}: was stopped after {limit}: make it faster, or allow more with --time-limit",
            program=_PROGRAM,
            limit=formatting.duration(limit_seconds),
        )
    code = run.returncode
    lines = output.read_text("utf-8", "replace").splitlines()[-3:]
    last = " | ".join(line.strip() for line in lines) or Message("no output")
    if code < 0:
        return Message(
            "{program}: was killed by {signal} (SIGKILL: out of memory?): fix it; its last output: {last}",
            program=_PROGRAM,
            signal=signal.Signals(-code).name,
            last=last,
        )
    if code > 0:
        return Message(
            "{program}: ended with exit code {code}: fix the error: {last}", program=_PROGRAM, code=code, last=last
        )
    return None


def _fault_of_answers(answers: Mapping[str, str], question_ids: Collection[str]) -> Message | None:
    ids = [id for id in question_ids if id not in answers]
    what = Message("without an answer: answer every question, with '' if nothing fits")
    if not ids:
        expected = set(question_ids)
        ids = [id for id in answers if id not in expected]
        what = Message("not among the questions: answer only the questions of INPUT")
    if not ids:
        return None
    return Message(
        "{file}: {number:,} of {asked:,} ids, such as {id!r}, {what}",
        file=_OUTPUT,
        number=len(ids),
        asked=len(question_ids),
        id=ids[0],
        what=what,
    )
