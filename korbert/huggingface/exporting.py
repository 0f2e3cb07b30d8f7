"""A model folder as one that `transformers` loads: AutoModel..., AutoTokenizer with trust_remote_code."""

import json
import re
from pathlib import Path
from typing import Any

from korbert.errors import ModelError
from korbert.huggingface.configs import config_to_transformers
from korbert.huggingface.layouts import CLASSES, to_transformers
from korbert.modeling.models import ClassificationModel, Model
from korbert.modeling.storage import load_model, serialize
from korbert.tokenization import Tokenizer, repair, spans

__all__ = ["export"]

_INLINED = {"repair": repair, "spans": spans}  # in the order in which the tokenizer's file imports them
_TOKENIZER_FILE = "tokenization_korbert.py"
_OWN_IMPORT = re.compile(r"^from korbert\.tokenization\.(repair|spans) import .*\n", re.MULTILINE)


def export(model_folder: Path, folder: Path, check: bool = False) -> dict[str, float]:
    """Writes `folder` (made if absent) for `transformers`, which is needed for the check alone.

    check: load what was written and compare on Korean texts and random ids. Returns the largest absolute difference of
    each output, {} without check. ModelError where nothing in `transformers` computes what the model does, and where
    the check finds a difference. Next sentence scores of a `modern` model stay behind: ModernBERT has no such head.
    """
    if (folder / "config.json").exists() and "korbert_format" in (folder / "config.json").read_text(encoding="utf-8"):
        raise ModelError(f"{folder}: holds a model of korbert, which the export would write over: name another folder")
    model, tokenizer = load_model(model_folder)
    config = _config(model)  # refuses before anything is written
    folder.mkdir(parents=True, exist_ok=True)
    _write_json(folder / "config.json", config)
    weights = to_transformers(model.state_dict(), model.config, model.kind)
    (folder / "model.safetensors").write_bytes(serialize(weights))
    _write_tokenizer(folder, model, tokenizer)
    if not check:
        return {}
    from korbert.huggingface.check import compare

    return compare(model, tokenizer, folder)


def _config(model: Model) -> dict[str, Any]:
    config = config_to_transformers(model.config)
    config["architectures"] = [CLASSES[model.config.architecture, model.kind]]
    if isinstance(model, ClassificationModel):
        if model.pooling == "mean" and model.config.architecture == "bert":
            raise ModelError(
                "export: this `bert` classifier takes the mean over pieces, BertForSequenceClassification the first:"
                ' train it with pooling = "first", or use the model with korbert'
            )
        config["classifier_pooling"] = {"first": "cls", "mean": "mean"}[model.pooling]
        config["id2label"] = dict(enumerate(model.labels))
        config["label2id"] = {label: place for place, label in enumerate(model.labels)}
    return config


def _write_tokenizer(folder: Path, model: Model, tokenizer: Tokenizer) -> None:
    tokenizer.save(folder)
    (folder / _TOKENIZER_FILE).write_text(_tokenizer_source(), encoding="utf-8")
    segments = ["token_type_ids"] if model.config.type_vocab_size else []
    config = {
        "tokenizer_class": "KorbertTokenizer",
        "auto_map": {"AutoTokenizer": ["tokenization_korbert.KorbertTokenizer", None]},
        "model_max_length": model.config.max_position_embeddings,
        "model_input_names": ["input_ids", *segments, "attention_mask"],
    }
    _write_json(folder / "tokenizer_config.json", config)


def _tokenizer_source() -> str:
    """tokenization_korbert.py without imports of korbert: the text of the modules it needs stands in it."""
    source = Path(__file__).with_name(_TOKENIZER_FILE).read_text(encoding="utf-8")
    texts = {name: Path(str(module.__file__)).read_text(encoding="utf-8") for name, module in _INLINED.items()}
    bare = {name: _OWN_IMPORT.sub("", text) for name, text in texts.items()}
    inlined, count = _OWN_IMPORT.subn(lambda match: bare[match[1]], source)
    assert count == len(_INLINED)
    return inlined


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
