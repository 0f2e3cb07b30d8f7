"""The functions of PyTorch that are used here and are not public, in one place, each with what takes its place."""

from typing import Any

import torch
from torch import Tensor

CPU_ATTENTION: Any = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu", None)
"""The operator of attention on a CPU, which PyTorch's counter of operations does not know; None if there is none."""


def int8_products(vectors: Tensor, codes: Tensor, scales: Tensor) -> Tensor:
    """The products of vectors (B, D) and codes (N, D) int8, times the scales (N,) of the codes: (B, N).

    Vectors, scales and products are bfloat16. Without PyTorch's kernel, all codes are converted for each call.
    """
    kernel = getattr(torch, "_weight_int8pack_mm", None)
    if kernel is None:
        return (vectors @ codes.to(vectors.dtype).T) * scales
    return kernel(vectors, codes, scales)
