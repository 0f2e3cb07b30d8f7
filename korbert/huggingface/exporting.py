"""Exports a model folder for `transformers`: AutoModel..., and AutoTokenizer with trust_remote_code."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from torch import Tensor

from korbert._transformers import transformers
from korbert.durable import may_write, read_object
from korbert.errors import ModelError, SettingsError
from korbert.huggingface import check as checks
from korbert.huggingface.configs import config_to_transformers
from korbert.huggingface.conversion import ENDINGS, HEADS, ON_PIECES, Names, to_transformers, unused_pooler
from korbert.modeling.config import EncoderConfig, TransformersConfig
from korbert.modeling.models import (
    ClassificationModel,
    DetectionModel,
    EmbeddingModel,
    Model,
    MultipleChoiceModel,
    PretrainingModel,
    TokenClassificationModel,
)
from korbert.modeling.storage import load_model, read_config, serialize
from korbert.modeling.transformers_config import CLASSES, class_of
from korbert.tokenization import Tokenizer, morphemes, pieces, repair, spans, vocabulary
from korbert.tokenization.folder import PROBE, RECORD, WORDS

_TOKENIZER_FILE = "tokenization_korbert.py"
_MODEL_FILE = "modeling_korbert.py"  # only of encoders with embeddings that ModernBERT lacks
_SENTENCE_FILES = (
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "1_Pooling/config.json",
)
_OPTIONAL = (WORDS, PROBE, _MODEL_FILE, *_SENTENCE_FILES)  # files that only some exports have
_INLINED = (repair, spans, morphemes, vocabulary, pieces)  # each imports only those before it
_REFUSED = {
    "funnel": "its [CLS] has a token type of its own, which no exported tokenizer gives",
    "longformer": "its first piece has global attention here, for which users of transformers would have to ask",
}
_ACTIVATION = {"albert": "hidden_act", "bert": "hidden_act", "deberta-v2": "hidden_act", "distilbert": "activation"}
_NOT_WRITTEN = ("_name_or_path", "id2label", "label2id", "problem_type", "transformers_version")
Json = dict[str, Any]
_OWN_IMPORT = re.compile(r"^from korbert\.tokenization\.\w+ import .*\n", re.MULTILINE)


def export(model_folder: str | Path, folder: str | Path, check: bool = False) -> dict[str, float]:
    """Writes `folder` for `transformers`; only the check needs that package.

    folder: absent, empty, or an earlier export, whose files are replaced; other files stay. The new files are written
    and checked in a temporary folder before anything is replaced. check: load them as users do, and compare their
    outputs with our model's. Returns the largest absolute difference of each output, {} without check.

    SettingsError for a folder that holds anything else, or is not writable. ModelError if nothing in `transformers`
    computes the same as the model, and if the check finds a difference. The next sentence head of a `modern` model is
    left out: ModernBERT has none.
    """
    folder = Path(folder)
    nearest = _check_folder(folder, Path(model_folder))
    if check:
        transformers("export: the check")  # raises early if it is missing
    model, tokenizer = load_model(model_folder)
    if not isinstance(tokenizer, Tokenizer):
        raise ModelError(
            f"{model_folder}: its tokenizer is one of transformers already: export writes only models with our own"
        )
    config = _config(model)  # refuses before anything is written
    task = read_config(model_folder).get("task") or {}
    with TemporaryDirectory(prefix=".export-", dir=nearest) as aside:
        new = Path(aside) / (folder.resolve().name or "model")  # transformers names its copy of the code so
        new.mkdir()
        _write(new, config, model, tokenizer, task)
        differences = checks.compare(model, tokenizer, new) if check else {}
        folder.mkdir(parents=True, exist_ok=True)
        _replace(folder, new)
    return differences


def _write(folder: Path, config: Json, model: Model, tokenizer: Tokenizer, task: Json) -> None:
    """All files of an export. task: what the model was trained for, as in its config.json; {}: nothing."""
    length = task.get("max_length") or model.config.max_position_embeddings
    _write_json(folder / "config.json", config)
    if isinstance(model.config, TransformersConfig):
        weights = adapter_weights(model)
    else:
        weights = to_transformers(model.state_dict(), model.config, model.kind)
    (folder / "model.safetensors").write_bytes(serialize(weights))
    if "auto_map" in config:
        (folder / _MODEL_FILE).write_bytes(Path(__file__).with_name(_MODEL_FILE).read_bytes())
    if isinstance(model, EmbeddingModel):
        for name, content in sentence_files(model, length, task).items():
            (folder / name).parent.mkdir(exist_ok=True)
            _write_json(folder / name, content)
    tokenizer.save(folder)

    # One file of code: the modules that it needs stand in place of its imports from korbert.
    source = Path(__file__).with_name(_TOKENIZER_FILE).read_text(encoding="utf-8")
    start = source.index("\nfrom korbert") + 1
    texts = [Path(str(module.__file__)).read_text(encoding="utf-8") for module in _INLINED]
    inlined = "\n\n".join(_OWN_IMPORT.sub("", text) for text in [*texts, source[start:]])
    assert "\nfrom korbert" not in inlined
    (folder / _TOKENIZER_FILE).write_text(source[:start] + inlined, encoding="utf-8")

    inputs, own = ["input_ids"], model.config
    if own.type_vocab_size or (isinstance(own, EncoderConfig) and own.overlap_embedding):
        inputs.append("token_type_ids")
    if isinstance(own, EncoderConfig) and own.boundary_embedding:
        inputs.append("boundaries")
    tokenizer_config: Json = {
        "tokenizer_class": "KorbertTokenizer",
        "auto_map": {"AutoTokenizer": ["tokenization_korbert.KorbertTokenizer", None]},
        "model_max_length": length,
        "model_input_names": [*inputs, "attention_mask"],
    }
    if isinstance(model, PretrainingModel):
        tokenizer_config["split_special_tokens"] = False  # users write gaps as [MASK]
    _write_json(folder / "tokenizer_config.json", tokenizer_config)


def sentence_files(model: EmbeddingModel, max_length: int, task: Json) -> Mapping[str, object]:
    """The files that make it a model of sentence-transformers: path in the folder -> its JSON.

    The modules are encoder, pooling and, if the model normalizes, normalization. max_length: pieces of a text, special
    tokens included. task: its prompts go along.
    """
    steps = [("", "Transformer"), ("1_Pooling", "Pooling")] + [("2_Normalize", "Normalize")] * model.normalize
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{name}"}
        for number, (path, name) in enumerate(steps)
    ]
    pooling = {
        "word_embedding_dimension": model.config.hidden_size,
        "pooling_mode_cls_token": model.pooling == "first",
        "pooling_mode_mean_tokens": model.pooling == "mean",
        "pooling_mode_max_tokens": False,
        "pooling_mode_mean_sqrt_len_tokens": False,
    }
    bert = {"max_seq_length": max_length, "do_lower_case": False}
    prompts = {"query": task.get("query_prompt", ""), "document": task.get("passage_prompt", "")}
    more = {"similarity_fn_name": "cosine", **({"prompts": prompts} if any(prompts.values()) else {})}
    return dict(zip(_SENTENCE_FILES, (modules, bert, more, pooling), strict=True))


def _replace(folder: Path, new: Path) -> None:
    """Moves the files of `new` to `folder`. Without config.json, which goes first and comes last, it is no model."""
    for name in ("config.json", *_OPTIONAL):
        (folder / name).unlink(missing_ok=True)
    files = [file.relative_to(new) for file in new.rglob("*") if file.is_file()]
    for file in sorted(files, key=lambda file: file == Path("config.json")):
        (folder / file).parent.mkdir(exist_ok=True)
        (new / file).replace(folder / file)


def _check_folder(folder: Path, model_folder: Path) -> Path:
    """The folder, or the nearest one above it that exists. SettingsError if export may not write there."""
    if folder.resolve().is_relative_to(model_folder.resolve()):
        raise SettingsError(f"{folder}: lies in {model_folder}, which is read: name a folder elsewhere")
    if os.path.lexists(folder) and not folder.is_dir():
        raise SettingsError(f"{folder}: is no folder: name a new one")
    names = sorted(file.name for file in folder.iterdir()) if folder.is_dir() else []
    if strangers := _not_exported(folder, names):
        listed = ", ".join(strangers[:3]) + ", .." * (len(strangers) > 3)
        raise SettingsError(
            f"{folder}: holds {listed}, which no export wrote: name a new folder, an empty one, or an earlier export"
        )
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not nearest.is_dir() or not may_write(nearest, os.W_OK | os.X_OK):
        raise SettingsError(f"{folder}: cannot be made or written to ({nearest}): name another one")
    return nearest


def _not_exported(folder: Path, names: list[str]) -> list[str]:
    """The files of a folder that keep an export from writing there: all, but in an earlier export only those that
    others added under names of ours, according to its records."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return names
    # An export has these files, and no version of `transformers`, which is added when that saves there.
    own = all((folder / name).is_file() for name in (_TOKENIZER_FILE, RECORD))
    if not own or not isinstance(config, dict) or {"transformers_version", "korbert_format"} & config.keys():
        return names
    written = set(read_object(folder / RECORD).get("files") or {})
    if "auto_map" in config:
        written.add(_MODEL_FILE)
    architecture = str((config.get("architectures") or [""])[0])
    if architecture.endswith("Model"):  # an encoder without a head: of an embedding model
        written.update(_SENTENCE_FILES)
    return sorted(name for name in {*_OPTIONAL} - written if os.path.lexists(folder / name))


