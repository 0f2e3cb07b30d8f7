"""Vectors corrected: against scikit-learn's PCA, and against the definition."""

import numpy as np
import pytest
from sklearn.decomposition import PCA, TruncatedSVD

from korbert.errors import SettingsError
from korbert.vectors import Correction


@pytest.fixture
def vectors():
    drawn = np.random.default_rng(3).normal(size=(200, 6)).astype(np.float32)
    return drawn @ np.diag([5, 1, 3, 0.1, 2, 1]).astype(np.float32) + 2


def test_fitted_as_scikit_learn_does(vectors):
    """As PCA with whitening, but for the sign of each direction."""
    found = Correction.fit("whiten", vectors)(vectors)
    theirs = PCA(whiten=True).fit_transform(vectors) * np.sqrt(len(vectors) / (len(vectors) - 1))
    np.testing.assert_allclose(np.abs(found), np.abs(theirs), atol=1e-3)
    np.testing.assert_allclose(np.cov(found, rowvar=False, bias=True), np.eye(6), atol=1e-3)
    first = TruncatedSVD(1).fit(vectors).components_[0]
    found = Correction.fit("common", vectors)(vectors)
    np.testing.assert_allclose(found, vectors - np.outer(vectors @ first, first), atol=1e-3)


def test_too_few_texts(vectors):
    """No direction that they do not have is blown up."""
    correction = Correction.fit("whiten", vectors[:4])
    assert correction.matrix.shape == (6, 3)
    assert np.abs(correction(vectors[:4])).max() < 3
    with pytest.raises(SettingsError, match="is fitted on 1 texts: give two at least"):
        Correction.fit("common", vectors[:1])
    with pytest.raises(SettingsError, match="correction 'white': take common or whiten"):
        Correction.fit("white", vectors)


def test_it_is_kept_in_a_file(vectors, tmp_path, encoder):
    texts = ["좋다", "영화를 본다", "배우가 좋다", "학교에 간다"]
    correction = Correction.fit("whiten", encoder.embed(texts))
    correction.save(tmp_path / "white.npz")
    again = Correction.load(tmp_path / "white.npz")
    found = encoder.embed(texts, correction=again, size=2, normalize=True)
    expected = correction(encoder.embed(texts))[:, :2]
    np.testing.assert_allclose(found, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-5)
    with pytest.raises(SettingsError, match="is of vectors of 16 numbers, these have 32: fit it with the same layers"):
        encoder.embed(texts, correction=again, layer=[0, 1], mix="concat")
    (tmp_path / "white.npz").write_bytes((tmp_path / "white.npz").read_bytes()[:100])
    with pytest.raises(SettingsError, match=r"white.npz: cannot be read as a correction .*: fit it again"):
        Correction.load(tmp_path / "white.npz")
