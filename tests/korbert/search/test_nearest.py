"""Search over 8-bit codes finds what whole vectors find, with their cosines."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from korbert.search import database as store
from korbert.search.nearest import VectorCache, select_best
from korbert.search.owners import read_owners
from korbert.search.texts import delete, insert
from korbert.vectors.encoder import to_unit_length

SIZE = 40  # no multiple of the kernel's 32
ONE = [(0, 0, 0, 1)]  # the only passage of a text


def _random(rng):
    return rng.standard_normal((3_000, SIZE), np.float32)


def _clustered(rng):
    """Thirty groups whose cosines to each other are 0.9 or more, as those of models not trained for search."""
    centres = rng.standard_normal((30, SIZE), np.float32) + 3
    return centres[rng.integers(30, size=3_000)] + 0.03 * rng.standard_normal((3_000, SIZE), np.float32)


def _odd(rng):
    """Equal vectors, zero vectors, and vectors with one large number."""
    rows = rng.standard_normal((300, SIZE), np.float32)
    rows[::3], rows[1::7] = rows[0], 0
    rows[2::5] *= np.eye(SIZE, dtype=np.float32)[3] * 50 + 0.01
    return rows


MADE = {"random": _random, "clustered": _clustered, "odd": _odd}


@pytest.fixture(scope="module", params=MADE)
def filled(request, tmp_path_factory):
    vectors = to_unit_length(MADE[request.param](np.random.default_rng(5)))
    folder = tmp_path_factory.mktemp("nearest")
    _index(folder, vectors)
    cache = VectorCache(SIZE)
    with store.reading(folder) as database:
        yield vectors, cache, database


def nearest(codes, database, vector, top, among=None):
    numbers = codes.numbers if among is None else among
    return codes.query(vector).best(database, read_owners(database), numbers, top)


def _index(folder, vectors):
    store.create(folder, {})
    with store.writing(folder) as database:
        insert(database, [(str(row), "{}", "", ["가/N"], ONE, [vector]) for row, vector in enumerate(vectors)])


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(top=st.integers(1, 400), seed=st.integers(0, 999), near=st.floats(0, 2), share=st.sampled_from([1, 0.3, 0.01]))
def test_the_same_as_by_whole_vectors(filled, top, seed, near, share):
    vectors, cache, database = filled
    rng = np.random.default_rng(seed)
    row = vectors[rng.integers(len(vectors))]
    query = to_unit_length(row + np.float32(near / 6) * rng.standard_normal(SIZE, np.float32))
    numbers = np.flatnonzero(rng.random(len(vectors)) < share) + 1
    found = nearest(cache.read(database), database, query, top, None if share == 1 else numbers)
    rows, whole = vectors[numbers - 1].astype(np.float64), query.astype(np.float64)
    expected = select_best(numbers, np.einsum("nd,d->n", rows, whole).astype(np.float32), top)
    assert [score for _, score in found] == pytest.approx([score for _, score in expected], abs=1e-7)
    # Two cosines may differ by less than the order of a sum.
    for (number, score), (other, _) in zip(found, expected, strict=True):
        assert number == other or abs(score - vectors[other - 1] @ query) < 2e-7


def test_few_whole_vectors_are_read(filled):
    vectors, cache, database = filled
    kept, read = cache.read(database), []
    for row in range(20):
        statements = []
        database.set_trace_callback(statements.append)
        nearest(kept, database, vectors[row], 10)
        database.set_trace_callback(None)
        (statement,) = [one for one in statements if "json_each" in one]
        read.append(statement.count(",") + 1)  # numbers in its list
    assert np.median(read) < len(vectors) / 5


def test_vectors_that_were_added_and_removed(tmp_path):
    vectors = to_unit_length(np.random.default_rng(6).standard_normal((90, SIZE), np.float32))
    _index(tmp_path, vectors[:50])
    cache = VectorCache(SIZE)
    with store.reading(tmp_path) as database:
        assert nearest(cache.read(database), database, vectors[7], 1) == [(8, pytest.approx(1))]
    with store.writing(tmp_path) as database:
        delete(database, [8, 9, 10])
        insert(database, [(f"new {row}", "{}", "", ["가/N"], ONE, [vectors[row]]) for row in range(50, 90)])
    with store.reading(tmp_path) as database:
        kept = cache.read(database)
        assert kept.numbers.tolist() == [number for number in range(1, 91) if number not in (8, 9, 10)]
        for row in (0, 30, 60, 89):
            assert nearest(kept, database, vectors[row], 1) == [(row + 1, pytest.approx(1))]
    with store.writing(tmp_path) as database:
        insert(database, [(f"newer {row}", "{}", "", ["가/N"], ONE, [-vectors[row]]) for row in range(90)])
    with store.reading(tmp_path) as database:
        anew, other = cache.read(database), VectorCache(SIZE).read(database)
        assert anew.codes.equal(other.codes)  # more than twice as many: all were read again
        assert nearest(anew, database, -vectors[3], 2) == nearest(other, database, -vectors[3], 2)
    # An empty index has no nearest.
    _index(tmp_path / "empty", vectors[:0])
    with store.reading(tmp_path / "empty") as database:
        assert nearest(VectorCache(SIZE).read(database), database, np.zeros(SIZE, np.float32), 5) == []
