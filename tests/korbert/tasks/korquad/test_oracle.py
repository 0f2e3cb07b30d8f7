"""What a tokenizer allows on KorQuAD, and why not more."""

import pytest

from korbert.errors import CorpusError
from korbert.tasks import korquad
from korbert.tasks.files import Answer, Place, Rows
from korbert.tasks.korquad.ceilings import oracle
from korbert.tasks.korquad.metrics import score
from korbert.tokenization import Pieces

CONTEXT = "황비홍이 했다 해서 도시에"
SCORES = ("exact_match", "f1")


class Scripted:
    """Stands for a tokenizer: 황비홍이 is one piece, 했 is 하 and 었, the last eojeol has no piece at all."""

    def pieces_of_many(self, texts, *, workers):
        assert list(texts) == [CONTEXT]
        names = ["황비홍이", "하", "었", "다", "하", "어서"]
        spans = [(0, 4), (5, 6), (5, 6), (6, 7), (8, 9), (8, 10)]
        return [Pieces([400] * 6, names, [2, 2, 1, 1, 2, 1], spans, [*range(6)], ["NNP", "VV", "EP", "EF", "VV", "EC"])]


def _ask(*answers):
    rows = Rows([{"id": "q", "context": CONTEXT, "question": "?", "answers": [Answer(*one) for one in answers]}])
    rows.places.append(Place("dev.json", "record", 1))
    return oracle(rows, Scripted())


@pytest.mark.parametrize(
    ("answer", "start", "pieces", "characters"),
    [("황비홍이", 0, 100, 100), ("황비홍", 0, 0, 100), ("비홍", 1, 0, 100), ("했다", 5, 100, 100), ("했", 5, 100, 100)],
)
def test_cuts_inside_a_piece_are_the_second_ceiling(answer, start, pieces, characters):
    found = _ask((answer, start))
    assert (found["pieces"]["exact_match"], found["characters"]["exact_match"]) == (pieces, characters)


def test_what_is_missed_has_a_cause():
    inside, fused, none = _ask(("황비홍", 0)), _ask(("서", 9)), _ask(("도시", 11))
    (cut,), (joined,), (lost,) = (found["unreached"] for found in (inside, fused, none))
    assert (cut["id"], cut["answer"], cut["best"]) == ("q", "황비홍", {"pieces": "황비홍이"})
    assert (cut["cause"], cut["pieces"]) == ("inside a piece", ["황비홍이/NNP"])
    assert (joined["cause"], joined["pieces"]) == ("fused", ["어서/EC"])
    assert joined["best"] == {"pieces": "해서", "characters": "해서"}
    assert lost["cause"] == "no piece"
    assert fused["characters"]["causes"] == {"fused": 1}
    assert none["characters"]["f1"] == 0
    assert _ask(("도시", 11), ("황비홍이", 0))["pieces"]["exact_match"] == 100
    for answers, what in (([], "has no answer"), ([("서울", 0)], "the context has '황비' at 0")):
        with pytest.raises(CorpusError, match=f"dev.json, record 1: question q: {what}"):
            _ask(*answers)


def test_the_sample_is_within_reach(sample, tiny_tokenizer):
    path = sample / "korquad" / "valid.json"
    found = oracle(korquad.read(path), tiny_tokenizer)
    assert found["count"] == 30
    assert found["pieces"]["exact_match"] <= found["characters"]["exact_match"] == 100
    right = {row["id"]: row["answers"][0].text for row in korquad.read(path)}
    nearest = right | {one["id"]: one["best"].get("pieces", one["answer"]) for one in found["unreached"]}
    assert score(korquad.read(path), nearest) == pytest.approx({key: found["pieces"][key] for key in SCORES})


@pytest.mark.slow
def test_the_official_dev_file_is_within_reach(korbert_data, tiny_tokenizer):
    """Even of 2,000 pieces: the morphemes' ends decide."""
    found = oracle(korquad.read(korbert_data / "korquad1" / "KorQuAD_v1.0_dev.json"), tiny_tokenizer, workers=2)
    assert (found["count"], found["pieces"]["exact_match"] >= 99.4) == (5_774, True)
    assert found["characters"]["exact_match"] >= 99.9
    assert found["characters"]["f1"] >= 99.95
