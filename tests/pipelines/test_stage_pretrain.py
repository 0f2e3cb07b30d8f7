"""What the stage makes of its settings."""

from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from korbert.errors import SettingsError
from korbert.modeling import load_model
from korbert.pipelines.artifacts.runtime import Runtime
from korbert.pipelines.stages import pretrain
from korbert.pipelines.stages.pretrain import ShardRows, model_and_loss, training_plan
from korbert.pipelines.stages.settings import PretrainStage
from korbert.pretraining import SpecialIds
from korbert.pretraining.objectives.replacement import ReplacementLoss, ReplacementModel


def settings(**changes):
    encoder = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    needed = {"encoder": encoder, "phases": [{"length": 64, "steps": 10}], "optimizer": {"learning_rate": 1e-3}}
    return PretrainStage.model_validate({**needed, **changes})


@pytest.mark.parametrize(
    "objectives", [["mlm"], ["mlm", "sop"], ["mlm", "nsp", "spans"], ["rtd"], ["rtd", "sop"]], ids="-".join
)
def test_objectives_that_fit_have_a_model_and_a_loss(objectives):
    made = settings(objectives=objectives)
    assert list(made.objectives) == objectives
    assert training_plan(made).on_divergence == "stop"
    assert training_plan(settings(on_divergence="skip")).on_divergence == "skip"
    model, loss = model_and_loss(made, 500)
    assert isinstance(model, ReplacementModel) == isinstance(loss, ReplacementLoss) == ("rtd" in objectives)


@pytest.mark.parametrize(("objectives", "more", "message"), [
    *((wrong, {}, "do not go together") for wrong in (["nsp"], ["mlm", "rtd"], ["mlm", "mlm"], ["rtd", "spans"])),
    (["mlm", "nsp", "sop"], {}, "do not go together"),
    (["mlm"], {"init": "a", "embeddings": "kiwi"}, "they have their own"),
    (["mlm"], {"frozen_embeddings": True}, "would freeze random ones"),
    (["rtd"], {"frozen_embeddings": True, "embeddings": "kiwi"}, "rtd learns its embeddings"),
    (["rtd"], {"init": "a"}, "init has weights for neither generator nor detector"),
])  # fmt: skip
def test_objectives_that_do_not_fit_are_refused(objectives, more, message):
    with pytest.raises(ValidationError, match=message):
        settings(objectives=objectives, **more)


def test_a_sample_as_large_as_the_vocabulary_is_refused():
    """Of a vocabulary that is smaller than vocab.size, or of a tokenizer that was taken."""
    counts = np.ones(500, dtype=np.int64)
    head = {"kind": "sampled", "negatives": 500}
    message = r"^pretrain\.head\.negatives 500: the vocabulary has 500 entries: use fewer, or kind = \"full\"$"
    with pytest.raises(SettingsError, match=message):
        ShardRows(settings(head=head), Path(), SpecialIds(2, 3, 4, 128, 500), counts).phases()


def trained(inputs, output, **given):
    run = settings(**{"phases": [{"length": 48, "batch_size": 4, "steps": 2}], "precision": "fp32", "threads": 1,
                      "heldout_rows": 8, **given})  # fmt: skip
    pretrain.run(run, inputs, output, Runtime(output.parent, output.parent, workers=1, device="cpu"))
    return load_model(output / "model")[0].encoder


def test_a_resumed_run_asks_kiwi_for_no_vectors(pretraining, tmp_path, monkeypatch):
    """A checkpoint has all weights; where each is damaged, the run begins anew, and with Kiwi's vectors."""
    asked = []
    real = pretrain.piece_vectors
    monkeypatch.setattr(pretrain, "piece_vectors", lambda *arguments: (asked.append(1), real(*arguments))[1])
    first = trained(pretraining, tmp_path / "out", embeddings="kiwi").token_weight
    assert len(asked) == 1
    assert trained(pretraining, tmp_path / "out", embeddings="kiwi").token_weight.equal(first)
    assert len(asked) == 1
    for path in (tmp_path / "out" / "checkpoints").glob("*/state.safetensors"):
        path.write_bytes(path.read_bytes()[:-1])
    assert trained(pretraining, tmp_path / "out", embeddings="kiwi").token_weight.equal(first)
    assert len(asked) == 2


@pytest.mark.parametrize(
    "head", [{"kind": "full"}, pytest.param({"kind": "sampled", "negatives": 100}, marks=pytest.mark.slow)]
)
def test_frozen_embeddings_stay_and_all_else_learns(pretraining, tmp_path, head):
    step = {"embeddings": "kiwi", "head": head, "phases": [{"length": 48, "batch_size": 4, "steps": 1}]}
    first, last = (
        trained(pretraining, tmp_path / str(rate), frozen_embeddings=True, optimizer={"learning_rate": rate}, **step)
        for rate in (1e-9, 1e-2)
    )
    changed = {name for name, tensor in last.state_dict().items() if not tensor.equal(first.state_dict()[name])}
    assert changed == last.state_dict().keys() - {"embeddings.token.weight"}
    assert not trained(pretraining, tmp_path / "learned", **step).token_weight.equal(first.token_weight)
