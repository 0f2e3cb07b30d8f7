"""Exports a model folder for `transformers`: AutoModel..., and AutoTokenizer with trust_remote_code."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from korbert.errors import ModelError
from korbert.huggingface.conversion import config_to_transformers, to_transformers
from korbert.messages import Message
from korbert.modeling import (
    ClassificationModel,
    DetectionModel,
    EmbeddingModel,
    EncoderConfig,
    LinearModel,
    MultipleChoiceModel,
    Network,
    PretrainingModel,
    load_model,
    read_config,
    serialize,
)
from korbert.personal_data import MASKS
from korbert.system import JsonObject, new_folder, write_json
from korbert.tokenization import Tokenizer, morphemes, pieces, repair, vocabulary

_TOKENIZER_FILE = "tokenization_korbert.py"
_MODEL_FILE = "modeling_korbert.py"  # only of encoders with embeddings that ModernBERT lacks
_POOLINGS = {"first": "cls", "mean": "mean"}  # ours -> theirs
_INLINED = (repair, morphemes, vocabulary, pieces)  # each imports only those before it
_OWN_IMPORT = re.compile(r"^from korbert\.tokenization\.\w+ import (?:\([^)]*\)|.*)\n", re.MULTILINE)


def export(model_folder: str | Path, folder: str | Path) -> list[Message]:
    """Writes `folder` for `transformers`, without that package. Returns lines about what was left out.

    SettingsError for a folder that holds anything, lies in the model, or cannot be made. ModelError if nothing in
    `transformers` computes the same as the model, or if its encoder is one of `transformers` already. Heads of
    pretraining without a counterpart there are left out: next sentence of `modern` and detection models, and span
    selection of all.
    """
    folder = Path(folder)
    with new_folder(folder, Path(model_folder)) as staging:
        model, tokenizer = load_model(model_folder)
        if not isinstance(tokenizer, Tokenizer) or not isinstance(model.config, EncoderConfig):
            raise ModelError(
                "{model_folder}: is of transformers already: export writes only encoders of korbert",
                model_folder=model_folder,
            )
        task = read_config(model_folder).get("task") or {}  # what the model was trained for
        config = _config(model, model.config, task)
        length = task.get("max_length") or model.config.max_position_embeddings
        write_json(staging / "config.json", config)
        (staging / "model.safetensors").write_bytes(
            serialize(to_transformers(model.state_dict(), model.config, model.kind))
        )
        if "auto_map" in config:
            (staging / _MODEL_FILE).write_bytes(Path(__file__).with_name(_MODEL_FILE).read_bytes())
        if isinstance(model, EmbeddingModel):
            for name, content in sentence_files(model, length, task).items():
                write_json(staging / name, content)
        tokenizer.save(staging)

        # One file of code: the modules that it needs stand in place of its imports from korbert.
        source = Path(__file__).with_name(_TOKENIZER_FILE).read_text(encoding="utf-8")
        start = source.index("\nfrom korbert") + 1
        texts = [Path(str(module.__file__)).read_text(encoding="utf-8") for module in _INLINED]
        inlined = "\n\n".join(_OWN_IMPORT.sub("", text) for text in [*texts, source[start:]])
        assert "\nfrom korbert" not in inlined
        (staging / _TOKENIZER_FILE).write_text(source[:start] + inlined, encoding="utf-8")

        inputs = ["input_ids"]
        if model.config.type_vocab_size or model.config.overlap_embedding:
            inputs.append("token_type_ids")
        if model.config.boundary_embedding:
            inputs.append("boundaries")
        tokenizer_config: JsonObject = {
            "tokenizer_class": "KorbertTokenizer",
            "auto_map": {"AutoTokenizer": ["tokenization_korbert.KorbertTokenizer", None]},
            "model_max_length": length,
            "model_input_names": [*inputs, "attention_mask"],
        }
        if isinstance(model, PretrainingModel):
            tokenizer_config["split_special_tokens"] = False  # users write gaps as [MASK]
        write_json(staging / "tokenizer_config.json", tokenizer_config)
        return list(_left_out(model, task))


def _left_out(model: Network, task: JsonObject) -> Iterator[Message]:
    """Says what the export lacks."""
    if task.get("mask_personal"):
        yield Message("personal data is not masked there: the model expects tags such as {tag}", tag=MASKS["phone"])
    if not isinstance(model, LinearModel):
        return
    if model.num_terms:
        yield Message("words are left out ({count:,} terms): the vectors decide alone", count=model.num_terms)
    if task.get("thresholds"):
        yield Message("the thresholds of labels are left out: a text has those with a probability above 0.5")
    yield Message("longer texts are cut at {length} pieces", length=task["max_length"])


def sentence_files(model: EmbeddingModel, max_length: int, task: JsonObject) -> Mapping[str, object]:
    """The files that make it a model of sentence-transformers: path in the folder -> its JSON.

    The modules are encoder, pooling and normalization. max_length: pieces of a text, special
    tokens included. task: its prompts go along.
    """
    steps = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
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
    prompts = {"query": task.get("query_prompt", ""), "document": task.get("passage_prompt", "")}
    sentence_config = {"similarity_fn_name": "cosine", **({"prompts": prompts} if any(prompts.values()) else {})}
    return {
        "modules.json": modules,
        "sentence_bert_config.json": {"max_seq_length": max_length, "do_lower_case": False},
        "config_sentence_transformers.json": sentence_config,
        "1_Pooling/config.json": pooling,
    }


def _config(model: Network, encoder: EncoderConfig, task: JsonObject) -> JsonObject:
    """config.json. ModelError if nothing in `transformers` computes the same as the model."""
    if isinstance(model, LinearModel) and (
        encoder.architecture != "modern" or model.num_texts == 2 or not model.reads_vectors
    ):
        raise ModelError(
            "export: a linear model of {what}, which nothing in transformers computes: train one with only = "
            '"encoder", or use the model with korbert',
            what=Message("two texts") if model.num_texts == 2 else Message("words, or of a `bert`"),
        )
    if model.not_exported:
        raise ModelError("export: {not_exported}", not_exported=model.not_exported)
    if isinstance(model, DetectionModel) and encoder.architecture == "modern":
        raise ModelError("export: no class finds replaced pieces with a `modern`: fine-tune it, and export that")
    config = config_to_transformers(encoder, model.kind)
    if isinstance(model, ClassificationModel):
        if model.pooling == "mean" and encoder.architecture == "bert":
            raise ModelError(
                "export: this `bert` takes the mean over pieces, {config} the first: train it with pooling = "
                '"first", or use the model with korbert',
                config=config["architectures"][0],
            )
        config["classifier_pooling"] = _POOLINGS[model.pooling]
        if isinstance(model, MultipleChoiceModel):  # one score per row, without a name
            return config
        config["problem_type"] = model.problem_type
    labels = getattr(model, "labels", ())
    if isinstance(model, LinearModel):
        labels = task.get("labels", ())
        problem = "regression"
        if not labels:
            config["num_labels"] = model.num_outputs
        else:
            problem = f"{'multi' if task['several'] else 'single'}_label_classification"
        config |= {"classifier_pooling": _POOLINGS[model.pooling], "problem_type": problem}
    if labels:
        config["id2label"] = dict(enumerate(labels))
        config["label2id"] = {label: id for id, label in enumerate(labels)}
    return config
