"""Feature-based training: heads on the vectors of a frozen encoder (Devlin et al. 2019, 5.3)."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from korbert.modeling import FeatureModel, Model
from korbert.modeling.feature_settings import chosen_layers
from korbert.tasks.finetuning.vectors import Keeping, KeptVectors, keep_vectors
from korbert.tasks.kinds.base import Kind, Prepared
from korbert.tasks.kinds.sections import TaskSection

Build = Callable[[int], Model]
"""Seed -> the model before training."""


def feature_builds(
    task: Kind, settings: TaskSection, start: Model, parts: Mapping[str, Prepared], folder: Path, device: torch.device
) -> dict[str, Build]:
    """Name of each encoder -> function that builds a head on it; the main encoder first. Vectors are kept in `folder`.

    An untrained encoder is initialized from the first seed, whatever the seed of the head.
    """
    assert settings.features is not None
    features, head = settings.features, task.head()
    places = chosen_layers(features.layers, start.config.num_hidden_layers).places
    train: Any = parts["train"].examples

    def build_on(name: str, encoder: nn.Module) -> Build:
        kept = kept_vectors(task, settings, encoder, parts, folder, device, places, f"vectors of {name}")
        spread = kept.spread(train, places)

        def build(seed: int) -> FeatureModel:
            generator = torch.Generator().manual_seed(seed)
            shape = features.layers, features.head, features.width
            model = FeatureModel(start.config, head.num_outputs, head.pooling, *shape, generator, kept)
            model.standardize(*spread)
            nn.init.constant_(model.classifier.bias, head.bias)
            return model

        return build

    builds: dict[str, Build] = {}
    if settings.init != "scratch":
        builds["pretrained"] = build_on("pretrained", start.encoder)
    if settings.init == "scratch" or settings.scratch:
        new = task.model(start.config, torch.Generator().manual_seed(settings.seeds[0]))
        builds["scratch"] = build_on("scratch", new.encoder)
    return builds


def kept_vectors(
    task: Kind,
    settings: TaskSection,
    encoder: nn.Module,
    parts: Mapping[str, Prepared],
    folder: Path,
    device: torch.device,
    layers: Sequence[int],
    description: str = "vectors",
) -> KeptVectors:
    """The vectors of these layers for all rows: per piece if the head reads pieces, else pooled."""
    assert settings.features is not None
    pooling = None if settings.features.head == "bilstm" else task.head().pooling
    keeping = Keeping(folder, layers, pooling, device, numbers=settings.features.keep)
    examples: list[Any] = [part.examples for part in parts.values()]
    return keep_vectors(encoder.to(device), examples, keeping, description)
