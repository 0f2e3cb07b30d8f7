"""Small models of each family, as model folders and as folders of `transformers`."""

from pathlib import Path
from typing import Any

import torch
import transformers

from korbert.huggingface.exporting import export
from korbert.modeling.config import EncoderConfig
from korbert.modeling.models import Model
from korbert.modeling.storage import save_model
from korbert.tokenization import Tokenizer

OWN = ("boundary_embedding", "overlap_embedding", "piece_weights")
FAMILIES: dict[str, dict[str, Any]] = {
    "bert": {"architecture": "bert"},
    "albert": {"architecture": "bert", "embedding_size": 12, "layer_groups": 1},
    "modernbert": {"architecture": "modern"},
    "korbert-modernbert": {"architecture": "modern", **dict.fromkeys(OWN, True)},
}


def small(tokenizer: Tokenizer, family: str = "bert", **others: Any) -> EncoderConfig:
    sizes = {"hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2, "intermediate_size": 24}
    sizes |= {"vocab_size": tokenizer.vocab_size, "max_position_embeddings": 320}
    return EncoderConfig.model_validate(sizes | FAMILIES[family] | others)


def stirred(model: Model, by: float = 0.2) -> Model:
    """No bias 0 and no norm 1: a weight in the wrong place shows."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(by * torch.randn(parameter.shape, generator=generator))
    return model.eval()


def saved(folder: Path, model: Model, tokenizer: Tokenizer) -> Path:
    save_model(folder, stirred(model), tokenizer)
    return folder


def exported(folder: Path, model: Model, tokenizer: Tokenizer) -> Path:
    """The export, in `theirs` beside the model folder `ours`."""
    export(saved(folder / "ours", model, tokenizer), folder / "theirs")
    return folder / "theirs"


def tokenizer_of(folder: Path, **options: Any) -> Any:
    return transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=True, **options)
