"""How the learning rate moves."""

import math

__all__ = ["warmup_then_decay"]


def warmup_then_decay(step: int, steps: int, warmup_share: float) -> float:
    """The rate of update `step` (0-based, of `steps`) as a share of the highest one, in (0, 1].

    It rises in equal steps over the first ceil(warmup_share x steps) updates and falls in equal steps after them, so
    that update `steps` would have rate 0 (Devlin et al. 2019, A.2). No update is wasted on a rate of zero.
    """
    warmup = math.ceil(warmup_share * steps)
    if step < warmup:
        return (step + 1) / warmup
    return (steps - step) / (steps - warmup)
