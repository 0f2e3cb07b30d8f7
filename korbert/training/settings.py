"""Settings of the optimizer."""

from typing import Literal

from pydantic import BaseModel, Field

__all__ = ["OptimizerSettings", "PrecisionName"]

PrecisionName = Literal["auto", "fp32", "bf16"]


class OptimizerSettings(BaseModel, frozen=True, extra="forbid"):
    """AdamW (Loshchilov and Hutter 2019) with linear warmup and linear decay to zero."""

    learning_rate: float = Field(1e-3, gt=0, description="highest rate, reached when the warmup ends")
    weight_decay: float = Field(
        0.01, ge=0, description="decay of matrices, a fraction of the rate; norms and biases have none"
    )
    beta1: float = Field(0.9, ge=0, lt=1, description="memory of the gradient's mean")
    beta2: float = Field(0.98, ge=0, lt=1, description="memory of the gradient's square (Liu et al. 2019, 3.1)")
    epsilon: float = Field(1e-6, gt=0, description="added to the root of the square")
    max_grad_norm: float = Field(
        1.0, gt=0, description="gradients longer than this are scaled down to it (L2, all parameters)"
    )
    warmup_share: float = Field(0.06, ge=0, lt=1, description="share of all steps during which the rate rises")
