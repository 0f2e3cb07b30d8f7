"""Settings of the optimizer."""

from typing import Literal

from pydantic import BaseModel, Field

__all__ = ["OptimizerSettings", "PrecisionName"]

PrecisionName = Literal["auto", "fp32", "bf16"]


class OptimizerSettings(BaseModel, frozen=True, extra="forbid"):
    """AdamW (Loshchilov and Hutter 2019) with linear warmup and linear decay to zero."""

    learning_rate: float = Field(1e-3, gt=0, description="peak learning rate, reached at the end of warmup")
    weight_decay: float = Field(
        0.01, ge=0, description="AdamW weight decay, multiplied by the learning rate; none on norms and biases"
    )
    beta1: float = Field(0.9, ge=0, lt=1, description="decay rate of the gradient's first moment")
    beta2: float = Field(
        0.98, ge=0, lt=1, description="decay rate of the gradient's second moment (Liu et al. 2019, 3.1)"
    )
    epsilon: float = Field(1e-6, gt=0, description="added to the square root of the second moment")
    max_grad_norm: float = Field(1.0, gt=0, description="gradient clipping: maximum L2 norm over all parameters")
    warmup_share: float = Field(0.06, ge=0, lt=1, description="share of all steps that warm up the learning rate")
