import numpy as np
import pytest

from korbert.corpus.documents import is_heldout


def test_held_out_documents_depend_on_id_and_seed_alone():
    ids = [f"wiki:{number}" for number in range(20_000)]
    held = np.array([is_heldout(id, 0, 0.05) for id in ids])
    assert held.mean() == pytest.approx(0.05, abs=0.005)
    assert [is_heldout(id, 0, 0.05) for id in reversed(ids)] == held[::-1].tolist()
    assert held.tolist() == [held and is_heldout(id, 0, 0.3) for id, held in zip(ids, held, strict=True)]  # a superset
    assert [any(is_heldout(id, 0, share) for id in ids[:99]) for share in (0.0, 1.0)] == [False, True]
    assert (held & np.array([is_heldout(id, 1, 0.05) for id in ids])).mean() == pytest.approx(0.0025, abs=0.001)
