"""Which folder is meant: a model's, a tokenizer's, or the artifact that holds one."""

from pathlib import Path

from korbert.errors import ModelError

__all__ = ["model_folder", "tokenizer_folder"]


def model_folder(given: str | Path) -> Path:
    """The folder itself, or `model/` of an artifact: artifacts/demo/pretrain is artifacts/demo/pretrain/model.

    A folder that has neither is given back as it is, for its reader to refuse. Raises ModelError, which names those
    that hold a model, for a recipe's folder of artifacts.
    """
    return _find(Path(given), ("", "model"), "config.json", "model")


def tokenizer_folder(given: str | Path) -> Path:
    """The folder itself, or the tokenizer of a vocab artifact, of a model, or of an artifact with a model.

    As model_folder does where there is none.
    """
    return _find(Path(given), ("", "tokenizer", "model/tokenizer"), "korbert_tokenizer.json", "tokenizer")


def _find(given: Path, below: tuple[str, ...], file: str, kind: str) -> Path:
    for place in below:
        if (given / place / file).is_file():
            return given / place
    if given.is_dir():
        inside = sorted(one for one in given.iterdir() if any((one / place / file).is_file() for place in below))
        if inside:
            raise ModelError(f"{given}: is no {kind}, but has some below: give {' or '.join(map(str, inside))}")
    return given
