"""What the stage makes of its settings."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from korbert.errors import SettingsError
from korbert.pretraining.objectives.replacement import ReplacementLoss, ReplacementModel
from pipelines.stages.pretrain import _negatives, model_and_loss, training_plan
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


@pytest.mark.parametrize(
    ("objectives", "causal"),
    [
        (["mlm"], False),
        (["mlm", "sop"], False),
        (["mlm", "nsp", "spans"], False),
        (["rtd"], False),
        (["rtd", "sop"], False),
        (["clm"], True),
    ],
)
def test_objectives_that_fit_together(objectives: list[str], causal: bool) -> None:
    encoder = settings().encoder.model_dump() | {"causal": causal}
    made = settings(objectives=objectives, encoder=encoder)
    assert list(made.objectives) == objectives
    record = made.model_dump()
    assert "embeddings" not in record
    assert ("rtd" in record, "spans" in record) == ("rtd" in objectives, "spans" in objectives)
    model, loss = model_and_loss(made, 500)
    assert isinstance(model, ReplacementModel) == isinstance(loss, ReplacementLoss) == ("rtd" in objectives)


@pytest.mark.parametrize(
    ("objectives", "more", "message"),
    [
        (["nsp"], {}, "do not go together"),
        (["mlm", "rtd"], {}, "do not go together"),
        (["mlm", "mlm"], {}, "do not go together"),
        (["mlm", "nsp", "sop"], {}, "do not go together"),
        (["rtd", "spans"], {}, "do not go together"),
        (["clm", "nsp"], {}, "do not go together"),
        (["clm"], {}, "clm needs an encoder that reads from left to right"),
        (["mlm"], {"init": "a", "embeddings": "kiwi"}, "they have their own"),
        (["rtd"], {"init": "a"}, "init has weights for neither generator nor detector"),
    ],
)
def test_objectives_that_do_not(objectives: list[str], more: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        settings(objectives=objectives, **more)


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
