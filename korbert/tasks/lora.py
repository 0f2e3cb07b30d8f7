"""Low-rank adapters (LoRA, Hu et al. 2021): small matrices learn beside the encoder's own, which stay as they are.

The package `peft` adds them to every linear layer of the encoder. A model with adapters is only trained: what is
measured, kept and saved is the same model with each product added to the matrix beside it, which needs no `peft`.
"""

import copy
import importlib
import importlib.util
import logging
from typing import Any

import torch
from torch import nn

from korbert.errors import SettingsError
from korbert.modeling.embeddings import OVERLAP
from korbert.seeds import derived_seed

__all__ = ["add_adapters", "merge", "merged", "require_peft"]

_logger = logging.getLogger(__name__)

_SCALE = 2.0  # alpha / rank: what a product is multiplied by


def require_peft() -> None:
    """SettingsError where the package is not installed."""
    if importlib.util.find_spec("peft") is None:
        raise SettingsError("lora needs peft: pip install 'korbert[lora]', or leave lora out")


def add_adapters(model: nn.Module, rank: int, seed: int) -> None:
    """Adds A (rank, in) and B (out, rank) to each linear layer (out, in) of the encoder; nothing else of it learns.

    The layer gives Wx + 2 BAx. A is drawn from `seed`, B begins with 0: the model begins as it is. The head
    and an overlap embedding learn as usual. SettingsError without `peft`.
    """
    require_peft()
    peft: Any = importlib.import_module("peft")  # slow to import
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
    """A copy of a model with adapters as a plain one."""
    plain = copy.deepcopy(model)
    merge(plain)
    return plain


def merge(model: nn.Module) -> None:
    """Makes a plain model of one with adapters: W + 2 BA in the place of W, in float32."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    device = next(model.parameters()).device.type
    adapted = [(name, part) for name, part in model.named_modules() if isinstance(part, BaseTunerLayer)]
    with torch.autocast(device, enabled=False):
        for name, part in adapted:
            part.merge()
            model.set_submodule(name, part.get_base_layer())
