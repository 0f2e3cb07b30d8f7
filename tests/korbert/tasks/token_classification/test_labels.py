from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korbert.tasks.files import LabelledSpan
from korbert.tasks.passages import encode_passages
from korbert.tasks.token_classification import labels as ours
from tests.korbert.tasks.answering import passage
from tests.korbert.tasks.token_classification.helpers import decoded, marked

FUSED = ("이걸 봤다", [(0, 2), (1, 2), (3, 4), (3, 4), (4, 5)])  # 이거 ᆯ 보 았 다
CONTRACTED = ("방문한다", [(0, 2), (2, 3), (2, 4)])  # 방문 하 ᆫ다
EMPTY = ("그는 의사 다", [(0, 1), (1, 2), (3, 5), (5, 5), (6, 7)])  # 그 는 의사 이 다
LONG = ("서울특별시에", [(0, 5), (5, 6)])
NAMES = ("김씨이씨", [(0, 2), (2, 4)])
WORDS = [(0, 1), (1, 2), (3, 5), (6, 7)]


@pytest.mark.parametrize(
    ("given", "spans", "tags", "back"),
    [
        # A character of two pieces labels the one that begins first; the other continues it.
        (FUSED, [(0, 2, "PS")], "B-PS I-PS O O O", [(0, 2, "PS")]),
        (FUSED, [(3, 5, "EV")], "O O B-EV I-EV I-EV", [(3, 5, "EV")]),
        (CONTRACTED, [(0, 3, "EV")], "B-EV I-EV O", [(0, 3, "EV")]),
        (CONTRACTED, [(3, 4, "EV")], "O O B-EV", [(3, 4, "EV")]),
        (EMPTY, [(3, 5, "JB")], "O O B-JB I-JB O", [(3, 5, "JB")]),
        # Neighbours stay two; a space between pieces of a span is in it.
        (EMPTY, [(0, 1, "PS"), (1, 5, "PS")], "B-PS B-PS I-PS I-PS O", [(0, 1, "PS"), (1, 5, "PS")]),
        # A boundary within a piece: the span grows to the piece.
        (LONG, [(0, 2, "LC")], "B-LC O", [(0, 5, "LC")]),
        (LONG, [(2, 6, "LC")], "B-LC I-LC", [(0, 6, "LC")]),
        # Of two spans in a piece the longer one has it, the earlier one of equals; a neighbour grows no further.
        (LONG, [(0, 2, "LC"), (2, 5, "OG")], "B-OG O", [(0, 5, "OG")]),
        (NAMES, [(0, 1, "PS"), (1, 2, "OG")], "B-PS O", [(0, 2, "PS")]),
        (NAMES, [(0, 3, "PS"), (3, 4, "OG")], "B-PS I-PS", [(0, 4, "PS")]),
        # White space has no piece.
        (EMPTY, [(2, 3, "PS")], "O O O O O", []),
        (EMPTY, [(1, 3, "PS")], "O B-PS O O O", [(1, 2, "PS")]),
    ],
)
def test_spans_to_pieces_and_back(given, spans, tags, back):
    text = passage(*given)
    assert ours.piece_tags(spans, text) == tags.split()
    assert decoded(tags.split(), text) == back


def test_tags_of_pieces_that_own_nothing_do_not_count():
    text = passage(*FUSED)
    for tag in ("O", "B-LC", "I-LC", "I-PS"):
        assert decoded(["B-PS", tag, "I-PS", tag, "O"], text) == [(0, 4, "PS")]
    with pytest.raises(ValueError, match=r"span \[1, 3\) LC overlaps \[0, 2\) PS"):
        ours.piece_tags([(0, 2, "PS"), (1, 3, "LC")], text)


@st.composite
def cases(draw):
    """A text, any pieces, and spans that do not overlap."""
    length = draw(st.integers(1, 16))
    text = "".join(draw(st.lists(st.sampled_from("가나 "), min_size=length, max_size=length)))
    ends = st.tuples(st.integers(0, length), st.integers(0, length)).map(lambda pair: (min(pair), max(pair)))
    pieces = draw(st.lists(ends, max_size=12))
    if draw(st.booleans()):
        pieces.sort()
    cuts = sorted(draw(st.sets(st.integers(0, length), max_size=8)))
    chosen = [span for span in pairwise(cuts) if draw(st.booleans())]
    return text, pieces, [LabelledSpan(*span, draw(st.sampled_from(["PS", "LC"]))) for span in chosen]


