"""What korbert asks of the processor."""

import os

import pytest

from korbert.processor import bound_spinning


@pytest.mark.parametrize(
    ("own", "count"), [({}, "10000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "ACTIVE"}, None)]
)
def test_waiting_threads_sleep_soon_unless_the_user_says_otherwise(own, count, monkeypatch):
    monkeypatch.setattr(os, "environ", dict(own))
    bound_spinning()
    assert os.environ.get("GOMP_SPINCOUNT") == count
