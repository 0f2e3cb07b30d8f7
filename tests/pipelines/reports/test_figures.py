"""Labels of keys, formatted numbers, sampled parts of an artifact, and training times."""

import math

import numpy as np
import pytest

from korbert.pipelines.artifacts import Artifact, figures, sample_parts
from korbert.pipelines.artifacts.formatting import compact, duration, megabytes, value
from korbert.pipelines.experiments.compare_pretraining import TrainingLog, time_axis
from korbert.pipelines.reports import index
from korbert.pipelines.stages.table import STAGES
from tests.pipelines.reports.conftest import plain


@pytest.mark.parametrize(("key", "words"), [
    ("train_windows_without_answer", "training windows without an answer"), ("kept.my_wiki", "kept, my_wiki"),
    ("masked.resident_number", "masked, resident number"), ("never_heard_of", "never heard of"),
    ("evaluation.nsmc_test.looked_for", "evaluation, nsmc_test, texts searched for"),
    ("rtd_accuracy", "replaced token detection accuracy"),
])  # fmt: skip
def test_label_of_a_key(key, words):
    assert figures.label(key) == words


@pytest.mark.parametrize(("key", "number", "more_places", "text"), [
    ("accuracy", 0.51236, 0, "51.2 %"), ("accuracy", 0.51236, 1, "51.24 %"), ("byte_share", 0.0056, 0, "0.56 %"),
    ("pearson", 0.51236, 0, "0.512"), ("mlm_loss", 2.4887, 0, "2.49"), ("pieces_per_eojeol", 2.4187, 1, "2.419"),
    ("accuracy", None, 0, "–"), ("mlm_loss", math.nan, 0, "–"),
])  # fmt: skip
def test_text_of_a_value(key, number, more_places, text):
    assert plain(figures.text(key, number, more_places)) == text


@pytest.mark.parametrize(("function", "number", "text"), [
    (compact, 12_345, "12.3 k"), (compact, 999_600, "1 M"), (compact, 999_400, "999 k"),
    (compact, 0.98312, "0.983"), (compact, 0, "0"), (megabytes, 734_003_200, "734.0 MB"),
    (megabytes, 2.5e12, "2,500.0 GB"), (duration, 4.21, "4.2 s"), (duration, 59.7, "1 min 0 s"),
    (duration, 3725, "1 h 2 min"), (value, True, "yes"), (value, None, "none"), (value, 2_097_152, "2,097,152"),
])  # fmt: skip
def test_numbers_as_text(function, number, text):
    assert plain(function(number)) == text


def test_seconds_add_up_over_sessions():
    timing = [{"kind": "start", "step": 0}, {"kind": "train", "step": 10, "seconds": 2.0}]
    timing += [{"kind": "start", "step": 10}, {"kind": "train", "step": 20, "seconds": 6.0}]
    timing = [line | {"pieces_per_second": 100.0, "waited_seconds": 0.0} for line in timing]
    log = TrainingLog.of([{"kind": "heldout", "step": step, "pieces": 7 * step} for step in (10, 15, 20)], timing)
    np.testing.assert_allclose(log.seconds(log.heldout), [2.0, 5.0, 8.0])


@pytest.mark.parametrize(
    ("longest", "axis"), [(90, (1.0, "seconds")), (120, (60.0, "minutes")), (7200, (3600.0, "hours"))]
)
def test_unit_of_a_time_axis(longest, axis):
    assert time_axis(longest) == axis


@pytest.mark.parametrize(
    ("number", "indices"),
    [(0, []), (3, [0, 1, 2]), (8, list(range(8))), (9, [0, 1, 2, 3, 5, 6, 7, 8]), (7001, list(range(0, 7001, 1000)))],
)
def test_parts_are_sampled_evenly(number, indices):
    parts, note = sample_parts(list(range(number)))
    assert parts == indices
    assert note == (f"Measured on 8 of {number:,} parts, evenly spaced." if number > 8 else "")


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("4.5", 4.5), ("3", 3.0), ("NaN", None), ("Infinity", None), ("1" + "0" * 400, None), ('"x"', None), ("-1", None)],
)
def test_implausible_run_time_is_none(maker, written, seconds):
    folder = maker("korquad")
    (folder / "run.json").write_text(f'{{"seconds": {written}}}')
    assert Artifact.open(folder).seconds == seconds
    index(maker.recipe, STAGES)
