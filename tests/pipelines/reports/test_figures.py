"""Keys of records in words."""

import pytest

from pipelines.reports.figures import label


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("train_windows_without_answer", "training windows without an answer"),
        ("dropped.too_little_hangul", "dropped, too little Hangul"),
        ("masked.resident_number", "masked, resident number"),
        ("kept.my_wiki", "kept, my_wiki"),
        ("kept.size", "kept, size"),  # a source of that name
        ("evaluation.nsmc_test.looked_for", "evaluation, nsmc_test, texts searched for"),
        ("cut.lines", "lines removed"),
        ("never_heard_of", "never heard of"),
    ],
)
def test_keys_become_words(key, words):
    assert label(key) == words
