"""What takes the place of a function that PyTorch may take away."""

import torch

from korbert.modeling.kernels import int8_products


def test_products_without_the_kernel_are_about_the_same(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(1, 64, generator=generator).bfloat16()
    codes = torch.randint(-127, 128, (50, 64), generator=generator, dtype=torch.int8)
    scales = torch.rand(50, generator=generator).bfloat16()
    products = int8_products(vectors, codes, scales)
    monkeypatch.delattr(torch, "_weight_int8pack_mm")
    others = int8_products(vectors, codes, scales)
    assert others.shape == (1, 50)
    assert others.dtype == products.dtype
    torch.testing.assert_close(others, products, rtol=2**-7, atol=1e-2)
