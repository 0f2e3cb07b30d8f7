"""Numbers as people read them."""

import math

import pytest

from pipelines.reports import amounts


@pytest.mark.parametrize(
    ("function", "number", "text"),
    [
        (amounts.count, 1234567, "1,234,567"),
        (amounts.compact, 9999, "9,999"),
        (amounts.compact, 12_345, "12.3 k"),
        (amounts.compact, 12_345_678, "12.3 M"),
        (amounts.compact, 4.5e9, "4.5 G"),
        (amounts.compact, 0.98312, "0.983"),
        (amounts.compact, 0, "0"),
        (amounts.percent, 0.93416, "93.4 %"),
        (amounts.megabytes, 999, "999 B"),
        (amounts.megabytes, 734_003_200, "734.0 MB"),
        (amounts.megabytes, 2.5e12, "2,500.0 GB"),
        (amounts.duration, 4.21, "4.2 s"),
        (amounts.duration, 59.7, "1 min 0 s"),
        (amounts.duration, 75, "1 min 15 s"),
        (amounts.duration, 3725, "1 h 2 min"),
        (amounts.value, True, "yes"),
        (amounts.value, None, "none"),
        (amounts.value, 2_097_152, "2,097,152"),
        (amounts.value, 0.0002, "0.0002"),
        (amounts.value, "글", "글"),
    ],
)
def test_numbers(function, number, text):
    assert function(number).replace("\u00a0", " ") == text


def test_a_ratio_of_nothing_is_zero():
    assert amounts.ratio(1, 4) == 0.25
    assert amounts.ratio(0, 0) == 0


@pytest.mark.parametrize(
    ("gain", "text"),
    [
        (1.014, "1.01 nats better than the unigram baseline"),
        (-0.12, "0.12 nats worse than the unigram baseline"),
        (0.004, "no better than the unigram baseline"),
        (-0.004, "no better than the unigram baseline"),
        (math.nan, "not comparable with the unigram baseline"),
    ],
)
def test_a_gain_has_a_direction_in_words(gain, text):
    assert amounts.than_unigram(gain) == text
