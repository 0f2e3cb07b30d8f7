"""A finished model folder, ready to be asked."""

from pathlib import Path
from typing import Union

from korbert.modeling import load_model
from korbert.modeling.models import ClassificationModel, PretrainingModel
from korbert.tasks.classification import Classifier
from korbert.tasks.filling import Filler
from korbert.tasks.reading import Reader
from korbert.training.devices import choose_device

__all__ = ["Loaded", "load"]

Loaded = Union[Filler, Classifier, Reader]


def load(folder: str | Path, device: str = "auto") -> Loaded:
    """What the folder holds: a Filler (.fill), a Classifier (.predict) or a Reader (.answer).

    folder: `model/` of a pretrain, nsmc or korquad artifact. device: "auto", "cpu" or "cuda".
    Raises ModelError where the folder is no model, or its tokenizer is not the one that it was trained with.
    """
    path = Path(folder)
    model, tokenizer = load_model(path, device=choose_device(device))
    model.eval()
    if isinstance(model, PretrainingModel):
        return Filler(model, tokenizer)
    if isinstance(model, ClassificationModel):
        return Classifier.load(path, model, tokenizer)
    return Reader.load(path, model, tokenizer)
