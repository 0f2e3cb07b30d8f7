"""Vectors of pieces, morphemes and eojeols: whose they are, and which characters."""

import unicodedata

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import korbert
from korbert.errors import SettingsError
from korbert.huggingface.importing import import_folder

TEXT = "나는 어제 학교에 갔다 👍"


def test_the_parts_of_a_text(encoder):
    row = encoder.tokenizer.encode(TEXT)
    with torch.inference_mode():
        hidden = encoder.network.encoder(torch.tensor([row.input_ids]))[0].numpy()
    pieces = encoder.parts(TEXT, "piece")
    assert (pieces.names, pieces.spans) == (row.pieces[1:-1], row.spans[1:-1])
    np.testing.assert_allclose(pieces.vectors, hidden[1:-1], atol=1e-5)

    morphemes = encoder.parts(TEXT)
    assert morphemes.names[:7] == ["나", "는", "어제", "학교", "에", "가", "었"]
    assert [TEXT[slice(*span)] for span in morphemes.spans[:7]] == ["나", "는", "어제", "학교", "에", "갔", "갔"]
    for number, vector in enumerate(morphemes.vectors):
        own = [place for place, owner in enumerate(row.morphemes) if owner == number]
        np.testing.assert_allclose(vector, hidden[own].mean(axis=0), atol=1e-5)

    eojeols = encoder.parts(TEXT, "eojeol", layer=-2)
    assert eojeols.names == TEXT.split()
    assert [TEXT[slice(*span)] for span in eojeols.spans] == TEXT.split()
    layered = encoder.parts(TEXT, "piece", layer=-2).vectors
    np.testing.assert_allclose(eojeols.vectors[0], layered[: len("나는")].mean(axis=0), atol=1e-5)


@pytest.mark.parametrize(("word", "text", "spans"), [
    ("사랑", "나는 너를 사랑했다", [(6, 8)]), ("사랑", "사랑을 사랑하는 사람", [(0, 2), (4, 6)]),
    ("사랑", "짝사랑은 사랑니처럼 아프다", []), ("사랑", "", []), ("", "사랑", []),
    ("듣", "음악을 들었다", [(4, 5)]), ("신용 대출", "신용대출과 신용 대출", [(0, 4), (6, 11)]),
    (unicodedata.normalize("NFD", "사랑"), "사랑", [(0, 2)]), ("뷁", "뷁이 온다", [(0, 1)]),
    ("👍", "좋아요 👍", [(4, 5)]),
])  # fmt: skip
def test_the_places_of_a_word(encoder, word, text, spans):
    assert encoder.parts(text).occurrences(word).spans == spans


def test_the_vector_of_several_morphemes_is_their_mean(encoder):
    parts = encoder.parts("신용대출과 신용 대출")
    means = [parts.vectors[:2].mean(axis=0), parts.vectors[3:5].mean(axis=0)]
    np.testing.assert_allclose(parts.occurrences("신용대출").vectors, means, atol=1e-6)


@given(texts=st.lists(st.text(alphabet="가나다 .\n한글a👍", max_size=40), max_size=5))
@example(texts=["가 가"])
@example(texts=["가 글"])
@example(texts=["나 가"])  # 나가 and 아, which ends where it ends
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_eojeols_are_those_of_the_text(encoder, texts):
    for text, found in zip(texts, encoder.parts(texts, "eojeol"), strict=True):
        assert len(found) == len(found.spans) == len(found.vectors)
        assert found.vectors.shape[1:] == (16,)
        whole = text.split()
        assert "".join(whole).startswith("".join("".join(found.names).split()))  # the rest is behind max_length
        if all(len(name.split()) == 1 for name in found.names):  # a torn word (가 글) is one part
            assert found.names[:-1] == whole[: max(len(found) - 1, 0)]
        if len(found) == 1:
            assert whole[0].startswith(found.names[0].split()[0])
        np.testing.assert_allclose(found.vectors, encoder.parts(text, "eojeol").vectors, atol=1e-4)


def test_what_is_cut_off_has_no_part(encoder, foreign, tmp_path):
    assert (len(encoder.parts("학교 " * 100, "piece")), len(encoder.parts("", "eojeol"))) == (30, 0)
    assert encoder.parts("").vectors.shape == (0, 16)
    with pytest.raises(SettingsError, match="unit 'word': take piece, morpheme, eojeol"):
        encoder.parts(TEXT, "word")
    # Words of other tokenizers.
    import_folder(foreign("roberta"), tmp_path / "model")
    found = korbert.load(tmp_path / "model", "cpu").parts("나는 어제 학교에 갔다", "eojeol")
    assert found.names == ["나는", "어제", "학교에", "갔다"]
    assert korbert.load(tmp_path / "model", "cpu").parts("나는 어제").names == ["나는", "어제"]
