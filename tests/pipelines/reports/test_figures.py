"""Keys of records, and numbers, as people read them."""

import math

import pytest

from korbert.pipelines.reports import figures
from korbert.pipelines.reports.formatting import compact, duration, megabytes, value
from tests.pipelines.reports.conftest import plain


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("train_windows_without_answer", "training windows without an answer"), ("kept.my_wiki", "kept, my_wiki"),
        ("masked.resident_number", "masked, resident number"), ("never_heard_of", "never heard of"),
        ("evaluation.nsmc_test.looked_for", "evaluation, nsmc_test, texts searched for"),
        ("rtd_accuracy", "replaced token detection accuracy"),
    ],
)  # fmt: skip
def test_label_of_a_key(key, words):
    assert figures.label(key) == words


@pytest.mark.parametrize(
    ("key", "number", "more_places", "text"),
    [
        ("accuracy", 0.51236, 0, "51.2 %"), ("accuracy", 0.51236, 1, "51.24 %"), ("byte_share", 0.0056, 0, "0.56 %"),
        ("pearson", 0.51236, 0, "0.512"), ("mlm_loss", 2.4887, 0, "2.49"), ("pieces_per_eojeol", 2.4187, 1, "2.419"),
        ("accuracy", None, 0, "–"), ("mlm_loss", math.nan, 0, "–"),
    ],
)  # fmt: skip
def test_text_of_a_value(key, number, more_places, text):
    assert plain(figures.text(key, number, more_places)) == text


def test_interval_names_the_unit_once():
    assert plain(figures.interval("accuracy", (0.4615, 0.551))) == "46.2 to 55.1 %"
    assert figures.interval("pearson", (-0.1, 0.551)) == "-0.100 to 0.551"


@pytest.mark.parametrize(
    ("function", "number", "text"),
    [
        (compact, 12_345, "12.3 k"), (compact, 999_600, "1 M"), (compact, 999_400, "999 k"),
        (compact, 0.98312, "0.983"), (compact, 0, "0"), (megabytes, 734_003_200, "734.0 MB"),
        (megabytes, 2.5e12, "2,500.0 GB"), (duration, 4.21, "4.2 s"), (duration, 59.7, "1 min 0 s"),
        (duration, 3725, "1 h 2 min"), (value, True, "yes"), (value, None, "none"), (value, 2_097_152, "2,097,152"),
    ],
)  # fmt: skip
def test_numbers_as_text(function, number, text):
    assert plain(function(number)) == text
