"""Loads a trained model for inference."""

from pathlib import Path
from typing import Any

from korbert.modeling.storage import read_config
from korbert.tasks.classification import Classifier
from korbert.tasks.embedding import Embedder
from korbert.tasks.filling import Filler
from korbert.tasks.predicting import Predictor
from korbert.tasks.reading import Reader
from korbert.tasks.tagging.tagger import Tagger
from korbert.vectors.encoder import TextEncoder

__all__ = ["Loaded", "load"]

Loaded = Filler | Classifier | Reader | Tagger | Embedder | Predictor | TextEncoder[Any]


def load(folder: str | Path, device: str = "auto") -> Loaded:
    """The model in a folder: a Filler (.fill), a Classifier (.predict), a Reader (.answer), a Tagger (.tag) or an
    Embedder (.similarity); of `korbert finetune` also a Predictor (.predict). All are a TextEncoder (.embed), and an
    encoder without a head, or one of rtd, is nothing more.

    folder: an artifact that has a model, or its `model/`. device: "auto", "cpu" or "cuda".
    Raises ModelError if the folder holds no model, or a tokenizer other than the one of training.
    """
    config = read_config(folder)
    kind = config["kind"]
    if kind == "reading":
        return Reader.load(folder, device)
    if kind == "tagging":
        return Tagger.load(folder, device)
    if kind == "embedding":
        return Embedder.load(folder, device)
    if "kind" in config["task"]:
        return Predictor.load(folder, device)
    if kind == "classification":
        return Classifier.load(folder, device)
    if kind in ("encoder", "detection"):
        return TextEncoder.load(folder, device)
    return Filler.load(folder, device)
