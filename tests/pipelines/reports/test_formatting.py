"""Numbers as people read them."""

import pytest

from pipelines.reports import formatting


@pytest.mark.parametrize(
    ("function", "number", "text"),
    [
        (formatting.count, 1234567, "1,234,567"),
        (formatting.compact, 9999, "9,999"),
        (formatting.compact, 12_345, "12.3 k"),
        (formatting.compact, 999_600, "1 M"),
        (formatting.compact, 999_400, "999 k"),
        (formatting.compact, 12_345_678, "12.3 M"),
        (formatting.compact, 4.5e9, "4.5 G"),
        (formatting.compact, 0.98312, "0.983"),
        (formatting.compact, 0, "0"),
        (formatting.percent, 0.93416, "93.4 %"),
        (formatting.megabytes, 999, "999 B"),
        (formatting.megabytes, 734_003_200, "734.0 MB"),
        (formatting.megabytes, 2.5e12, "2,500.0 GB"),
        (formatting.duration, 4.21, "4.2 s"),
        (formatting.duration, 59.7, "1 min 0 s"),
        (formatting.duration, 75, "1 min 15 s"),
        (formatting.duration, 3725, "1 h 2 min"),
        (formatting.value, True, "yes"),
        (formatting.value, None, "none"),
        (formatting.value, 2_097_152, "2,097,152"),
        (formatting.value, 0.0002, "0.0002"),
        (formatting.value, "글", "글"),
    ],
)
def test_numbers(function, number, text):
    assert function(number).replace("\u00a0", " ") == text


def test_a_ratio_of_nothing_is_zero():
    assert formatting.ratio(1, 4) == 0.25
    assert formatting.ratio(0, 0) == 0


@pytest.mark.parametrize(
    ("loss", "text"),
    [
        (5.986, "1.01 nats better than the unigram baseline"),
        (7.12, "0.12 nats worse than the unigram baseline"),
        (6.996, "no better than the unigram baseline"),
        (7.004, "no better than the unigram baseline"),
        (None, "not comparable with the unigram baseline"),
    ],
)
def test_a_gain_has_a_direction_in_words(loss, text):
    assert formatting.than_unigram(loss, 7.0) == text
