"""Layer-wise learning rates, freezing and truncation of encoders."""

from collections.abc import Iterator
from typing import Any

from torch import nn

from korbert.errors import SettingsError
from korbert.messages import Message
from korbert.modeling import OVERLAP, Encoder, Network

_SHARED = Message("the layers of this encoder share their weights")
_INSEPARABLE = {
    "albert": Message("the layers of ALBERT share their weights"),
    "funnel": Message("the layers of Funnel are blocks of different lengths"),
}


def keep_layers(model: Network, layers: int) -> None:
    """Truncates the encoder to its first `layers` layers. The final norm stays.

    SettingsError for as many layers as there are or more, for shared layers, and for an encoder of transformers.
    """
    encoder = model.encoder
    count = model.config.num_hidden_layers
    if not isinstance(encoder, Encoder):
        raise SettingsError(
            "num_hidden_layers {layers}: an encoder of transformers keeps its layers: leave num_hidden_layers out",
            layers=layers,
        )
    if encoder.config.layers_per_set > 1:
        raise SettingsError(
            "num_hidden_layers {layers}: {reason}: leave num_hidden_layers out", layers=layers, reason=_SHARED
        )
    if layers >= count:
        raise SettingsError(
            "num_hidden_layers {layers}: the encoder has {count} layers: take fewer, or leave num_hidden_layers out",
            layers=layers,
            count=count,
        )
    encoder.layers = encoder.layers[:layers]
    model.config = encoder.config = encoder.config.model_copy(update={"num_hidden_layers": layers})


def freeze(model: nn.Module, layers: int) -> None:
    """Freezes the embeddings and the lowest `layers` layers; -1: the whole encoder.

    SettingsError for more layers than there are.
    """
    if layers < 0:
        encoder: Any = model.encoder
        encoder.requires_grad_(False)
        return
    depths = dict(_depths(model))
    if layers > (count := max(depths.values())):
        raise SettingsError(
            "frozen_layers {layers}: the encoder has {count} layers: take fewer, or -1 for all of it",
            layers=layers,
            count=count,
        )
    for name, parameter in model.named_parameters():
        if name in depths and depths[name] <= layers:
            parameter.requires_grad_(False)


def layerwise_factors(model: nn.Module, factor: float) -> dict[str, float]:
    """The rate factors of layer-wise decay, by parameter: each layer has `factor` times the rate of the layer above it.

    The embeddings count as the layer below the lowest; the last layer and the head have the full rate (Clark et al.
    2020, appendix B). Frozen parameters have no factor, nor have those with the full rate.
    """
    learning = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    depths = dict(_depths(model))
    top = max(depths.values())
    return {name: factor ** (top - depth) for name, depth in depths.items() if name in learning and depth < top}


def _depths(model: nn.Module) -> Iterator[tuple[str, int]]:
    """Yields the name of each encoder parameter and its layer, from 1; what comes after the layers counts as the last.

    The layer is 0 for embeddings and for parameters shared by all layers (DeBERTa's relative positions). The embedding
    of overlap is left out.
    SettingsError for an encoder whose layers are not separable.
    """
    encoder: Any = model.encoder
    count: int = encoder.config.num_hidden_layers
    shares = getattr(encoder.config, "layer_groups", None)
    if reason := _SHARED if shares else _INSEPARABLE.get(getattr(encoder.config, "model_type", "")):
        raise SettingsError(
            "{reason}: leave layer_decay and frozen_layers out, or freeze all by frozen_layers -1", reason=reason
        )
    # Encoders of transformers name their layers differently: the layers are the ModuleList of that length.
    lists = [
        name for name, module in encoder.named_modules() if isinstance(module, nn.ModuleList) and len(module) == count
    ]
    assert lists, encoder.config
    for name, _ in encoder.named_parameters():
        if name == OVERLAP:  # as new as the head
            continue
        layer_path = next((name.removeprefix(f"{prefix}.") for prefix in lists if name.startswith(f"{prefix}.")), None)
        depth = count if "final_norm" in name or name.startswith("piece_weight.") else 0
        yield f"encoder.{name}", depth if layer_path is None else int(layer_path.partition(".")[0]) + 1
