"""Private functions of PyTorch that korbert uses, each with a fallback for versions without it."""

from typing import Any

import torch
from torch import Tensor

CPU_ATTENTION: Any = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu", None)
"""PyTorch's CPU attention operator, which its FLOP counter does not know; None if this version has none."""


def int8_products(vectors: Tensor, codes: Tensor, scales: Tensor) -> Tensor:
    """The products of vectors (B, D) and codes (N, D) int8, times the scales (N,) of the codes: (B, N).

    Vectors, scales and products are bfloat16. Without PyTorch's kernel, all codes are converted for each call.
    """
    kernel = getattr(torch, "_weight_int8pack_mm", None)
    if kernel is None:
        return (vectors @ codes.to(vectors.dtype).T) * scales
    return kernel(vectors, codes, scales)
