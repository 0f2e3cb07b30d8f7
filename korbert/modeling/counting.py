"""Parameter and FLOP counts of any pretraining model: from the sizes of our encoders (arithmetic.py), or measured on
an encoder of `transformers`.

To measure, one row of the phase's length passes through the encoder on CPU: PyTorch counts the operations of its
products and passes on each tensor that the backward pass would need. The vocabulary is small meanwhile, as a lookup
has no products.
"""

import functools
from typing import Any

import torch
from torch import Tensor, nn

from korbert.modeling import arithmetic
from korbert.modeling.adapter import TransformersEncoder
from korbert.modeling.arithmetic import Work
from korbert.modeling.config import AnyConfig, EncoderConfig, TransformersConfig
from korbert.modeling.foreign import adapted_config
from korbert.modeling.models import PretrainingModel

__all__ = ["activation_numbers", "flop_a_piece", "parameters"]

_FEW_ENTRIES = 128  # vocabulary size of the measured encoder


def parameters(config: AnyConfig) -> dict[str, int]:
    """As arithmetic.parameters; an encoder of `transformers` is one part besides its token embedding."""
    if isinstance(config, EncoderConfig):
        return arithmetic.parameters(config)
    with torch.device("meta"):
        model = PretrainingModel(config)
    embedding, encoder = model.encoder.token_weight.numel(), _size(model.encoder)
    return {
        "token embedding": embedding,
        "encoder": encoder - embedding,
        "pooler": _size(model.nsp.pooler),
        "MLM transform": _size(model.mlm.transform),
        "MLM bias": model.mlm.bias.numel(),
        "NSP classifier": _size(model.nsp.classifier),
    }


def flop_a_piece(
    config: AnyConfig, *, length: float, label_share: float, scored: int, pieces_a_step: float
) -> dict[str, Work]:
    """As arithmetic.flop_a_piece. An encoder of `transformers` is one part, and runs all its layers at all pieces."""
    if isinstance(config, EncoderConfig):
        return arithmetic.flop_a_piece(
            config, length=length, label_share=label_share, scored=scored, pieces_a_step=pieces_a_step
        )
    work = arithmetic.head_flop(
        config.hidden_size, config.embedding_width, length=length, label_share=label_share, scored=scored
    )
    counted, _ = _counted(config.model_dump_json(), round(length))
    optimizer = arithmetic.optimizer_flop(sum(parameters(config).values()), pieces_a_step)
    return {"encoder": Work(counted, 2 * counted), **work, "optimizer": optimizer}


def activation_numbers(config: AnyConfig, length: float) -> int:
    """As arithmetic.activation_numbers; for an encoder of `transformers`, measured on a row of `length`."""
    if isinstance(config, EncoderConfig):
        return arithmetic.activation_numbers(config)
    _, kept = _counted(config.model_dump_json(), round(length))
    return round(kept)


@functools.lru_cache(maxsize=8)
def _counted(config_json: str, length: int) -> tuple[float, float]:
    """Forward operations and kept numbers per piece of one row, for an encoder of `transformers`."""
    from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

    config = TransformersConfig.model_validate_json(config_json)
    with torch.random.fork_rng(devices=[]):
        encoder = TransformersEncoder(adapted_config(config.transformers, _FEW_ENTRIES)).train()
    weights = {weight.untyped_storage().data_ptr() for weight in encoder.parameters()}
    kept: dict[int, int] = {}  # numbers by storage: a tensor that several products need counts once

    def keep(tensor: Tensor) -> Tensor:
        if (place := tensor.untyped_storage().data_ptr()) not in weights:
            kept[place] = max(kept.get(place, 0), tensor.untyped_storage().nbytes() // 4)
        return tensor

    def attention(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
        count: int = sdpa_flop_count(query, key, value)  # type: ignore[no-untyped-call]
        return count

    # By itself, the counter knows only GPU attention.
    own = {torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: attention}
    ids = torch.full((1, length), _FEW_ENTRIES - 1)
    with (
        torch.random.fork_rng(devices=[]),
        torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
        FlopCounterMode(display=False, custom_mapping=own) as counter,
    ):
        hidden = encoder(ids)
    del hidden
    return counter.get_total_flops() / length, sum(kept.values()) / length


def _size(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
