import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from korbert.training.plan import OptimizerSettings


def rates(steps, **changes):
    chosen = OptimizerSettings(**changes)
    return [chosen.rate_share(step, steps) for step in range(steps)]


def test_rates_by_hand():
    assert rates(6, warmup_share=0.3) == [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]
    assert rates(4, warmup_share=0.0) == [1.0, 0.75, 0.5, 0.25]
    wsd = {"warmup_share": 0.2, "schedule": "wsd", "decay_share": 0.4}
    after = [1 - math.sqrt(decayed) for decayed in (0.25, 0.5, 0.75)]
    assert rates(10, **wsd) == pytest.approx([0.5, 1, 1, 1, 1, 1, 1, *after])


WSD = {"warmup_share": st.floats(0, 0.5), "decay_share": st.floats(0.001, 0.5)}
SCHEDULES = st.one_of(
    st.fixed_dictionaries({"warmup_share": st.floats(0, 0.99)}),
    st.fixed_dictionaries(WSD | {"schedule": st.just("wsd")}),
)


@settings(deadline=None)
@given(steps=st.integers(1, 500), chosen=SCHEDULES)
def test_rates_rise_then_fall_and_stay_above_0(steps, chosen):
    shares = rates(steps, **chosen)
    warmup = math.ceil(chosen["warmup_share"] * steps)
    assert all(0 < rate <= 1 for rate in shares)
    assert shares[:warmup] == pytest.approx([(step + 1) / warmup for step in range(warmup)])
    assert shares[max(warmup - 1, 0)] == 1.0
    assert shares[warmup:] == sorted(shares[warmup:], reverse=True)


def test_the_last_of_many_steps_has_a_rate_above_0():
    """Where 1 - sqrt would be rounded away."""
    steps = 10**9
    last = OptimizerSettings(schedule="wsd", decay_share=0.5).rate_share(steps - 1, steps)
    assert last == pytest.approx(1 / steps, rel=1e-8, abs=0)


def test_warmup_and_decay_fit_into_the_run():
    with pytest.raises(ValidationError, match=r"warmup_share 0\.5 \+ decay_share 0\.6 > 1: lower one of them"):
        OptimizerSettings(schedule="wsd", warmup_share=0.5, decay_share=0.6)
    OptimizerSettings(schedule="linear", warmup_share=0.5, decay_share=0.6)
