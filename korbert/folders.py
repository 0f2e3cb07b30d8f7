"""Finds the folder of a model or tokenizer, given that folder, an artifact that contains it, or a name.

Names are those of the models in the box, and "hf:USER/NAME" or "hf:USER/NAME@REVISION" on the Hugging Face Hub.
"""

import difflib
from contextlib import suppress
from pathlib import Path

from korbert.errors import ModelError
from korbert.system import read_object

_HUB = "hf:"
_DEEPEST = 4  # artifacts/demo/pretrain/model
_BOX = Path(__file__).parent / "box"  # bundled models, packed (korbert.modeling.files.packing); README.md is their card


def models_in_the_box() -> list[str]:
    """Names of the models that come with korbert."""
    return sorted(path.parent.name for path in _BOX.glob("*/config.json"))


def models(folder: str | Path = ".") -> list[str]:
    """The models at hand, as commands and `korbert.load` take them: those of the box, then those in a folder.

        >>> korbert.models()[:2]
        ['korbert-mini', 'korbert-mini-embed']

    Searches the folder and four levels below it. ModelError if it is not a folder.
    """
    if not Path(folder).is_dir():
        raise ModelError("{folder}: is not a folder: name one that holds models", folder=folder)
    folders = []
    for depth in range(_DEEPEST + 1):
        for path in Path(folder).glob("*/" * depth + "config.json"):
            with suppress(OSError, ValueError):
                if "korbert_format" in read_object(path):
                    folders.append(str(path.parent.parent if path.parent.name == "model" else path.parent))
    return models_in_the_box() + sorted(folders)


def bundled(name: str | Path) -> Path | None:
    """The folder of the bundled model of this name; None if there is none."""
    return _BOX / name if str(name) in models_in_the_box() else None


def is_on_hub(name: str | Path) -> bool:
    """Whether the name is one on the Hub."""
    return str(name).startswith(_HUB)


def lasting(folder: str | Path) -> str:
    """The same folder as seen from any other: its absolute path, but a name in the box or on the Hub as it is."""
    is_name = is_on_hub(folder) or (bundled(folder) is not None and not Path(folder).exists())
    return str(folder if is_name else Path(folder).absolute())


def base_folder(folder: Path, base: str) -> Path:
    """Returns the folder of the base of a packed model: the sibling of that name, else the bundled model."""
    sibling = folder.absolute().parent / base
    return sibling if sibling.exists() else bundled(base) or sibling


def model_folder(folder: str | Path) -> Path:
    """The folder itself, or `model/` of an artifact: artifacts/demo/pretrain -> artifacts/demo/pretrain/model.

    A bare name that is not a folder here names a bundled model, "hf:.." one of the Hub. A folder without a model is
    returned unchanged, for its reader to refuse. ModelError for a folder of artifacts, naming those that hold a model,
    and for a missing folder that is named nearly as a bundled model or a folder beside it.
    """
    return _find(Path(folder), ("", "model"), "config.json", "model")


def tokenizer_folder(folder: str | Path) -> Path:
    """The folder itself, or the tokenizer of a vocab artifact, a model, or an artifact that holds a model.

    A folder without a tokenizer is treated as model_folder treats one without a model.
    """
    return _find(Path(folder), ("", "tokenizer", "model/tokenizer"), "korbert_tokenizer.json", "tokenizer")


def _find(folder: Path, below: tuple[str, ...], file: str, kind: str) -> Path:
    if is_on_hub(folder):
        from korbert.hub import download

        folder = download(str(folder).removeprefix(_HUB))
    if not folder.exists():
        folder = bundled(folder) or folder
    if not folder.exists():
        candidates: dict[str, object] = {name: f"{name}, which comes with korbert" for name in models_in_the_box()}
        with suppress(OSError):  # the parent may not be readable
            candidates = {path.name: path for path in folder.parent.iterdir() if path.is_dir()} | candidates
        if matches := difflib.get_close_matches(folder.name, candidates, 1, 0.8):
            raise ModelError(
                "{folder}: no such folder: did you mean {known}?", folder=folder, known=candidates[matches[0]]
            )
    for name in below:
        if (folder / name / file).is_file():
            return folder / name
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    if holders := [str(path) for path in entries if any((path / name / file).is_file() for name in below)]:
        raise ModelError(
            "{folder}: is no {kind}, but has some below: give {holders}",
            folder=folder,
            kind=kind,
            holders=" or ".join(holders),
        )
    return folder
