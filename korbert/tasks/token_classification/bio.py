"""BIO tags: converts spans to one tag per unit (character, piece, word), and back.

B-X begins a span with label X, I-X continues it, O is outside (Ramshaw and Marcus 1995; B- at every beginning as in
CoNLL 2003's later form, IOB2).
"""

from collections.abc import Iterable, Sequence

from korbert.messages import Message
from korbert.tasks.files import LabelledSpan

OUTSIDE = "O"


def bio_labels(labels: Iterable[str]) -> list[str]:
    """The tags for spans with these labels: O, then B-X and I-X for each, in alphabetical order."""
    return [OUTSIDE, *(f"{prefix}-{label}" for label in sorted(set(labels)) for prefix in "BI")]


def is_bio(tags: Iterable[str]) -> bool:
    """Whether all tags are O, B-X or I-X; otherwise they label single units, such as parts of speech."""
    return all(tag == OUTSIDE or (tag[:2] in ("B-", "I-") and len(tag) > 2) for tag in tags)


def split_tag(tag: str) -> tuple[str, str]:
    """("B", "X") for "B-X", ("O", "") for "O". ValueError for any other tag."""
    if not is_bio([tag]):
        raise ValueError(Message("tag {tag!r} is not O, B-LABEL or I-LABEL", tag=tag))
    return (OUTSIDE, "") if tag == OUTSIDE else (tag[0], tag[2:])


def write_bio(spans: Iterable[tuple[int, int, str]], length: int) -> list[str]:
    """`length` tags: B-X on the first unit of each span, I-X on its others, O elsewhere.

    ValueError for a span that is empty, out of range, or overlaps another one.
    """
    tags = [OUTSIDE] * length
    last = LabelledSpan(0, 0, "")
    for start, end, label in sorted(spans):
        if not (0 <= start < end <= length and label):
            raise ValueError(
                Message(
                    "span [{start}, {end}) {label!r}: not a labelled part of [0, {length})",
                    start=start, end=end, label=label, length=length,
                )
            )  # fmt: skip
        if start < last.end:
            raise ValueError(
                Message(
                    "span [{start}, {end}) {label} overlaps [{other_start}, {other_end}) {other_label}",
                    start=start, end=end, label=label,
                    other_start=last.start, other_end=last.end, other_label=last.label,
                )
            )  # fmt: skip
        tags[start:end] = [f"B-{label}", *[f"I-{label}"] * (end - start - 1)]
        last = LabelledSpan(start, end, label)
    return tags


def read_bio(tags: Sequence[str]) -> list[LabelledSpan]:
    """The spans of tags, in order. ValueError for a tag that is not O, B-X or I-X.

    Any sequence is accepted: I-X that follows neither B-X nor I-X begins a span, as in conlleval, the official scorer
    of CoNLL 2000, and seqeval's default mode.
    """
    spans: list[LabelledSpan] = []
    open_label = ""
    start = 0
    for unit, tag in enumerate([*tags, OUTSIDE]):
        prefix, label = split_tag(tag)
        if open_label and (prefix != "I" or label != open_label):
            spans.append(LabelledSpan(start, unit, open_label))
            open_label = ""
        if label and not open_label:
            open_label = label
            start = unit
    return spans
