"""What the stage makes of its settings."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from korbert.errors import SettingsError
from pipelines.stages.pretrain import _negatives, training_plan
from pipelines.stages.settings import PretrainStage


def settings(**given: Any) -> PretrainStage:
    encoder: Mapping[str, int] = {
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "intermediate_size": 8,
    }
    needed = {"encoder": encoder, "phases": [{"length": 64, "steps": 10}], "optimizer": {"learning_rate": 1e-3}}
    return PretrainStage.model_validate({**needed, **given})


def test_a_sample_of_all_entries_is_none() -> None:
    """Of a vocabulary that is smaller than vocab.size, or of a tokenizer that was taken."""
    counts = np.ones(500, dtype=np.int64)
    head = {"kind": "sampled", "negatives": 500}
    message = r"^pretrain\.head\.negatives 500: the vocabulary has 500 entries: take fewer, or kind = \"full\"$"
    with pytest.raises(SettingsError, match=message):
        _negatives(settings(head=head), counts)
    assert _negatives(settings(head={**head, "negatives": 499}), counts) is not None
    assert _negatives(settings(head={**head, "kind": "full"}), counts) is None


def test_the_plan_says_what_is_done_about_numbers_that_are_none() -> None:
    assert training_plan(settings()).on_divergence == "stop"
    assert training_plan(settings(on_divergence="skip")).on_divergence == "skip"
