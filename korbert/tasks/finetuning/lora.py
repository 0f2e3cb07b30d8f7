"""Low-rank adapters (LoRA, Hu et al. 2021): small trained matrices next to the frozen ones of the encoder.

The package `peft` adds them to every linear layer of the encoder. Adapters exist only during training: the model that
is scored, kept and saved has them merged into its matrices and needs no `peft`.
"""

import copy
import logging
from typing import Any

import torch
from torch import nn

from korbert.extras import package
from korbert.modeling.embeddings import OVERLAP
from korbert.seeds import derived_seed

_logger = logging.getLogger(__name__)

_SCALE = 2  # alpha / rank, which multiplies BA


def add_adapters(model: nn.Module, rank: int, seed: int) -> None:
    """Adds A (rank, in) and B (out, rank) to each linear layer (out, in) of the encoder and freezes the rest of it.

    The layer computes Wx + 2 BAx. A is drawn from `seed`, B starts at 0, so the model is unchanged at first. The head
    and an overlap embedding are trained as usual. SettingsError without `peft`.
    """
    peft = package("peft", "lora")
    encoder: Any = model.encoder
    linear = [name for name, part in encoder.named_modules() if isinstance(part, nn.Linear)]
    settings = peft.LoraConfig(r=rank, lora_alpha=_SCALE * rank, target_modules=linear)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derived_seed("lora", seed))
        peft.inject_adapter_in_model(settings, encoder)
    for name, parameter in encoder.named_parameters():
        if name == OVERLAP:  # as new as the head
            parameter.requires_grad_(True)
    learning = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    total = sum(parameter.numel() for parameter in model.parameters())
    _logger.info("lora %d: %s of %s parameters learn", rank, f"{learning:,}", f"{total:,}")


def merged(model: nn.Module) -> nn.Module:
    """A copy of a model with its adapters merged."""
    plain = copy.deepcopy(model)
    merge(plain)
    return plain


def merge(model: nn.Module) -> None:
    """Merges adapters in place: W becomes W + 2 BA, in float32."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    device = next(model.parameters()).device.type
    adapted = [(name, part) for name, part in model.named_modules() if isinstance(part, BaseTunerLayer)]
    with torch.autocast(device, enabled=False):
        for name, part in adapted:
            part.merge()
            model.set_submodule(name, part.get_base_layer())
