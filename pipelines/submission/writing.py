"""KorQuAD submissions: answers a file of questions, scores answers, and writes a folder that runs elsewhere."""

import shutil
from pathlib import Path

import korbert
from korbert.system import check_output, installed_version, read_object, write_json
from korbert.tasks import korquad

_NEEDS = (
    "kiwipiepy", "kiwipiepy_model", "lazy_loader", "numpy", "pydantic", "rich", "safetensors", "sentencepiece", "torch"
)  # fmt: skip
_LEFT_OUT = ("__pycache__", ".*", "box", "corpus", "pipelines")  # box: the models that come with korbert


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
    shutil.copyfile(Path(__file__).with_name("script.py"), folder / "predict.py")
    foreign = read_object(model / "config.json")["encoder"].get("architecture") == "transformers"
    needs = (*_NEEDS, "transformers") if foreign else _NEEDS
    pins = "".join(f"{name}=={installed_version(name)}\n" for name in needs)
    (folder / "requirements.txt").write_text(pins, encoding="utf-8")
