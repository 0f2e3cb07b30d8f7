"""Artifacts are read in bounded pieces."""

import pytest

from korbert.pipelines.reports import index
from korbert.pipelines.reports.record import Artifact, sampled


@pytest.mark.parametrize(
    ("number", "indices"),
    [(0, []), (3, [0, 1, 2]), (8, list(range(8))), (9, [0, 1, 2, 3, 5, 6, 7, 8]), (7001, list(range(0, 7001, 1000)))],
)
def test_parts_are_sampled_evenly(number, indices):
    parts, note = sampled(list(range(number)))
    assert parts == indices
    assert note == (f"Measured on 8 of {number:,} parts, evenly spaced. " if number > 8 else "")


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("4.5", 4.5), ("3", 3.0), ("NaN", None), ("Infinity", None), ("1" + "0" * 400, None), ('"x"', None), ("-1", None)],
)
def test_implausible_run_time_is_none(maker, written, seconds):
    folder = maker("korquad")
    (folder / "run.json").write_text(f'{{"seconds": {written}}}')
    assert Artifact.open(folder).seconds == seconds
    index(maker.recipe)
