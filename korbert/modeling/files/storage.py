"""Saves and loads model folders: config.json, model.safetensors and the tokenizer (docs/formats.md)."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, overload

import safetensors.torch
import torch
from pydantic import BaseModel, ValidationError
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from korbert.errors import ModelError
from korbert.folders import base_folder, model_folder
from korbert.messages import argument
from korbert.modeling.adapters.onnx_encoder import OnnxEncoder
from korbert.modeling.config import AnyConfig, TransformersConfig, parse_config
from korbert.modeling.models import CLASSES, Network, PretrainingModel
from korbert.system import (
    JsonObject,
    holds_nothing,
    new_folder,
    read_object,
    sha256_of,
    unlisted_paths,
    write_bytes_atomically,
)
from korbert.tokenization import RECORD, AnyTokenizer, load_tokenizer

FORMAT = 1
ONNX_FILE = "encoder.onnx"  # next to the weights of the head
SCALE = ":scale"  # suffix to the name of an 8-bit matrix: the scales of its rows (R,), or of its columns (1, C)

_OWN = "config_sha256"


class _Config(BaseModel, strict=True):
    """The entries of config.json that are read; those of encoder, head and task are checked by their classes."""

    kind: str
    encoder: dict[str, Any]
    head: dict[str, Any]
    task: dict[str, Any]
    tokenizer_digest: str
    weights_sha256: str
    packed: dict[str, str | None] | None = None  # base, base_sha256
    onnx: dict[str, str | int] | None = None  # sha256, bits


def save_model(
    folder: str | Path,
    model: Network,
    tokenizer: AnyTokenizer,
    task: Mapping[str, object] | None = None,
    *,
    overwrite: bool = False,
) -> None:
    """Writes a model folder, whole or absent. The same weights, config and tokenizer give the same bytes.

    task: further settings for users of the model (such as max_length), as JSON values. overwrite: replace a model of
    korbert in that folder. SettingsError for a folder that holds anything else.
    """
    folder = Path(folder)
    _check_vocabulary(model.config, tokenizer, folder)
    config = {
        "korbert_format": FORMAT,
        "kind": model.kind,
        "encoder": model.config.model_dump(),
        "head": model.head_settings(),
        "task": dict(task or {}),
        "tokenizer_digest": tokenizer.digest,
    }
    may_replace = _is_model if overwrite else holds_nothing
    with new_folder(folder, may_overwrite=may_replace) as staging:
        tokenizer.save(staging / "tokenizer")
        write_files(staging, config, model.state_dict())


def _is_model(folder: Path) -> bool:
    """Whether a folder holds a model of ours and nothing else, or nothing."""
    names = {"config.json", "model.safetensors", ONNX_FILE, f"tokenizer/{RECORD}"}
    try:
        read_config(folder)
        names.update(f"tokenizer/{name}" for name in read_object(folder / "tokenizer" / RECORD)["files"])
    except (ModelError, OSError, ValueError, KeyError, TypeError):
        return holds_nothing(folder)
    return not unlisted_paths(folder, names.__contains__)


def write_files(folder: Path, config: JsonObject, tensors: Mapping[str, Tensor]) -> None:
    """Writes model.safetensors and config.json, with the digests of the weights, the tokenizer's record and itself.

    Expects the tokenizer in the folder, unless the base has it. Creates `folder` if needed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    weights = serialize(tensors)
    record = folder / "tokenizer" / RECORD
    sealed = {name: value for name, value in config.items() if name not in ("tokenizer_record_sha256", _OWN)}
    sealed["weights_sha256"] = hashlib.sha256(weights).hexdigest()
    if record.is_file():
        sealed["tokenizer_record_sha256"] = sha256_of(record)
    sealed[_OWN] = _own_digest(sealed)
    write_bytes_atomically(folder / "config.json", (json.dumps(sealed, ensure_ascii=False, indent=2) + "\n").encode())
    write_bytes_atomically(folder / "model.safetensors", weights)


def _own_digest(config: JsonObject) -> str:
    """SHA-256 over all entries but the digest itself, as JSON with sorted keys."""
    entries = {name: value for name, value in config.items() if name != _OWN}
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()


