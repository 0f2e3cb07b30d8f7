"""A model folder: config.json, model.safetensors and the tokenizer that its ids come from (docs/formats.md)."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, overload

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from korbert.errors import ModelError
from korbert.modeling.config import EncoderConfig
from korbert.modeling.models import ClassificationModel, Model, PretrainingModel, ReadingModel
from korbert.tokenization import Tokenizer

__all__ = ["FORMAT", "load_model", "read_config", "save_model", "serialize"]

FORMAT = 1

_CLASSES: Mapping[str, type[Model]] = {cls.kind: cls for cls in (PretrainingModel, ClassificationModel, ReadingModel)}


def save_model(folder: Path, model: Model, tokenizer: Tokenizer, task: Mapping[str, Any] | None = None) -> None:
    """Writes `folder`, made if absent. Same weights, config and tokenizer: same bytes.

    task: what a user of the model has to know besides (max_length and the like), plain JSON values.
    """
    _check_vocabulary(model.config, tokenizer, folder)
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "korbert_format": FORMAT,
        "kind": model.kind,
        "encoder": model.config.model_dump(),
        "head": model.head_settings(),
        "task": dict(task or {}),
        "tokenizer_digest": tokenizer.digest,
    }
    (folder / "config.json").write_text(json.dumps(config, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    (folder / "model.safetensors").write_bytes(serialize(model.state_dict()))
    tokenizer.save(folder / "tokenizer")


def serialize(tensors: Mapping[str, Tensor]) -> bytes:
    """A safetensors file, by the tensors alone. One metadata entry: with more, their order changes from run to run."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    return safetensors.torch.save(plain, metadata={"format": "pt"})


def read_config(folder: Path) -> dict[str, Any]:
    """config.json of a model folder: korbert_format, kind, encoder, head, task, tokenizer_digest.

    ModelError where the folder is none, or of another format.
    """
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(f"{path}: no such file: name a model folder that korbert has written") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot be read ({error}): write the model anew") from None
    if not isinstance(config, dict) or "korbert_format" not in config:
        raise ModelError(
            f"{path}: `korbert_format` is missing, so this is no korbert model:"
            " read a folder of transformers with korbert.huggingface.load_transformers"
        )
    if config["korbert_format"] != FORMAT:
        raise ModelError(
            f"{path}: korbert_format {config['korbert_format']}, this version reads {FORMAT}:"
            " use the version of korbert that wrote it"
        )
    if config.get("kind") not in _CLASSES:
        raise ModelError(f"{path}: kind {config.get('kind')!r} is none of {', '.join(_CLASSES)}")
    return config


@overload
def load_model(
    folder: Path, kind: Literal["pretraining"], device: str | torch.device = "cpu"
) -> tuple[PretrainingModel, Tokenizer]: ...
@overload
def load_model(
    folder: Path, kind: Literal["classification"], device: str | torch.device = "cpu"
) -> tuple[ClassificationModel, Tokenizer]: ...
@overload
def load_model(
    folder: Path, kind: Literal["reading"], device: str | torch.device = "cpu"
) -> tuple[ReadingModel, Tokenizer]: ...
@overload
def load_model(folder: Path, kind: None = None, device: str | torch.device = "cpu") -> tuple[Model, Tokenizer]: ...
def load_model(folder: Path, kind: str | None = None, device: str | torch.device = "cpu") -> tuple[Model, Tokenizer]:
    """The model of a folder, in eval mode, and its tokenizer.

    kind: what the caller can use; None takes any. ModelError where it is another, where files are missing or broken,
    and where the tokenizer is not the one that the model was trained with.
    """
    config = read_config(folder)
    if kind is not None and config["kind"] != kind:
        raise ModelError(f"{folder}: a {config['kind']} model, a {kind} model is needed: name another folder")
    model = _build(folder, config)
    _fill(folder / "model.safetensors", model)
    tokenizer = Tokenizer.load(folder / "tokenizer")
    if tokenizer.digest != config.get("tokenizer_digest"):
        raise ModelError(
            f"{folder / 'tokenizer'}: digest {tokenizer.digest[:12]}, the model was trained with"
            f" {str(config.get('tokenizer_digest'))[:12]}: put the tokenizer back that came with the model"
        )
    _check_vocabulary(model.config, tokenizer, folder)
    return model.to(device).eval(), tokenizer


def _build(folder: Path, config: Mapping[str, Any]) -> Model:
    """The model without weights."""
    try:
        encoder = EncoderConfig.parse(config.get("encoder"))
        with torch.device("meta"):
            return _CLASSES[config["kind"]](encoder, **config.get("head", {}))
    except (ModelError, TypeError) as error:
        raise ModelError(f"{folder / 'config.json'}: {error}") from None


def _fill(path: Path, model: Model) -> None:
    """Weights of a file into a model that has none."""
    try:
        tensors = safetensors.torch.load_file(path)
    except FileNotFoundError:
        raise ModelError(f"{path}: no such file: the model folder is incomplete") from None
    except (OSError, SafetensorError) as error:
        raise ModelError(f"{path}: cannot be read ({error}): the file is broken, write the model anew") from None
    expected = model.state_dict()
    for name in sorted(expected.keys() | tensors.keys()):
        want, have = expected.get(name), tensors.get(name)
        if want is None or have is None or want.shape != have.shape:
            raise ModelError(
                f"{path}: {name} is {_shape(have)}, config.json asks for {_shape(want)}: the two do not belong together"
            )
    model.load_state_dict(tensors, assign=True)


def _shape(tensor: Tensor | None) -> str:
    return "absent" if tensor is None else "x".join(map(str, tensor.shape))


def _check_vocabulary(config: EncoderConfig, tokenizer: Tokenizer, folder: Path) -> None:
    if tokenizer.vocab_size > config.vocab_size:
        raise ModelError(
            f"{folder}: the tokenizer has {tokenizer.vocab_size} entries, the model {config.vocab_size}:"
            " they do not belong together"
        )