def by_hand(pieces, length):
    """The owner of each character, -1 without."""
    covering = [[(low, place) for place, (low, high) in enumerate(pieces) if low <= at < high] for at in range(length)]
    return [min(those)[1] if those else -1 for those in covering]


@given(cases())
def test_laws_of_spans(case):
    text, pieces, spans = case
    encoded = passage(text, pieces)
    owner = by_hand(pieces, len(text))
    places, spans_of_pieces = ours.owners(encoded.spans)
    runs = dict(zip(places.tolist(), spans_of_pieces.tolist(), strict=True))
    for place in range(len(pieces)):
        held = [at for at in range(len(text)) if owner[at] == place]
        assert list(range(*runs.get(place, (0, 0)))) == held

    tags = ours.piece_tags(spans, encoded)
    back = decoded(tags, encoded)
    assert ours.piece_tags(back, encoded) == tags
    starts, ends = ({run[side] for run in runs.values()} for side in (0, 1))
    lost = [span for span in spans if span.start not in starts or span.end not in ends]
    assert [span for span in spans if span not in back] == lost  # these cannot be, all others are
    labels = ["O"] * len(text)
    for start, end, label in back:
        labels[start:end] = [label] * (end - start)
    for start, end, _ in spans:  # what is labelled stays labelled, where it has a piece
        assert all(labels[at] != "O" for at in range(start, end) if owner[at] >= 0)


def test_words_to_first_pieces_and_back():
    text = passage(*EMPTY)
    assert ours.first_pieces(WORDS, text) == [0, 1, 2, 4]
    assert ours.word_tags(["NP", "JX", "NNG", "EF"], WORDS, text) == ["NP", "JX", "NNG", None, "EF"]
    # The first word has the piece that two share; a word that is white space has none.
    joined = passage(*NAMES)
    words = [(0, 1), (1, 2), (2, 4)]
    assert ours.first_pieces(words, joined) == [0, 0, 1]
    assert ours.word_tags(["A", "B", "C"], words, joined) == ["A", "C"]
    assert ours.first_pieces([(2, 3), (3, 3)], text) == [-1, -1]
    spans = [(0, 2), (3, 4), (5, 6), (7, 8)]  # of 서울 이 . 다
    assert ours.spans_of_words(["B-LC", "I-LC", "O", "I-PS"], spans) == [(0, 4, "LC"), (7, 8, "PS")]


@given(cases(), st.data())
def test_laws_of_words(case, data):
    text, pieces, _ = case
    encoded, owner, words = passage(text, pieces), by_hand(pieces, len(text)), ours.eojeols(text)
    expected = [next((owner[at] for at in range(*word) if owner[at] >= 0), -1) for word in words]
    assert ours.first_pieces(words, encoded) == expected
    labels = data.draw(st.lists(st.sampled_from("AB"), min_size=len(words), max_size=len(words)))
    tags = [None] * len(pieces)
    for label, piece in reversed(list(zip(labels, expected, strict=True))):  # the first word of a piece labels it
        if piece >= 0:
            tags[piece] = label
    assert ours.word_tags(labels, words, encoded) == tags


def test_of_real_pieces(tiny_tokenizer):
    """Whatever Kiwi makes of it: boundaries of morphemes are boundaries of pieces."""
    sentences = ["<서울:LC>에서 <이걸:PD> 봤다 👍🏻", "<세종:PS>은 <1443년:DT>에 <한글:AF>을 만들었다."]
    for text, spans in map(marked, [*sentences, "<김철수:PS>가 <학교:LC>에 방문한다."]):
        (encoded,) = encode_passages(tiny_tokenizer, [text])
        assert decoded(ours.piece_tags(spans, encoded), encoded) == spans
