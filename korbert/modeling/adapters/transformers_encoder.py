"""Adapts encoders of `transformers` to the interface of Encoder.

A TransformersConfig holds their config (transformers_config.py). korbert.huggingface.importing reads folders.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from korbert.errors import ModelError
from korbert.modeling.adapters.transformers_config import class_of, options, their_config
from korbert.modeling.config import AnyConfig, TransformersConfig, check_row
from korbert.modeling.encoder import Encoder
from korbert.system.transformers_package import quietly


class TransformersEncoder(nn.Module):
    """An encoder of `transformers` with the interface of Encoder, without its pooler, which no task here uses.

    Padding does not change the vectors of pieces, except in ConvBERT, whose convolutions reach past the end of a row,
    and in Funnel, which pools pieces in pairs. Longformer's first piece has global attention, as in its classifiers
    (Beltagy et al. 2020, 4.2).
    generator: for the initial weights, drawn as `transformers` initializes them; None: torch's global generator.
    model: a model with weights, from load_encoder.
    """

    def __init__(
        self, config: TransformersConfig, generator: torch.Generator | None = None, model: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.config = config
        if model is None:
            with quietly(), torch.random.fork_rng(devices=[], enabled=generator is not None):
                if generator is not None:
                    torch.manual_seed(int(torch.randint(2**62, (), generator=generator)))
                theirs = their_config(config.model_type, config.transformers)
                model = class_of(config.model_type)._from_config(theirs, **options(config))
        self.model: Any = model

    @property
    def token_weight(self) -> Tensor:
        """The token embedding matrix, (V, E)."""
        return self.model.get_input_embeddings().weight

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        boundaries: Tensor | None = None,
        *,
        lengths: Sequence[int] | None = None,
    ) -> Tensor:
        """As Encoder.forward: (B, T) integers -> (B, T, D), 0 at padding. boundaries: ignored."""
        mask = _mask(input_ids, attention_mask, lengths)
        hidden: Tensor = self._run(input_ids, mask, token_type_ids).last_hidden_state
        return hidden.masked_fill(~mask[:, :, None], 0.0)

    def all_layers(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        boundaries: Tensor | None = None,
        *,
        lengths: Sequence[int] | None = None,
        only: Sequence[int] | None = None,
    ) -> Tensor:
        """As Encoder.all_layers: (L + 1, B, T, D). ModelError if layers differ in sequence length (Funnel)."""
        mask = _mask(input_ids, attention_mask, lengths)
        output = self._run(input_ids, mask, token_type_ids, output_hidden_states=True)
        layers = [*output.hidden_states[:-1], output.last_hidden_state]
        if any(layer.shape != layers[-1].shape for layer in layers):
            raise ModelError(
                "{model_type}: its layers differ in pieces: take the last one", model_type=self.config.model_type
            )
        layers = layers if only is None else [layers[index] for index in only]
        return torch.stack(layers).masked_fill(~mask[None, :, :, None], 0.0)

    def attentions(self, input_ids: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        """Attention weights: (B, T) integers without padding -> (L, B, H, T, T).

        ModelError for encoders without piece-to-piece attention weights (Funnel, Longformer).
        """
        if self.config.model_type in ("funnel", "longformer"):  # their shapes may match by chance
            raise ModelError(
                "{model_type}: it has no piece-to-piece attention weights", model_type=self.config.model_type
            )
        mask = torch.ones_like(input_ids, dtype=torch.bool)
        implementation = self.model.config._attn_implementation
        self.model.set_attn_implementation("eager")  # other kernels keep no weights
        try:
            attentions = self._run(input_ids, mask, token_type_ids, output_attentions=True).attentions
        finally:
            self.model.set_attn_implementation(implementation)
        return torch.stack(list(attentions))

    def _run(self, input_ids: Tensor, mask: Tensor, token_type_ids: Tensor | None, **arguments: object) -> Any:
        """Runs the wrapped model. mask: (B, T) bool."""
        config = self.config
        check_row(config, input_ids.shape[1], is_limited=True, has_boundaries=False)
        # RoBERTa counts positions over non-padding ids, so padding must carry the padding id.
        arguments["input_ids"] = input_ids.masked_fill(~mask, config.pad_token_id)
        if token_type_ids is not None and config.type_vocab_size:
            arguments["token_type_ids"] = token_type_ids
            if config.model_type == "funnel":  # [CLS] has a token type of its own
                arguments["token_type_ids"] = token_type_ids.index_fill(1, token_type_ids.new_zeros(1), 2)
        if config.model_type == "longformer":
            arguments["global_attention_mask"] = torch.zeros_like(input_ids).index_fill(1, input_ids.new_zeros(1), 1)
        return self.model(attention_mask=mask.long(), return_dict=True, **arguments)


def encoder_of(config: AnyConfig, generator: torch.Generator | None = None) -> Encoder | TransformersEncoder:
    """Builds the encoder of a config. generator: for the weights of `transformers` encoders; ours need `initialize`."""
    return TransformersEncoder(config, generator) if isinstance(config, TransformersConfig) else Encoder(config)


def _mask(input_ids: Tensor, attention_mask: Tensor | None, lengths: Sequence[int] | None) -> Tensor:
    """(B, T) bool, True on pieces."""
    if attention_mask is not None:
        return attention_mask.bool()
    if lengths is None:
        return torch.ones_like(input_ids, dtype=torch.bool)
    ends = torch.tensor(lengths, device=input_ids.device)[:, None]
    return torch.arange(input_ids.shape[1], device=input_ids.device) < ends
