"""Learning rate schedules."""

import math

__all__ = ["warmup_then_decay"]


def warmup_then_decay(step: int, steps: int, warmup_share: float) -> float:
    """Linear warmup, linear decay: the rate of update `step` (0-based, of `steps`) as a share of the peak, in (0, 1].

    The rate rises over the first ceil(warmup_share x steps) updates and then falls, so that update `steps` would have
    rate 0 (Devlin et al. 2019, A.2). No update has rate 0.
    """
    warmup = math.ceil(warmup_share * steps)
    if step < warmup:
        return (step + 1) / warmup
    return (steps - step) / (steps - warmup)
