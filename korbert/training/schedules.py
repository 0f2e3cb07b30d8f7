"""Learning rate schedules: each a pure function of the step."""

import math
from collections.abc import Callable, Mapping

from korbert.training.settings import OptimizerSettings

_DECAYS: Mapping[str, Callable[[float], float]] = {
    "linear": lambda left: left,
    "cosine": lambda left: math.sin(math.pi / 2 * left) ** 2,  # (1 + cos(pi (1 - left))) / 2, exact for small `left`
    "1-sqrt": lambda left: left / (1 + math.sqrt(1 - left)),  # 1 - sqrt(1 - left), exact for small `left`
}
"""Share of the decay that is still to come, (0, 1] -> rate as a share of the peak, (0, 1]."""


def rate_share(step: int, steps: int, settings: OptimizerSettings) -> float:
    """The rate of update `step` (0-based, of `steps`) as a share of the peak, in (0, 1].

    The rate rises linearly over the first ceil(warmup_share x steps) updates. Then it falls, so that update `steps`
    would have rate 0; no update has rate 0.

    linear: Devlin et al. 2019, A.2. cosine: half a period, Loshchilov and Hutter 2017 (SGDR), 3, without restarts.
    wsd: stays at the peak and falls over the last ceil(decay_share x steps) updates (warmup, stable, decay: Hu et al.
    2024, MiniCPM, 4); the decay of 1 - sqrt over 20 % of the steps is that of Hagele et al. 2024, 3.
    """
    warmup = math.ceil(settings.warmup_share * steps)
    if step < warmup:
        return (step + 1) / warmup
    decay, shape = steps - warmup, str(settings.schedule)
    if settings.schedule == "wsd":
        decay, shape = min(decay, math.ceil(settings.decay_share * steps)), settings.decay_shape
    return _DECAYS[shape](min(1.0, (steps - step) / decay))
