import numpy as np
import pytest

from pipelines.reports.training_log import Course, time_axis


def timed(step, seconds, speed=100.0, **more):
    return {"kind": "train", "step": step, "seconds": seconds, "pieces_per_second": speed, **more}


def heldout(step, **more):
    return {"kind": "heldout", "step": step, **more}


def test_seconds_add_up_over_sittings():
    timing = [{"kind": "start", "step": 0}, timed(10, 2.0), {"kind": "start", "step": 10}, timed(20, 6.0)]
    course = Course.of([heldout(10), heldout(15), heldout(20)], timing)
    np.testing.assert_allclose(course.seconds(course.heldout), [2.0, 5.0, 8.0])


def test_pieces_are_those_counted_or_else_those_that_the_speed_tells():
    timing = [timed(10, 2.0, 100.0), timed(20, 4.0, 50.0)]
    counted = Course.of([heldout(10, pieces=7), heldout(20, pieces=9)], timing)
    np.testing.assert_allclose(counted.pieces(counted.heldout), [7, 9])
    old = Course.of([heldout(10), heldout(20)], timing)
    np.testing.assert_allclose(old.pieces(old.heldout), [200, 400])
    assert old.pieces_per_second == pytest.approx(400 / 6)


def test_what_was_not_measured_is_none():
    course = Course.of([heldout(10)], [{"kind": "start", "step": 0}])
    assert (course.seconds(course.heldout), course.pieces(course.heldout)) == (None, None)
    assert (course.waiting, course.pieces_per_second) == (None, None)


def test_waiting_is_a_share_of_the_time_in_which_it_was_measured():
    timing = [timed(10, 5.0), timed(20, 6.0, waited_seconds=3.0), timed(30, 4.0, waited_seconds=0.0)]
    assert Course.of([], timing).waiting == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("longest", "axis"), [(90, (1.0, "seconds")), (120, (60.0, "minutes")), (7200, (3600.0, "hours"))]
)
def test_the_unit_of_a_time_axis(longest, axis):
    assert time_axis(longest) == axis
