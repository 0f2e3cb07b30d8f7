"""Settings of the optimizer and its learning rate schedule."""

from typing import Literal, Self

from pydantic import BaseModel, Field, model_validator

PrecisionName = Literal["auto", "fp32", "bf16"]  # of training
InferencePrecision = Literal["auto", "fp32", "bf16", "int8"]
OptimizerKind = Literal["adamw", "muon"]
ScheduleKind = Literal["linear", "cosine", "wsd"]


class ParameterGroup(BaseModel, frozen=True, extra="forbid"):
    """Parameters with their own optimizer or learning rate."""

    pattern: str = Field(
        description='parameter names as in model.safetensors; * matches any text: "encoder.embeddings.token.*"'
    )
    rate_factor: float = Field(1.0, ge=0, description="learning rate of the group as a multiple of learning_rate")
    weight_decay: float | None = Field(None, ge=0, description="weight decay of the group; none: the optimizer's")
    kind: OptimizerKind | None = Field(None, description="optimizer of the group; none: the kind of the others")


class OptimizerSettings(BaseModel, frozen=True, extra="forbid"):
    """The optimizer and its learning rate schedule."""

    kind: OptimizerKind = Field("adamw", description="adamw; muon: Muon for the layers' matrices, AdamW for the rest")
    learning_rate: float = Field(1e-3, gt=0, description="peak learning rate, reached at the end of warmup")
    weight_decay: float = Field(0.01, ge=0, description="decoupled, times the learning rate; not of norms and biases")
    beta1: float = Field(0.9, ge=0, lt=1, description="decay rate of the gradient's first moment")
    beta2: float = Field(0.98, ge=0, lt=1, description="that of its second moment (Liu et al. 2019, 3.1)")
    epsilon: float = Field(1e-6, gt=0, description="added to the square root of the second moment")
    momentum: float = Field(0.95, ge=0, lt=1, description="muon only: decay rate of the gradient average")
    max_grad_norm: float = Field(1.0, gt=0, description="gradient clipping: maximum L2 norm over all parameters")
    warmup_share: float = Field(0.06, ge=0, lt=1, description="share of steps used for learning rate warmup")
    schedule: ScheduleKind = Field(
        "linear",
        description="after warmup: linear or cosine decay to zero; wsd: the peak rate, then decay over decay_share",
    )
    decay_share: float = Field(0.2, gt=0, le=1, description="wsd only: share of steps, at the end, of the decay")
    decay_shape: Literal["linear", "1-sqrt"] = Field("1-sqrt", description="wsd only: shape of the decay, from 1 to 0")
    groups: tuple[ParameterGroup, ...] = Field((), description="groups with own settings; the first match holds")

    @model_validator(mode="after")
    def _shares_fit(self) -> Self:
        if self.schedule == "wsd" and self.warmup_share + self.decay_share > 1:
            shares = f"warmup_share {self.warmup_share} + decay_share {self.decay_share}"
            raise ValueError(f"{shares} > 1: lower one of them")
        return self
