"""Encoder heads: poolers, vocabulary, next sentence; and weight initialization."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from korbert.modeling.config import AnyConfig

_ADDED = ("attention.output", "down", "transform.dense", "head.dense")  # outputs that add to the residual stream, heads


class Pooler(nn.Module):
    """Dense layer and tanh on the vector of a row (Devlin et al. 2018). (B, D) -> (B, D)."""

    def __init__(self, config: AnyConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, vector: Tensor) -> Tensor:
        return torch.tanh(self.dense(vector))


class PredictionHead(nn.Module):
    """Dense layer, GELU and norm, before a classifier or the vocabulary. (..., D) -> (..., width). width: None: D."""

    def __init__(self, config: AnyConfig, width: int | None = None) -> None:
        super().__init__()
        biased = config.architecture != "modern"
        width = width or config.hidden_size
        self.dense = nn.Linear(config.hidden_size, width, bias=biased)
        self.norm: nn.Module = nn.LayerNorm(width, eps=config.layer_norm_eps, bias=biased)

    def forward(self, vectors: Tensor) -> Tensor:
        return self.norm(F.gelu(self.dense(vectors)))


class SpanHead(nn.Module):
    """Scores of each piece as the first and as the last one of a span. (..., D) -> (..., 2)."""

    def __init__(self, config: AnyConfig) -> None:
        super().__init__()
        self.head: PredictionHead | nn.Identity = nn.Identity()
        self.dropout = nn.Dropout(0.0)
        if config.architecture == "modern":
            self.head = PredictionHead(config)
            self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.classifier = nn.Linear(config.hidden_size, 2)

    def forward(self, vectors: Tensor) -> Tensor:
        return self.classifier(self.dropout(self.head(vectors)))


class VocabularyHead(nn.Module):
    """Scores over the vocabulary: a transform and a bias; the matrix, tied to the embeddings, is passed in."""

    def __init__(self, config: AnyConfig) -> None:
        super().__init__()
        self.transform = PredictionHead(config, config.embedding_width)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, rows: Tensor, weight: Tensor) -> Tensor:
        """rows: (..., D); weight: (V, E). Returns (..., V)."""
        return F.linear(self.transform(rows), weight, self.bias)


class NextSentenceHead(nn.Module):
    """Whether segment B follows A (label 0) or not (1), from the vector of a row's first piece. (R, D) -> (R, 2)."""

    def __init__(self, config: AnyConfig) -> None:
        super().__init__()
        self.pooler = Pooler(config)
        self.classifier = nn.Linear(config.hidden_size, 2)

    def forward(self, first: Tensor) -> Tensor:
        return self.classifier(self.pooler(first))


def mean_pooling(hidden: Tensor, attention_mask: Tensor | None) -> Tensor:
    """The mean of each row over its pieces, special tokens included. (B, T, D), (B, T) -> (B, D)."""
    if attention_mask is None:
        return hidden.mean(dim=1)
    mask = attention_mask.to(hidden.dtype)
    return (hidden * mask[:, :, None]).sum(dim=1) / mask.sum(dim=1, keepdim=True)


def initialize(model: nn.Module, config: AnyConfig, generator: torch.Generator | None) -> None:
    """Initializes weights in place: normal, truncated at two standard deviations; biases 0, norm weights 1.

    generator: None: torch's global generator. The standard deviation is initializer_range; in `modern` it is divided by
    sqrt(2 x layers) where a block adds to the residual stream, and is 1/sqrt(D) for classifiers (Warner et al. 2024,
    appendix). `bert` draws all weights alike, as Google's code does. Encoders of `transformers` are skipped.
    """
    for name, module in model.named_modules():
        if config.architecture == "transformers" and name.startswith("encoder."):
            continue
        if isinstance(module, nn.LayerNorm):
            module.reset_parameters()
        elif isinstance(module, nn.Linear | nn.Embedding):
            deviation = config.initializer_range
            if config.architecture == "modern" and name.endswith("classifier"):
                deviation = float(config.hidden_size**-0.5)
            elif config.architecture == "modern" and name.endswith(_ADDED):
                deviation /= math.sqrt(2 * config.num_hidden_layers)
            nn.init.trunc_normal_(module.weight, 0.0, deviation, -2 * deviation, 2 * deviation, generator=generator)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)
