"""KorQuAD submissions: answers a file of questions, scores answers, and writes a folder that runs elsewhere."""

import base64
import hashlib
import shutil
import zipfile
from collections.abc import Iterator, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import korbert
from korbert.durable import check_output, read_object, write_json
from korbert.tasks import korquad
from korbert.versions import installed_version
from pipelines.outputs import is_nothing_else

__all__ = ["score", "submit", "write_submission", "write_wheel"]

_PACKAGES = ("korbert", "corpus", "pipelines")
_LEFT_OUT = ("corpus/sample",)  # text of the demo
_NEEDS = ("kiwipiepy", "kiwipiepy_model", "numpy", "pydantic", "rich", "safetensors", "sentencepiece", "torch")
_FOREIGN = (*_NEEDS, "transformers")  # for a model whose encoder comes from that library


def submit(model: str | Path, input: str | Path, output: str | Path, *, device: str = "auto") -> int:
    """Answers every question of `input`, an official file with or without answers, and writes {id: answer} to `output`.

    model: a model folder of kind "reading", or an artifact that has one. Returns the number of answers. `output`
    is written completely or not at all. Raises SettingsError, before any work, if it cannot be written or is one of
    the inputs, and CorpusError if `input` is not a KorQuAD file.
    """
    check_output(Path(output), Path(input), Path(model), is_ours=is_nothing_else)
    rows = korquad.read(input)
    from korbert.tasks.reading import Reader

    contexts, questions = ([row[role] for row in rows] for role in ("context", "question"))
    found = Reader.load(model, device).answer(contexts, questions)
    predictions = {row["id"]: one["answer"] for row, one in zip(rows, found, strict=True)}
    write_json(Path(output), predictions)
    return len(predictions)


def score(dataset: str | Path, predictions: str | Path) -> dict[str, float]:
    """Scores as the official script computes them: {"exact_match", "f1"}, in percent."""
    return korquad.score(korquad.read(dataset), korquad.read_predictions(predictions))


def write_submission(model: Path, folder: Path) -> None:
    """Writes a submission folder: predict.py, model/ with its tokenizer, a wheel of korbert, requirements.txt.

    Equal models, code and library versions give equal bytes. `folder` must not exist.
    """
    folder.mkdir(parents=True)
    shutil.copytree(model, folder / "model")
    script = files("pipelines").joinpath("submission_script.py").read_bytes()
    (folder / "predict.py").write_bytes(script)
    foreign = read_object(model / "config.json")["encoder"].get("architecture") == "transformers"
    needs = _FOREIGN if foreign else _NEEDS
    (folder / "requirements.txt").write_text(
        "".join(f"{name}=={installed_version(name)}\n" for name in needs), encoding="utf-8"
    )
    write_wheel(folder, needs)


def write_wheel(folder: Path, needs: Sequence[str] = _NEEDS) -> Path:
    """Writes a wheel of korbert into `folder`, from the files running now, installed or not. Returns its path.

    The wheel is uncompressed and has fixed times, so that its bytes depend only on those files. The sample corpus
    is left out. needs: libraries that it requires.
    """
    name = f"korbert-{korbert.__version__}"
    info = f"{name}.dist-info"
    contents = dict(sorted(file for package in _PACKAGES for file in _package_files(package, files(package))))
    metadata = ["Metadata-Version: 2.1", "Name: korbert", f"Version: {korbert.__version__}", "Requires-Python: >=3.11"]
    metadata += [f"Requires-Dist: {library}" for library in needs]
    contents[f"{info}/METADATA"] = "\n".join([*metadata, ""]).encode()
    contents[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: korbert\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    contents[f"{info}/entry_points.txt"] = b"[console_scripts]\nkorbert = pipelines.cli:main\n"
    record = [f"{path},{_record_hash(data)},{len(data)}" for path, data in contents.items()]
    contents[f"{info}/RECORD"] = "\n".join([*record, f"{info}/RECORD,,", ""]).encode()
    wheel = folder / f"{name}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_STORED) as archive:
        for path, data in contents.items():
            member = zipfile.ZipInfo(path)  # dated 1980-01-01
            member.external_attr = 0o100644 << 16
            archive.writestr(member, data)
    return wheel


def _package_files(name: str, folder: Traversable) -> Iterator[tuple[str, bytes]]:
    for item in folder.iterdir():
        path = f"{name}/{item.name}"
        if item.name.startswith((".", "__pycache__")) or path in _LEFT_OUT:
            continue
        if item.is_dir():
            yield from _package_files(path, item)
        else:
            yield path, item.read_bytes()


def _record_hash(data: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
