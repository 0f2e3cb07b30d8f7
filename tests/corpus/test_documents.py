import numpy as np
import pytest

from corpus.documents import document_id, is_heldout


def test_document_ids_begin_with_the_source():
    assert document_id("wiki", "kowiki-9") == "wiki:kowiki-9"
    assert document_id("reviews", 12) == "reviews:12"


def test_held_out_documents_depend_on_id_and_seed_alone():
    ids = [f"wiki:{number}" for number in range(20_000)]
    held = np.array([is_heldout(id, 0, 0.05) for id in ids])
    assert held.mean() == pytest.approx(0.05, abs=0.005)
    assert [is_heldout(id, 0, 0.05) for id in reversed(ids)] == held[::-1].tolist()
    other = np.array([is_heldout(id, 1, 0.05) for id in ids])
    assert (held & other).mean() == pytest.approx(0.0025, abs=0.001)


def test_a_larger_share_holds_out_a_superset():
    ids = [f"리뷰:{number}" for number in range(1_000)]
    assert {id for id in ids if is_heldout(id, 3, 0.1)} <= {id for id in ids if is_heldout(id, 3, 0.3)}
    assert not any(is_heldout(id, 3, 0.0) for id in ids)
    assert all(is_heldout(id, 3, 1.0) for id in ids)
