"""Finds the folder of a model or tokenizer, given that folder or an artifact that contains it."""

import difflib
from pathlib import Path

from korbert.errors import ModelError

_BOX = Path(__file__).parent / "box"  # bundled models, packed (korbert.modeling.packing); README.md is their card


def models_in_the_box() -> list[str]:
    """Names of the models that come with korbert."""
    return sorted(path.parent.name for path in _BOX.glob("*/config.json"))


def bundled(name: str | Path) -> Path | None:
    """The folder of the bundled model of this name; None if there is none."""
    return _BOX / name if str(name) in models_in_the_box() else None


def base_folder(folder: Path, base: str) -> Path:
    """The base of a packed folder: its sibling of that name, else the bundled model."""
    beside = folder.absolute().parent / base
    return beside if beside.exists() else bundled(base) or beside


def model_folder(folder: str | Path) -> Path:
    """The folder itself, or `model/` of an artifact: artifacts/demo/pretrain -> artifacts/demo/pretrain/model.

    A bare name that is not a folder here names a bundled model. A folder without a model is returned unchanged, for
    its reader to refuse. ModelError for a folder of artifacts, naming those that hold a model, and for a missing folder
    that is named nearly as a bundled model.
    """
    return _find(Path(folder), ("", "model"), "config.json", "model")


def tokenizer_folder(folder: str | Path) -> Path:
    """The folder itself, or the tokenizer of a vocab artifact, a model, or an artifact that holds a model.

    Without one, as model_folder.
    """
    return _find(Path(folder), ("", "tokenizer", "model/tokenizer"), "korbert_tokenizer.json", "tokenizer")


def _find(folder: Path, below: tuple[str, ...], file: str, kind: str) -> Path:
    if not folder.exists():
        if bundled(folder) is None and (near := difflib.get_close_matches(folder.name, models_in_the_box(), 1, 0.8)):
            raise ModelError(f"{folder}: no such folder: did you mean {near[0]}, which comes with korbert?")
        folder = bundled(folder) or folder
    for name in below:
        if (folder / name / file).is_file():
            return folder / name
    inside = sorted(folder.iterdir()) if folder.is_dir() else []
    if holders := [str(path) for path in inside if any((path / name / file).is_file() for name in below)]:
        raise ModelError(f"{folder}: is no {kind}, but has some below: give {' or '.join(holders)}")
    return folder
