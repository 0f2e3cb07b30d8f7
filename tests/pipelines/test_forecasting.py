"""The arithmetic of a forecast, with numbers that nobody had to measure."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korbert.errors import SettingsError
from pipelines.forecasting import Costs, forecast, steps_within

COSTS = Costs(
    step=(2.0, 5.0),
    evaluation=30.0,
    evaluate_every=100,
    checkpoint=4.0,
    checkpoint_every=50,
    checkpoint_after=300.0,
    preparing=10.0,
)


def test_a_run_is_its_steps_evaluations_and_checkpoints() -> None:
    found = forecast((100, 20), COSTS)
    assert found.training == 100 * 2 + 20 * 5
    assert (found.evaluations, found.evaluating) == (2, 60)  # after 100 steps, and after the last
    assert (found.checkpoints, found.checkpointing) == (3, 12)  # after 50, 100 and the last
    assert found.seconds == 300 + 60 + 12 + 10


@pytest.mark.parametrize(
    ("seconds_a_step", "checkpoints"),
    [(1.0, 4), (7.0, 8), (299.0, 100), (1e6, 200)],  # between those of 50 steps: none, one, each second, each
)
def test_slow_steps_are_saved_more_often(seconds_a_step: float, checkpoints: int) -> None:
    assert forecast((200,), dataclasses.replace(COSTS, step=(seconds_a_step,))).checkpoints == checkpoints


@pytest.mark.parametrize("hours", [0.05, 0.5, 1, 7.5, 1000])
def test_the_steps_that_fit_do_and_no_more_would(hours: float) -> None:
    steps = steps_within(3600 * hours, (1450, 400), COSTS)
    assert forecast(steps, COSTS).seconds <= 3600 * hours
    assert sum(number * seconds for number, seconds in zip(steps, COSTS.step, strict=True)) <= 3600 * hours
    assert forecast((steps[0] + 4, steps[1] + 2), COSTS).seconds > 3600 * hours
    assert steps[0] / steps[1] == pytest.approx(1450 / 400, rel=0.1 if hours < 1 else 0.01)


@given(st.floats(52, 1e6), st.lists(st.integers(1, 10**6), min_size=2, max_size=2))
def test_whatever_is_asked_the_run_fits(seconds: float, steps: list[int]) -> None:
    found = steps_within(seconds, steps, COSTS)
    assert forecast(found, COSTS).seconds <= seconds
    assert min(found) >= 1


def test_a_recipe_that_fits_is_scaled_up() -> None:
    exactly = forecast((145, 40), COSTS).seconds
    assert steps_within(exactly, (145, 40), COSTS) == (145, 40)
    assert steps_within(10 * exactly, (145, 40), COSTS) > (1300, 360)


def test_too_few_hours_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"--hours 0\.001: one step of each phase, .* take 0\.014 hours: give more"):
        steps_within(3.6, (100, 20), COSTS)
