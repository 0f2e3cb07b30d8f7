"""Real texts: the characters of KLUE-NER, the words of UD Korean Kaist."""

from itertools import islice

import pytest

from korbert.tasks.passages import encode_passages
from korbert.tasks.token_classification.bio import read_bio
from korbert.tasks.token_classification.labels import first_pieces, piece_tags, word_tags


def blocks(path):
    """The lines of each sentence."""
    if not path.exists():
        pytest.skip(f"{path} is not there: docs/data.md says where to get it")
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(("## ", "# "))]
        if lines:
            yield lines


def test_spans_of_klue_ner(korbert_data, tiny_tokenizer, decoded):
    """Each span of 500 sentences comes back, or one of its ends lies within a piece or is white space."""
    sentences = []
    for lines in islice(blocks(korbert_data / "tasks" / "klue" / "klue-ner-v1.1_dev.tsv"), 500):
        chars, tags = zip(*(line.rsplit("\t", 1) for line in lines), strict=True)
        sentences.append(("".join(chars), read_bio(tags)))
    passages = encode_passages(tiny_tokenizer, [text for text, _ in sentences])
    total = lost = 0
    for passage, (text, spans) in zip(passages, sentences, strict=True):
        back = decoded(piece_tags(spans, passage), passage)
        missing = [span for span in spans if span not in back]
        total, lost = total + len(spans), lost + len(missing)
        assert len(back) <= len(spans)
        for span in missing:
            blank = text[span.start].isspace() or text[span.end - 1].isspace()  # white space has no piece
            cut = any(cut_by_a_piece(end, passage.spans.tolist()) for end in (span.start, span.end))
            assert cut or blank, (text, span)
    assert total > 1000
    assert lost / total < 0.1, f"{lost} of {total}"


def cut_by_a_piece(end, pieces):
    """Whether the characters on both sides of a boundary belong to one piece."""
    owner = [
        min(((low, place) for place, (low, high) in enumerate(pieces) if low <= at < high), default=None)
        for at in (end - 1, end)
    ]
    return owner[0] is not None and owner[0] == owner[1]


def test_words_of_ud_kaist(korbert_data, tiny_tokenizer):
    """Each word of 300 sentences has its part of speech, or shares its first piece with an earlier one."""
    total = lost = 0
    for lines in islice(blocks(korbert_data / "tasks" / "ud_kaist" / "ko_kaist-ud-dev.conllu"), 300):
        columns = [line.split("\t") for line in lines]
        text, words = "", []
        for row in columns:
            words.append((len(text), len(text) + len(row[1])))
            text += row[1] + " " * ("SpaceAfter=No" not in row[9])
        (passage,) = encode_passages(tiny_tokenizer, [text])
        labels = [row[3] for row in columns]
        pieces = first_pieces(words, passage)
        tags = word_tags(labels, words, passage)
        missing = [row for row, piece in enumerate(pieces) if piece < 0 or tags[piece] != labels[row]]
        assert all(pieces[number] in pieces[:number] for number in missing), text
        total, lost = total + len(words), lost + len(missing)
    assert total > 2000
    assert lost / total < 0.02, f"{lost} of {total}"
