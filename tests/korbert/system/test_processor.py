"""What korbert asks of the processor."""

import os

from korbert.system.processor import bound_spinning


def test_waiting_threads_sleep_soon_unless_the_user_says_otherwise(monkeypatch):
    for own, count in (({}, "10000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "ACTIVE"}, None)):
        monkeypatch.setattr(os, "environ", own)
        bound_spinning()
        assert os.environ.get("GOMP_SPINCOUNT") == count
