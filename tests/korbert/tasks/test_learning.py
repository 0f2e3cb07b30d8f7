"""Scoring many rows: memory stays with the process between batches, and goes back now and then."""

from contextlib import contextmanager

import numpy as np
import pytest
import torch

from korbert.tasks import learning
from korbert.tasks.examples import Examples
from korbert.tasks.learning import outputs

CPU = torch.device("cpu")


def lengths(model, batch):
    return model(batch["attention_mask"].float().sum(dim=1, keepdim=True))


@pytest.mark.parametrize(
    ("rows", "events"), [(1, []), (2, ["kept", "over"]), (33, ["kept", "release", "release", "over"])]
)
def test_memory_is_kept_over_several_batches(monkeypatch, rows, events):
    seen = []

    @contextmanager
    def noted(device):
        assert device == CPU
        seen.append("kept")
        try:
            yield lambda: seen.append("release")
        finally:
            seen.append("over")

    monkeypatch.setattr(learning, "memory_kept", noted)
    given = [(np.arange(1 + row % 5), np.zeros(1 + row % 5)) for row in range(rows)]
    examples = Examples.of_rows(given, [0] * rows, pad_id=0)
    found = outputs(torch.nn.Identity(), examples, lengths, batch_size=1, device=CPU)
    assert found[:, 0].tolist() == examples.lengths.tolist()
    assert seen == events