def _config(model: Model) -> Json:
    """config.json. ModelError if nothing in `transformers` computes the same as the model."""
    if model.not_exported:
        raise ModelError(f"export: {model.not_exported}")
    if isinstance(model, DetectionModel) and model.config.architecture == "modern":
        raise ModelError(
            "export: no class of transformers finds replaced pieces with a `modern`: fine-tune it, and export that"
        )
    if isinstance(model.config, TransformersConfig):
        config = adapter_config(model.config, model.kind)
    else:
        config = config_to_transformers(model.config, model.kind)
    if isinstance(model, ClassificationModel):
        if model.pooling == "mean" and model.config.architecture != "modern":
            raise ModelError(
                f"export: this `{model.config.architecture}` takes the mean over pieces,"
                f" {config['architectures'][0]} the first:"
                ' train it with pooling = "first", or use the model with korbert'
            )
        config["classifier_pooling"] = {"first": "cls", "mean": "mean"}[model.pooling]
    if isinstance(model, MultipleChoiceModel):  # one score per row, without a name
        return config
    if isinstance(model, ClassificationModel):
        config["problem_type"] = model.problem_type
    if isinstance(model, ClassificationModel | TokenClassificationModel):
        config["id2label"] = dict(enumerate(model.labels))
        config["label2id"] = {label: id for id, label in enumerate(model.labels)}
    return config


