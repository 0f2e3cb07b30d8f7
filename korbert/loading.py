"""A finished model folder, ready to be asked."""

from pathlib import Path

from korbert.modeling.storage import read_config
from korbert.tasks.classification import Classifier
from korbert.tasks.filling import Filler
from korbert.tasks.reading import Reader

__all__ = ["Loaded", "load"]

Loaded = Filler | Classifier | Reader


def load(folder: str | Path, device: str = "auto") -> Loaded:
    """What the folder holds: a Filler (.fill), a Classifier (.predict) or a Reader (.answer).

    folder: `model/` of a pretrain, nsmc or korquad artifact. device: "auto", "cpu" or "cuda".
    Raises ModelError where the folder is no model, or its tokenizer is not the one that it was trained with.
    """
    path = Path(folder)
    kind = read_config(path)["kind"]
    if kind == "classification":
        return Classifier.load(path, device)
    if kind == "reading":
        return Reader.load(path, device)
    return Filler.load(path, device)
