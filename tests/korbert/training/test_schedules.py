import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from korbert.training.schedules import warmup_then_decay


def test_rates_by_hand():
    assert [warmup_then_decay(step, 6, 0.3) for step in range(6)] == [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]


def test_without_warmup_the_first_rate_is_the_highest():
    assert [warmup_then_decay(step, 4, 0.0) for step in range(4)] == [1.0, 0.75, 0.5, 0.25]


@settings(deadline=None)
@given(steps=st.integers(1, 500), share=st.floats(0, 0.99))
def test_it_rises_then_falls_and_is_never_zero(steps, share):
    rates = [warmup_then_decay(step, steps, share) for step in range(steps)]
    top = rates.index(max(rates))
    assert max(rates) == pytest.approx(1.0)
    assert min(rates) > 0
    assert rates[: top + 1] == sorted(rates[: top + 1])
    assert rates[top:] == sorted(rates[top:], reverse=True)
