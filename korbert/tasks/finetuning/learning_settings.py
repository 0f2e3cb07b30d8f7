"""Fine-tuning settings shared by all tasks. Imports no torch."""

from collections.abc import Iterator
from itertools import product
from typing import Annotated, NamedTuple, Self

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from korbert.messages import Message
from korbert.system import JsonObject
from korbert.training import PrecisionName


class Way(NamedTuple):
    """One combination of hyperparameters to try."""

    learning_rate: float
    batch_size: int
    epochs: int


def training_name(facts: JsonObject) -> str:
    """The name of a training, used for its folder and its curve in metrics/, from the facts of its result."""
    words = zip(Way._fields, ("rate", "batch", "epochs"), strict=True)
    chosen = [f"{word}-{facts[key]:g}" for key, word in words if key in facts]
    return "-".join([facts["name"], *chosen, f"seed-{facts['seed']}"])


def _several(value: object) -> object:
    """Wraps a single value in a tuple."""
    return value if isinstance(value, list | tuple) else (value,)


Rates = Annotated[
    tuple[Annotated[float, Field(gt=0)], ...],
    BeforeValidator(_several),
    Field(min_length=1, description="peak learning rates to try, one or a list; selected on validation"),
]
"""Learning rates; a single one is accepted as a list of one."""
Numbers = Annotated[tuple[Annotated[int, Field(ge=1)], ...], BeforeValidator(_several)]
"""Whole numbers above 0; a single one is accepted as a list of one."""


class LearningSettings(BaseModel, frozen=True, extra="forbid"):
    """Hyperparameters of fine-tuning. If keys have several values, every combination is trained."""

    learning_rates: Rates = (2e-4,)
    batch_size: Numbers = Field((32,), min_length=1, description="examples per step, one number or a list to try")
    epochs: Numbers = Field((3,), min_length=1, description="training epochs, one number or a list; the best is kept")
    seeds: tuple[Annotated[int, Field(ge=0)], ...] = Field(
        (0,), min_length=1, description="random seeds; the first selects rate and epoch"
    )
    weight_decay: float = Field(0.01, ge=0, description="decoupled, times the learning rate; not of norms and biases")
    warmup_share: float = Field(0.06, ge=0, lt=1, description="share of steps used for learning rate warmup")
    layer_decay: float = Field(1.0, gt=0, le=1, description="learning rate of a layer relative to that of the next one")
    num_hidden_layers: int | None = Field(None, ge=1, description="first layers of the encoder to keep; none: all")
    frozen_layers: int = Field(
        0, ge=-1, description="lowest layers to freeze, with the embeddings; -1: the whole encoder"
    )
    frozen_embeddings: bool = Field(
        False, description="freeze the piece embeddings alone: the model packs small next to its base (korbert pack)"
    )
    piece_dropout: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="share of the pieces whose embeddings are zeroed in a step; 0.2 helps with few rows",
    )
    max_length: int = Field(128, ge=3, description="pieces per row, special tokens included; longer rows are truncated")
    precision: PrecisionName = Field("auto", description="training precision; auto: bf16 where it is faster, else fp32")
    threads: int = Field(2, ge=1, description="CPU threads for training; a different number gives different bytes")
    log_every: int = Field(10, ge=1, description="steps between lines of metrics.jsonl")
    checkpoint_every: int = Field(500, ge=1, description="steps between checkpoints")

    @model_validator(mode="after")
    def _choices_differ(self) -> Self:
        for name in ("learning_rates", "batch_size", "epochs", "seeds"):
            values = getattr(self, name)
            if len(set(values)) < len(values):
                raise ValueError(
                    Message("{name} {values} has duplicates: give each value once", name=name, values=str([*values]))
                )
        return self

    def ways(self) -> Iterator[Way]:
        """All combinations to try."""
        return (Way(*values) for values in product(self.learning_rates, self.batch_size, self.epochs))