def serialize(tensors: Mapping[str, Tensor]) -> bytes:
    """The bytes of a safetensors file, determined by the tensors. Several metadata entries would vary in order."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    return safetensors.torch.save(plain, metadata={"format": "pt"})


def digest_of(facts: bytes, tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 (hex) over some facts, and over all tensors with their names, types and shapes."""
    digest = hashlib.sha256(facts)
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def read_config(folder: str | Path) -> JsonObject:
    """config.json of a model folder: korbert_format, kind, encoder, head, task, tokenizer_digest, weights_sha256.

    folder: a model folder, or an artifact that contains one. ModelError if it is neither, of another format, or if an
    entry was changed.
    """
    path = model_folder(folder) / "config.json"
    if not path.parent.exists():
        raise ModelError("{folder}: no such folder: name a model folder written by korbert", folder=folder)
    try:
        config = read_object(path)
    except FileNotFoundError:
        raise ModelError("{path}: no such file: name a model folder written by korbert", path=path) from None
    except (OSError, ValueError) as error:
        raise ModelError("{path}: cannot be read ({error}): write the model again", path=path, error=error) from None
    if "korbert_format" not in config:
        raise ModelError(
            "{path}: `korbert_format` is missing, so this is not a korbert model: see `korbert import`", path=path
        )
    if config["korbert_format"] != FORMAT or isinstance(config["korbert_format"], bool | float):
        raise ModelError(
            "{path}: korbert_format {config!r:.80}, this version reads {format}: use the version of "
            "korbert that wrote it",
            path=path,
            config=config["korbert_format"],
            format=FORMAT,
        )
    if config.get(_OWN) != _own_digest(config):
        raise _changed_error(path)
    try:
        _Config.model_validate(config)
    except ValidationError as error:
        fault = error.errors()[0]
        field = ".".join(map(str, fault["loc"]))
        raise ModelError(
            "{path}: {field}: {first}: write the model again", path=path, field=field, first=fault["msg"]
        ) from None
    if config["kind"] not in CLASSES:
        raise ModelError(
            "{path}: kind {config!r:.80} is none of {classes}",
            path=path,
            config=config["kind"],
            classes=", ".join(CLASSES),
        )
    return config


def _changed_error(path: Path) -> ModelError:
    return ModelError("{path}: was changed since the model was saved: restore it, or write the model again", path=path)


@overload
def load_model(
    folder: str | Path, kind: Literal["pretraining"], device: str | torch.device = "cpu"
) -> tuple[PretrainingModel, AnyTokenizer]: ...
@overload
def load_model(
    folder: str | Path, kind: str | None = None, device: str | torch.device = "cpu"
) -> tuple[Network, AnyTokenizer]: ...
def load_model(
    folder: str | Path, kind: str | None = None, device: str | torch.device = "cpu"
) -> tuple[Any, AnyTokenizer]:
    """Loads the model of a folder, in eval mode, and its tokenizer.

    kind: the kind required; None: any. ModelError for another kind, for files that are missing, changed or broken, for
    non-finite weights, and for a tokenizer other than the one used in training.
    """
    folder = model_folder(folder)
    config = read_config(folder)
    if kind is not None and config["kind"] != kind:
        raise ModelError(
            "{folder}: a {config} model, but a {kind} model is needed: name another folder",
            folder=folder,
            config=config["kind"],
            kind=kind,
        )
    base = (config.get("packed") or {}).get("base")
    if base is not None and not re.fullmatch(r"[\w-][\w.-]*", base):  # the model may be untrusted
        raise ModelError(
            "{folder}: packed.base {base!r:.80} is not the name of a folder next to it",
            folder=folder / "config.json",
            base=base,
        )
    home = folder if base is None else base_folder(folder, base)  # where the tokenizer is
    model = _filled_model(folder, config, home, torch.device(device))
    tokenizer = load_tokenizer(home / "tokenizer")
    if tokenizer.digest != config["tokenizer_digest"]:
        raise ModelError(
            "{folder}: digest {digest}, the model was trained with {config}: restore the tokenizer that "
            "came with the model",
            folder=folder / "tokenizer",
            digest=tokenizer.digest[:12],
            config=config["tokenizer_digest"][:12],
        )
    _check_vocabulary(model.config, tokenizer, folder)

    # Last, because the errors above say more than that a file was changed.
    record = home / "tokenizer" / RECORD
    if "tokenizer_record_sha256" in config and sha256_of(record) != config["tokenizer_record_sha256"]:
        raise _changed_error(record)
    return model.to(device).eval(), tokenizer


