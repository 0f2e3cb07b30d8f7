"""The learning rate of a step: a pure function of its number."""

import math

from korbert.training.settings import OptimizerSettings


def rate_share(step: int, steps: int, settings: OptimizerSettings) -> float:
    """The rate of update `step` (0-based, of `steps`) as a share of the peak, in (0, 1].

    The rate rises linearly over the first ceil(warmup_share x steps) updates. Then it falls, so that update `steps`
    would have rate 0; no update has rate 0.

    linear: Devlin et al. 2019, A.2. wsd: stays at the peak and falls over the last ceil(decay_share x steps) updates as
    1 - sqrt (warmup, stable, decay: Hu et al. 2024, MiniCPM, 4; that decay, over 20 % of the steps: Hagele et al. 2024,
    3).
    """
    warmup = math.ceil(settings.warmup_share * steps)
    if step < warmup:
        return (step + 1) / warmup
    if settings.schedule == "linear":
        return (steps - step) / (steps - warmup)
    left = min(1.0, (steps - step) / min(steps - warmup, math.ceil(settings.decay_share * steps)))
    return left / (1 + math.sqrt(1 - left))  # 1 - sqrt(1 - left), exact for small `left`
