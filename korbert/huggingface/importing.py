"""Imports folders of `transformers`: model folders of ours, whose encoder runs the code of `transformers`.

Nothing is downloaded, no code in a folder is run, and weights are read from safetensors only.
"""

from pathlib import Path

from korbert.errors import ModelError
from korbert.messages import reason
from korbert.modeling import (
    EncoderModel,
    TransformersConfig,
    TransformersEncoder,
    adapted_config,
    class_of,
    options,
    save_model,
    their_config,
)
from korbert.modeling.adapters.transformers_config import CLASSES
from korbert.system import check_folder, read_json, read_object
from korbert.system.transformers_package import quietly, reason_of
from korbert.tokenization import TransformersTokenizer


def import_folder(folder: str | Path, target: str | Path) -> tuple[EncoderModel, TransformersTokenizer]:
    """Writes `target`, a model folder of kind "encoder", from a folder of `transformers`. Returns what is in it.

    SettingsError for a target that holds anything, or lies in `folder`. ModelError for an unusable folder: see
    read_folder, load_encoder and TransformersTokenizer.
    """
    check_folder(Path(target), Path(folder))
    config = read_folder(folder)
    tokenizer = TransformersTokenizer.of_folder(folder)
    limit = tokenizer.max_length or config.max_position_embeddings
    config = config.model_copy(update={"max_position_embeddings": min(limit, config.max_position_embeddings)})
    model = EncoderModel(config, encoder=load_encoder(folder, config))
    save_model(target, model, tokenizer)
    return model, tokenizer


def read_folder(folder: str | Path) -> TransformersConfig:
    """The config of a folder written by `transformers`.

    ModelError for another folder, an unknown architecture, a decoder, and a model that needs code in the folder.
    """
    path = Path(folder) / "config.json"
    try:
        theirs = read_json(path)
    except (OSError, ValueError) as error:
        raise ModelError(
            "{path}: cannot be read ({error}): name a folder that transformers has written",
            path=path,
            error=reason(error),
        ) from None
    if not isinstance(theirs, dict):
        raise ModelError("{path}: is not a JSON object: name a folder that transformers has written", path=path)
    if "korbert_format" in theirs:
        raise ModelError("{path}: is a model of korbert: use it as it is, it needs no import", path=path)
    if theirs.get("auto_map"):
        raise ModelError(
            "{path}: auto_map: the model needs code of its folder, which is never run: take one of an "
            "architecture of transformers ({classes})",
            path=path,
            classes=", ".join(CLASSES),
        )
    if quantized := theirs.get("quantization_config"):
        method = quantized.get("quant_method") if isinstance(quantized, dict) else quantized
        raise ModelError(
            "{path}: quantization_config: {method!r:.60}: import the model with its full weights",
            path=path,
            method=method,
        )
    try:
        return adapted_config(theirs)
    except ModelError as error:
        raise ModelError("{path}: {error}", path=path, error=reason(error)) from None


def _check_index(path: Path) -> None:
    """ModelError if an index of weights names anything but safetensors files next to it."""
    try:
        names = sorted(set(read_object(path)["weight_map"].values()))
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise ModelError(
            "{path}: weight_map: cannot be read ({error!r:.100}): save the model again", path=path, error=error
        ) from None
    for name in names:
        if not isinstance(name, str) or Path(name).name != name or not name.endswith(".safetensors"):
            raise ModelError(
                "{path}: weight_map: {name!r:.60} is not a safetensors file next to it: save the model again",
                path=path,
                name=name,
            )


def load_encoder(folder: str | Path, config: TransformersConfig) -> TransformersEncoder:
    """Loads the encoder of a folder, float32, in eval mode, without heads. config: from read_folder.

    ModelError if there are no safetensors, they cannot be read, or weights are missing.
    """
    folder = Path(folder)
    if not any((folder / name).is_file() for name in ("model.safetensors", "model.safetensors.index.json")):
        pickled = [name for name in ("pytorch_model.bin", "pytorch_model.bin.index.json") if (folder / name).is_file()]
        if not pickled:
            raise ModelError(
                "{folder}: has no model.safetensors: name a folder that transformers has written", folder=folder
            )
        raise ModelError(
            "{folder}: has only {pickled}, and loading a pickle can run code: if you trust it, convert it "
            'first: python -c "import transformers; transformers.AutoModel.from_pretrained({folder2!r}, '
            'use_safetensors=False).save_pretrained({folder2!r})"',
            folder=folder,
            pickled=pickled[0],
            folder2=str(folder),
        )
    if (index := folder / "model.safetensors.index.json").is_file():
        _check_index(index)
    try:
        with quietly():
            model, report = class_of(config.model_type).from_pretrained(
                folder,
                config=their_config(config.model_type, config.transformers),
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                output_loading_info=True,
                **options(config),
            )
    except Exception as error:  # their classes raise all kinds of errors
        raise ModelError(
            "{folder}: its encoder cannot be loaded ({reason_of}): save the model again",
            folder=folder,
            reason_of=reason_of(error),
        ) from None
    for problem in ("missing_keys", "mismatched_keys"):
        if names := sorted(map(str, report.get(problem) or ())):
            raise ModelError(
                "{folder}: {replace}: {names}: weights of another encoder",
                folder=folder,
                replace=problem.replace("_", " "),
                names=", ".join(names[:3]),
            )
    return TransformersEncoder(config, model=model).eval()