def _filled_model(folder: Path, config: JsonObject, home: Path, device: torch.device) -> Network:
    """Builds the model of a folder on the CPU. home: the folder with its base if it is packed on one, else `folder`."""
    tensors = _read_weights(folder / "model.safetensors", config["weights_sha256"])
    if config.get("packed"):
        if home is not folder:
            base_tensors = _read_weights(home / "model.safetensors", config["packed"].get("base_sha256"))
            # The scale of a tensor in 8 bits belongs to the base's tensor, not to one of that name in the folder.
            tensors = {
                name: base_tensors[name] for name in base_tensors if name.removesuffix(SCALE) not in tensors
            } | tensors
        tensors = unpack_tensors(tensors)
    onnx = config.get("onnx")
    kind: Any = CLASSES[config["kind"]]
    try:
        encoder = parse_config(config["encoder"])
        foreign = isinstance(encoder, TransformersConfig)  # not on "meta": it has buffers that no file holds
        with _NoFilling() if foreign else without_weights():
            model = kind(encoder, **config["head"])
    except Exception as error:  # nonsense of the right types fails in ways of its own in each class
        raise ModelError(
            "{folder}: {split}", folder=folder / "config.json", split=" ".join(str(error).split())
        ) from None
    if onnx:
        if device.type != "cpu":
            raise ModelError(
                "{folder}: an encoder in an ONNX file runs on CPU only: give {option} cpu",
                folder=folder,
                option=argument("device"),
            )
        model.encoder = nn.Identity()
    if home is not folder:  # the base may have heads of its own
        names = model.state_dict().keys()
        tensors = {name: tensor for name, tensor in tensors.items() if name in names}
    _fill(folder / "model.safetensors", model, tensors)
    if onnx:
        path = folder / ONNX_FILE
        _check_digest(path, onnx.get("sha256"))
        model.encoder = OnnxEncoder(model.config, str(path), str(path), sha256=onnx["sha256"])
    return model


def _read_weights(path: Path, expected: object) -> dict[str, Tensor]:
    _check_digest(path, expected)
    try:
        return safetensors.torch.load_file(path)
    except (OSError, SafetensorError) as error:
        raise ModelError(
            "{path}: cannot be read ({error}): the file is broken, write the model again", path=path, error=error
        ) from None


def _check_digest(path: Path, expected: object) -> None:
    """ModelError if the file is missing or changed."""
    try:
        digest = sha256_of(path)
    except OSError as error:
        raise ModelError(
            "{path}: cannot be read ({strerror}): the model folder is incomplete", path=path, strerror=error.strerror
        ) from None
    if digest != expected:
        raise ModelError(
            "{path}: SHA-256 {digest}, config.json says {expected}: the file was changed or is damaged: "
            "restore it, or write the model again",
            path=path,
            digest=digest[:12],
            expected=str(expected)[:12],
        )


def unpack_tensors(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Converts the tensors of a packed file back to float32; integers stay as they are."""
    unpacked = {name: tensor for name, tensor in tensors.items() if not name.endswith(SCALE)}
    for name, tensor in unpacked.items():
        if name + SCALE in tensors:
            scale = tensors[name + SCALE]
            unpacked[name] = tensor * (scale if scale.ndim == 2 else scale[:, None])
        elif tensor.is_floating_point():
            unpacked[name] = tensor.float()
    return unpacked


@contextmanager
def without_weights() -> Iterator[None]:
    """Builds our models without weights; load_state_dict(.., assign=True) fills them."""
    with torch.device("meta"), _NoFilling():
        yield


class _NoFilling(TorchFunctionMode):
    """Skips torch.nn.init: "meta" tensors hold no values, and filling them would load torch's compiler (2 s)."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__module__", None) == "torch.nn.init":
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


def _fill(path: Path, model: Network, tensors: Mapping[str, Tensor]) -> None:
    """Assigns the weights of a file to a model built without weights."""
    expected = model.state_dict()
    for name in sorted(expected.keys() | tensors.keys()):
        tensor = tensors.get(name)
        shape = _shape(tensor)
        expected_shape = _shape(expected.get(name))
        if tensor is None or shape != expected_shape:
            raise ModelError(
                "{path}: {name} is {shape}, config.json asks for {asked}: the two files do not match",
                path=path,
                name=name,
                shape=shape,
                asked=expected_shape,
            )
        if not torch.isfinite(tensor.sum()) and not torch.isfinite(tensor).all():  # the sum is ten times as fast
            raise ModelError(
                "{path}: {name} has non-finite numbers, so the model is unusable: restore earlier weights, or "
                "train it again with a lower learning_rate",
                path=path,
                name=name,
            )
    model.load_state_dict(tensors, assign=True)


def _shape(tensor: Tensor | None) -> str:
    """ "2x3" for float32, "2x3 float64" for other dtypes."""
    if tensor is None:
        return "absent"
    kind = "" if tensor.dtype == torch.float32 else f" {str(tensor.dtype).removeprefix('torch.')}"
    return "x".join(map(str, tensor.shape)) + kind


def _check_vocabulary(config: AnyConfig, tokenizer: AnyTokenizer, folder: Path) -> None:
    if tokenizer.vocab_size > config.vocab_size:
        raise ModelError(
            "{folder}: the tokenizer has {vocab_size} entries, the model {vocab_size2}: they do not belong together",
            folder=folder,
            vocab_size=tokenizer.vocab_size,
            vocab_size2=config.vocab_size,
        )
