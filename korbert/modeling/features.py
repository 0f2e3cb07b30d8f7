"""A head on chosen layers of a frozen encoder (Devlin et al. 2019, 5.3)."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from korbert.modeling.adapters.transformers_encoder import encoder_of
from korbert.modeling.config import AnyConfig
from korbert.modeling.feature_settings import HeadName, chosen_layers
from korbert.modeling.heads import initialize, mean_pooling
from korbert.modeling.model_base import AnyModel


class LayerReader(AnyModel):
    """A model that reads `count` layers of its encoder, each dimension of each brought to mean 0 and deviation 1."""

    encoder: Any

    def __init__(self, config: AnyConfig, count: int) -> None:
        super().__init__()
        self.config = config
        self.mean = nn.Buffer(torch.zeros(count, config.hidden_size))
        self.deviation = nn.Buffer(torch.ones(count, config.hidden_size))

    def standardize(self, mean: Tensor, deviation: Tensor) -> None:
        """Sets mean and deviation of each layer, (K, D) each; a dimension that never varies is not scaled."""
        self.mean.copy_(mean)
        self.deviation.copy_(torch.where(deviation > 1e-6, deviation, 1.0))

    def standardized(self, *inputs: object, only: Sequence[int], **named: object) -> Tensor:
        """The layers `only`, (K, B, T, D). Arguments as Encoder.all_layers."""
        layers = self.encoder.all_layers(*inputs, only=only, **named).float()
        return (layers - self.mean[:, None, None]) / self.deviation[:, None, None]


class FeatureModel(LayerReader):
    """Scores of rows or of pieces, from chosen layers of a frozen encoder.

    1. `standardize` brings each dimension of each layer to mean 0 and deviation 1, as layers differ in scale.
    2. Several layers are summed, concatenated, or summed with learned weights (softmax of one number per layer, and a
       common factor: Peters et al. 2018, equation 1).
    3. A BiLSTM reads the pieces of a row in both directions.
    4. To score rows, the vectors of the pieces are pooled.
    5. The head scores the result.

    num_outputs: scores per row or piece. pooling: None scores pieces. layers, head, width: see FeatureSettings.
    encoder: an encoder with weights or its stand-in (korbert/tasks/finetuning/vectors.py); None: a new one, to load
    weights into.
    """

    kind: ClassVar[str] = "features"
    saved: ClassVar[tuple[str, ...]] = ("num_outputs", "pooling", "layers", "head", "width")
    not_exported: ClassVar[str] = (
        "a head on features, which nothing in transformers computes: fine-tune, and export that"
    )

    def __init__(
        self,
        config: AnyConfig,
        num_outputs: int,
        pooling: Literal["mean", "first"] | None,
        layers: str = "last",
        head: HeadName = "linear",
        width: int = 256,
        generator: torch.Generator | None = None,
        encoder: nn.Module | None = None,
    ) -> None:
        indices, mix = chosen_layers(layers, config.num_hidden_layers)
        super().__init__(config, len(indices))
        self.num_outputs = num_outputs
        self.pooling = pooling
        self.layers = layers
        self.head = head
        self.width = width
        self.indices = indices
        self.mix = mix
        if self.mix == "weighted sum":
            self.weights = nn.Parameter(torch.zeros(len(self.indices)))
            self.factor = nn.Parameter(torch.ones(()))
        size = config.hidden_size * (len(indices) if mix == "concat" else 1)
        if head == "mlp":
            self.dense = nn.Linear(size, width)
        elif head == "bilstm":
            self.lstm = nn.LSTM(size, width, num_layers=2, batch_first=True, bidirectional=True)
            for parameter in self.lstm.parameters():  # as torch does, but from the generator
                nn.init.uniform_(parameter, -(width**-0.5), width**-0.5, generator=generator)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.classifier = nn.Linear({"linear": size, "mlp": width, "bilstm": 2 * width}[head], num_outputs)
        initialize(self, config, generator)
        self.encoder = encoder_of(config, generator) if encoder is None else encoder

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, *others: object, **named: object
    ) -> Tensor:
        """Arguments as Encoder.forward. Returns scores, (B, num_outputs), or (B, T, num_outputs) without pooling."""
        with torch.no_grad():
            layers = self.standardized(input_ids, attention_mask, *others, only=self.indices, **named)
        # (K, B, T, D) -> (B, T, D), or (B, T, K x D) for concat
        if self.mix == "concat":
            vectors = torch.cat(list(layers), dim=-1)
        elif self.mix == "weighted sum":
            vectors = self.factor * torch.tensordot(self.weights.softmax(dim=0), layers, 1)
        else:
            vectors = layers.sum(dim=0)
        if self.head == "bilstm":
            # In float32, as few CPUs have bf16 for it: (B, T, D) -> (B, T, 2 x width), 0 at padding.
            mask = torch.ones(vectors.shape[:2]) if attention_mask is None else attention_mask.cpu()
            packed = pack_padded_sequence(vectors.float(), mask.sum(dim=1), batch_first=True, enforce_sorted=False)
            with torch.autocast(vectors.device.type, enabled=False):
                read = self.lstm(packed)[0]
            vectors = pad_packed_sequence(read, batch_first=True, total_length=vectors.shape[1])[0]
        if self.pooling == "first" or (self.pooling and vectors.shape[1] == 1):  # vectors stored pooled have T = 1
            vectors = vectors[:, 0]
        elif self.pooling:
            vectors = mean_pooling(vectors, attention_mask)
        if self.head == "mlp":
            vectors = F.gelu(self.dense(vectors))
        return self.classifier(self.dropout(vectors))
