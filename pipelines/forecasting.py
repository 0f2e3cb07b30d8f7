"""Forecasts from a trial: how long a run takes, and how many steps fit into a given time."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from korbert.errors import SettingsError

__all__ = ["Costs", "Forecast", "forecast", "steps_within"]


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds of each operation of a run, and how often it happens.

    step: of each phase. evaluate_every, checkpoint_every: in steps. checkpoint_after: seconds after the last checkpoint
    at which one is written in any case. preparing: once, before the first step.
    """

    step: Sequence[float]
    evaluation: float
    evaluate_every: int
    checkpoint: float
    checkpoint_every: int
    checkpoint_after: float
    preparing: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """Seconds of a run by operation, and its numbers of evaluations and checkpoints."""

    training: float
    evaluations: int
    evaluating: float
    checkpoints: int
    checkpointing: float
    preparing: float

    @property
    def seconds(self) -> float:
        """The whole run."""
        return self.training + self.evaluating + self.checkpointing + self.preparing


def forecast(steps: Sequence[int], costs: Costs) -> Forecast:
    """Forecasts a run with these numbers of steps per phase."""
    total = sum(steps)
    evaluations = math.ceil(total / costs.evaluate_every)
    checkpoints = math.ceil(total / costs.checkpoint_every)
    for number, seconds in zip(steps, costs.step, strict=True):
        late = math.ceil(costs.checkpoint_after / seconds)  # steps after which a checkpoint is due by time
        checkpoints += number * ((costs.checkpoint_every - 1) // late) // costs.checkpoint_every
    return Forecast(
        training=sum(number * seconds for number, seconds in zip(steps, costs.step, strict=True)),
        evaluations=evaluations,
        evaluating=evaluations * costs.evaluation,
        checkpoints=checkpoints,
        checkpointing=checkpoints * costs.checkpoint,
        preparing=costs.preparing,
    )


def steps_within(seconds: float, steps: Sequence[int], costs: Costs) -> tuple[int, ...]:
    """The most steps that a run of at most `seconds` can take: all phases scaled alike, at least one step each.

    Raises SettingsError if one step of each phase does not fit.
    """

    def scaled(share: float) -> tuple[int, ...]:
        return tuple(max(1, int(number * share)) for number in steps)

    least = forecast(scaled(0), costs).seconds
    if least > seconds:
        raise SettingsError(
            f"--hours {seconds / 3600:g}: one step of each phase, an evaluation and a checkpoint take "
            f"{least / 3600:.2g} hours: give more, or lower pretrain.heldout_rows"
        )
    low, high = 0.0, 1.0
    while forecast(scaled(high), costs).seconds <= seconds:
        low, high = high, 2 * high
    while scaled(low) != scaled(high) and high - low > 1e-9 * high:  # fits at low, does not at high
        middle = (low + high) / 2
        low, high = (middle, high) if forecast(scaled(middle), costs).seconds <= seconds else (low, middle)
    return scaled(low)