def adapter_config(config: TransformersConfig, kind: str) -> dict[str, Any]:
    """config.json of `transformers` for a model of that kind. ModelError if none of its classes computes the same."""
    _head_names(config, kind)  # refuses others
    of_pretraining = "ForPreTraining" if config.model_type in ("albert", "bert") else "ForMaskedLM"
    ending = ENDINGS.get(kind, of_pretraining)
    if kind == "question-answering" and config.model_type in ("xlm", "flaubert"):
        ending += "Simple"  # the others of these two search for spans by beam
    kept = {name: value for name, value in config.transformers.items() if name not in _NOT_WRITTEN}
    named = CLASSES[config.model_type].removesuffix("Model") + ending
    return kept | {"architectures": [named], "tie_word_embeddings": True, "dtype": "float32"}


def adapter_weights(model: Model) -> dict[str, Tensor]:
    """The weights under the names of `transformers`, tied ones once; see conversion.to_transformers."""
    config = model.config
    assert isinstance(config, TransformersConfig)
    names = _head_names(config, model.kind)
    alone = model.kind == "embedding"
    prefix = "" if alone else f"{class_of(config.model_type).base_model_prefix}."
    renamed = {}
    for name, tensor in model.state_dict().items():
        if name.startswith("encoder.model."):
            renamed[prefix + name.removeprefix("encoder.model.")] = tensor
            continue
        module, _, leaf = name.rpartition(".")
        if module == "reader.classifier":  # of "spans"; no class has it beside an MLM head
            continue
        renamed |= {f"{target}.{leaf}": tensor for target in names[module]}
    return renamed | unused_pooler(config.model_type, config.hidden_size) if alone else renamed


def _head_names(config: TransformersConfig, kind: str) -> Names:
    """Our modules of the head -> theirs. ModelError if `transformers` has no such head."""
    model_type = config.model_type
    if reason := _REFUSED.get(model_type):
        raise ModelError(f"export: an encoder of {model_type}: {reason}: use the model with korbert")
    if (names := HEADS.get(model_type, ON_PIECES).get(kind)) is None:
        raise ModelError(
            f"export: no class of transformers for {model_type} has the head of our {kind} models: use the model with"
            " korbert"
        )
    activation = config.transformers.get(_ACTIVATION.get(model_type, ""), "gelu")
    if kind == "pretraining" and activation != "gelu":
        raise ModelError(
            f"export: the MLM head of {model_type} would have {activation}, ours has gelu: pretrain with"
            f' {_ACTIVATION[model_type]} = "gelu", or use the model with korbert'
        )
    if kind == "pretraining" and config.transformers.get("legacy") is False:
        raise ModelError("export: the MLM head of DeBERTa is ours only with legacy = true: pretrain with that")
    return names


def _write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
