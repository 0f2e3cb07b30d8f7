import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korbert.tasks.token_classification.bio import LabelledSpan, bio_labels, is_bio, read_bio, write_bio

TAGS = st.lists(st.sampled_from(["O", "B-PS", "I-PS", "B-LC", "I-LC"]), max_size=12)


@pytest.mark.parametrize(
    ("tags", "spans", "legal"),
    [
        ("B-PS I-PS O B-LC", [(0, 2, "PS"), (3, 4, "LC")], "B-PS I-PS O B-LC"),
        # What conlleval and seqeval count as spans of sequences that BIO does not allow:
        ("I-PS I-PS O", [(0, 2, "PS")], "B-PS I-PS O"),
        ("B-PS I-LC I-LC", [(0, 1, "PS"), (1, 3, "LC")], "B-PS B-LC I-LC"),
    ],
)
def test_tags_and_their_spans(tags, spans, legal):
    assert read_bio(tags.split()) == [LabelledSpan(*span) for span in spans]
    assert write_bio(spans, len(tags.split())) == legal.split()


@given(TAGS)
def test_reading_any_tags_agrees_with_a_pattern(tags):
    """One character a tag: the spans are what a regular expression finds."""
    text = "".join({"O": ".", "B-PS": "P", "I-PS": "p", "B-LC": "L", "I-LC": "l"}[tag] for tag in tags)
    runs = re.finditer("[Pp]p*|[Ll]l*", text)
    found = [(*run.span(), {"p": "PS", "l": "LC"}[run[0][0].lower()]) for run in runs]
    assert read_bio(tags) == [LabelledSpan(*span) for span in found]
    assert read_bio(write_bio(found, len(tags))) == read_bio(tags)


@pytest.mark.parametrize(
    ("spans", "said"),
    [
        ([(0, 2, "PS"), (1, 3, "LC")], r"span \[1, 3\) LC overlaps \[0, 2\) PS"),
        ([(2, 2, "PS")], r"span \[2, 2\) 'PS': not a labelled stretch of \[0, 4\)"),
        ([(3, 5, "PS")], "not a labelled stretch"),
        ([(-1, 2, "PS")], "not a labelled stretch"),
        ([(0, 1, "")], "not a labelled stretch"),
    ],
)
def test_spans_that_no_text_can_have(spans, said):
    with pytest.raises(ValueError, match=said):
        write_bio(spans, 4)


@pytest.mark.parametrize("tag", ["NOUN", "B-", "X-PS", "", "b-PS"])
def test_what_is_no_tag_is_named(tag):
    assert not is_bio(["O", tag])
    with pytest.raises(ValueError, match=f"tag {tag!r}: none of O, B-LABEL and I-LABEL"):
        read_bio(["O", tag])


def test_labels_in_order():
    assert bio_labels(["PS", "LC", "PS"]) == ["O", "B-LC", "I-LC", "B-PS", "I-PS"]
    assert is_bio(bio_labels(["A-B", "O"]))
    assert read_bio(["B-A-B", "I-A-B"]) == [(0, 2, "A-B")]
