"""A word in sentences: where it stands, whatever its ending, and how far its vectors lie apart."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import korbert
from korbert.errors import SettingsError
from korbert.huggingface.importing import import_folder
from korbert.vectors.occurrences import distances

SENTENCES = ["나는 너를 사랑해", "나는 너를 사랑했다", "사랑 누가 말했나", "학교에 간다"]


def places(found):
    return [(one.number, one.text[slice(*one.span)]) for one in found]


def test_a_word_is_found_by_its_morphemes(encoder):
    found = encoder.occurrences("사랑", SENTENCES)
    assert places(found) == [(0, "사랑"), (1, "사랑"), (2, "사랑")]
    assert {one.morphemes for one in found} == {"사랑/NNG"}
    for one in found:
        parts = encoder.parts(one.text)
        expected = parts.vectors[parts.names.index("사랑")]
        np.testing.assert_allclose(one.vector, expected, atol=1e-5)
    vectors = np.array([one.vector for one in found])
    np.testing.assert_allclose(distances(found), cdist(vectors, vectors, "cosine"), atol=1e-6)


def test_verbs_and_tags(encoder):
    for word, expected in (
        ("사랑하다", [(0, "사랑해"), (1, "사랑했")]),
        ("사랑/NNG", [(0, "사랑"), (1, "사랑"), (2, "사랑")]),
        ("사랑/NNP", []),
        ("너/NP 를/JKO", [(0, "너를"), (1, "너를")]),
        ("가다", [(3, "간")]),
        ("말하", [(2, "말했")]),
        ("없는말", []),
    ):
        assert places(encoder.occurrences(word, SENTENCES)) == expected


def test_all_of_a_text_and_those_behind_its_end(encoder):
    found = encoder.occurrences("사랑", ["사랑 " * 3, "학교 " * 40 + "사랑"], layer=[1, 2], mix="concat")
    assert [(one.number, one.vector is None) for one in found] == [(0, False)] * 3 + [(1, True)]
    assert found[0].vector.shape == (32,)
    for word in ("", "  ", "\n"):
        with pytest.raises(SettingsError, match="has no morphemes: give a word"):
            encoder.occurrences(word, SENTENCES)


def test_with_another_tokenizer(foreign, tmp_path):
    """Kiwi finds the word, and its characters lead to the pieces."""
    import_folder(foreign("roberta"), tmp_path / "model")
    model = korbert.load(tmp_path / "model", "cpu")
    found = model.occurrences("학교", ["나는 학교에 갔다", "학교"])
    assert places(found) == [(0, "학교"), (1, "학교")]
    parts = model.parts("학교", "piece")
    np.testing.assert_allclose(found[1].vector, parts.vectors.mean(axis=0), atol=1e-5)
