"""Loads a trained model for inference."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from korbert.modeling.storage import read_config
from korbert.tasks.embedding import Embedder
from korbert.tasks.filling import Filler
from korbert.tasks.predicting import Predictor
from korbert.tasks.question_answering.reading import Reader
from korbert.tasks.token_classification.tagger import Tagger
from korbert.training.devices import choose_precision
from korbert.training.settings import PrecisionName
from korbert.vectors.encoder import TextEncoder

__all__ = ["Loaded", "load"]

Loaded = Filler | Reader | Tagger | Embedder | Predictor | TextEncoder[Any]

_CLASSES: Mapping[str, type[TextEncoder[Any]]] = {
    "reading": Reader,
    "tagging": Tagger,
    "embedding": Embedder,
    "classification": Predictor,
    "encoder": TextEncoder,
    "detection": TextEncoder,
}


def load(folder: str | Path, device: str = "auto", precision: PrecisionName = "fp32") -> Loaded:
    """The model in a folder: a Filler (.fill), a Reader (.answer), a Tagger (.tag), an Embedder (.similarity), or for
    any other task a Predictor (.predict). All are a TextEncoder (.embed), and an encoder without a head, or one of rtd,
    is nothing more.

    folder: an artifact that has a model, or its `model/`. device: "auto", "cpu" or "cuda". precision: "fp32", "bf16",
    or "auto", the faster one here; see TextEncoder.
    Raises ModelError if the folder holds no model, or a tokenizer other than the one of training, SettingsError for
    bf16 on hardware without bf16 instructions.
    """
    config = read_config(folder)
    loaded_by = _CLASSES.get(config["kind"], Filler)
    if "kind" in config["task"] and not issubclass(loaded_by, Reader | Tagger | Embedder):
        loaded_by = Predictor
    loaded: Loaded = loaded_by.load(folder, device)
    loaded.precision = choose_precision(loaded.device, precision)
    loaded.columns = config["task"].get("columns", {})
    return loaded
