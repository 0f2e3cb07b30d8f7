import pytest

from korbert.tasks.files import LabelledSpan
from korbert.tasks.token_classification.bio import bio_labels, is_bio, read_bio, write_bio


def test_tags_and_their_spans():
    for tags, spans, legal in (
        ("B-PS I-PS O B-LC", [(0, 2, "PS"), (3, 4, "LC")], "B-PS I-PS O B-LC"),
        # What conlleval and seqeval count as spans of sequences that BIO does not allow:
        ("I-PS I-PS O", [(0, 2, "PS")], "B-PS I-PS O"),
        ("B-PS I-LC I-LC", [(0, 1, "PS"), (1, 3, "LC")], "B-PS B-LC I-LC"),
    ):
        assert read_bio(tags.split()) == [LabelledSpan(*span) for span in spans]
        assert write_bio(spans, len(tags.split())) == legal.split()


@pytest.mark.parametrize("span", [(2, 2, "PS"), (3, 5, "PS"), (-1, 2, "PS"), (0, 1, "")])
def test_spans_that_no_text_can_have(span):
    start, end, label = span
    with pytest.raises(ValueError, match=rf"span \[{start}, {end}\) '{label}': not a labelled part of \[0, 4\)"):
        write_bio([span], 4)


@pytest.mark.parametrize("tag", ["NOUN", "B-", "X-PS", "", "b-PS"])
def test_what_is_no_tag_is_named(tag):
    assert not is_bio(["O", tag])
    with pytest.raises(ValueError, match=f"tag {tag!r} is not O, B-LABEL or I-LABEL"):
        read_bio(["O", tag])


def test_labels_in_order():
    assert write_bio([], 0) == []
    assert bio_labels(["PS", "LC", "PS"]) == ["O", "B-LC", "I-LC", "B-PS", "I-PS"]
    assert is_bio(bio_labels(["A-B", "O"]))
    assert read_bio(["B-A-B", "I-A-B"]) == [(0, 2, "A-B")]
