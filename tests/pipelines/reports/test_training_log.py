"""Learning curves by pieces and seconds."""

import numpy as np
import pytest

from korbert.pipelines.reports.training_log import TrainingLog, time_axis


def _timed(step, seconds, speed=100.0, waited=0.0):
    return {"kind": "train", "step": step, "seconds": seconds, "pieces_per_second": speed, "waited_seconds": waited}


def _line(step, kind="heldout"):
    return {"kind": kind, "step": step, "pieces": 7 * step}


def test_seconds_add_up_over_sessions():
    timing = [{"kind": "start", "step": 0}, _timed(10, 2.0), {"kind": "start", "step": 10}, _timed(20, 6.0)]
    log = TrainingLog.of([_line(10), _line(15), _line(20)], timing)
    np.testing.assert_allclose(log.seconds(log.heldout), [2.0, 5.0, 8.0])


@pytest.mark.parametrize(
    ("longest", "axis"), [(90, (1.0, "seconds")), (120, (60.0, "minutes")), (7200, (3600.0, "hours"))]
)
def test_unit_of_a_time_axis(longest, axis):
    assert time_axis(longest) == axis
