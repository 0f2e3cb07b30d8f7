"""Settings of the optimizer and its learning rate schedule."""

from typing import Literal, Self

from pydantic import BaseModel, Field, model_validator

PrecisionName = Literal["auto", "fp32", "bf16"]  # of training
InferencePrecision = Literal["auto", "fp32", "bf16", "int8"]
ScheduleKind = Literal["linear", "wsd"]


class OptimizerSettings(BaseModel, frozen=True, extra="forbid"):
    """AdamW and its learning rate schedule."""

    learning_rate: float = Field(1e-3, gt=0, description="peak learning rate, reached at the end of warmup")
    weight_decay: float = Field(0.01, ge=0, description="decoupled, times the learning rate; not of norms and biases")
    beta1: float = Field(0.9, ge=0, lt=1, description="decay rate of the gradient's first moment")
    beta2: float = Field(0.98, ge=0, lt=1, description="that of its second moment (Liu et al. 2019, 3.1)")
    epsilon: float = Field(1e-6, gt=0, description="added to the square root of the second moment")
    max_grad_norm: float = Field(1.0, gt=0, description="gradient clipping: maximum L2 norm over all parameters")
    warmup_share: float = Field(0.06, ge=0, lt=1, description="share of steps used for learning rate warmup")
    schedule: ScheduleKind = Field(
        "linear", description="after warmup: linear decay to zero; wsd: the peak rate, then decay over decay_share"
    )
    decay_share: float = Field(0.2, gt=0, le=1, description="wsd only: share of steps, at the end, of the decay")

    @model_validator(mode="after")
    def _shares_fit(self) -> Self:
        if self.schedule == "wsd" and self.warmup_share + self.decay_share > 1:
            shares = f"warmup_share {self.warmup_share} + decay_share {self.decay_share}"
            raise ValueError(f"{shares} > 1: lower one of them")
        return self
