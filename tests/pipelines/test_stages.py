"""The stages vocab, shard and pretrain by themselves: whose morphemes a tokenizer is of, and what settings make."""

import json
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from korbert.corpus.corpus_settings import ShardSettings
from korbert.corpus.counts import frequent_cut_forms
from korbert.errors import ArtifactError, SettingsError
from korbert.modeling import Layer, load_model
from korbert.pipelines.artifacts.stage import Runtime, StageInputs
from korbert.pipelines.stages import pretrain, shard, vocab
from korbert.pipelines.stages.pretrain import ShardRows, model_and_loss
from korbert.pipelines.stages.stage_settings import PretrainStage, VocabStage
from korbert.pretraining import SpecialIds
from korbert.pretraining.objectives.replacement import ReplacementLoss, ReplacementModel
from korbert.tokenization import Analyzer, Tokenizer
from tests.corpus import made_up

VERSIONS = Analyzer().versions
SETTINGS = VocabStage(size=410, seed=1, heldout_share=0.2)


def analyzed(folder, versions, **options):
    """An artifact of `analyze` made with those versions and options of Kiwi."""
    made_up.write_parts(folder, [made_up.documents(0, 60)])
    record = {"settings": {"options": options}, "versions": versions}
    (folder / "stage.json").write_text(json.dumps(record), encoding="utf-8")
    return folder


def runtime(folder):
    return Runtime(root=folder, data=folder, workers=1)


@pytest.mark.parametrize("package", ["kiwipiepy", "kiwipiepy_model"])
def test_morphemes_of_another_kiwi_are_refused(tmp_path, package):
    morphemes = analyzed(tmp_path / "analyze", {**VERSIONS, "pyarrow": "1", package: "0.23.0"})
    (tmp_path / "out").mkdir()
    expected = (
        f"{morphemes}: its morphemes are from {package} 0.23.0, but {package} {VERSIONS[package]} is installed, which "
        f"splits text differently: install {package}==0.23.0, or analyze again with "
        "`korbert run RECIPE --from analyze --rebuild`"
    )
    with pytest.raises(ArtifactError) as refusal:
        vocab.run(SETTINGS, StageInputs({"analyze": morphemes}, {}), tmp_path / "out", runtime(tmp_path))
    assert str(refusal.value) == expected
    assert list((tmp_path / "out").iterdir()) == []


def test_the_tokenizer_is_of_the_kiwi_that_made_the_morphemes(tmp_path):
    morphemes = analyzed(tmp_path / "analyze", VERSIONS)
    (tmp_path / "vocab").mkdir()
    vocab.run(SETTINGS, StageInputs({"analyze": morphemes}, {}), tmp_path / "vocab", runtime(tmp_path))
    assert Tokenizer.load(tmp_path / "vocab" / "tokenizer").versions == VERSIONS
    other = analyzed(tmp_path / "other", {**VERSIONS, "kiwipiepy": "0.23.0"})
    inputs = StageInputs({"analyze": other, "vocab": tmp_path / "vocab"}, {})
    with pytest.raises(ArtifactError, match=r"from kiwipiepy 0\.23\.0, but kiwipiepy \S+ is what \S+ was made with"):
        shard.run(ShardSettings(seed=1, heldout_share=0.2), inputs, tmp_path / "out", runtime(tmp_path))


@pytest.fixture(scope="module")
def taken(tmp_path_factory):
    """The folder of a tokenizer, whose longest piece may have 3 characters."""
    folder = tmp_path_factory.mktemp("taken")
    base = made_up.tokenizer()
    settings = base.settings.model_copy(update={"max_piece_chars": 3})
    tokenizer = Tokenizer(*base.parts._replace(settings=settings))
    tokenizer.record_probe_encodings()
    tokenizer.save(folder)
    return folder


def run_with(taken, morphemes, output, settings):
    """A run of the stage with a tokenizer to take."""
    output.mkdir()
    stage = VocabStage.model_validate({"seed": 1, "heldout_share": 0.2, "tokenizer": "taken", **settings})
    inputs = StageInputs({"analyze": morphemes}, {"tokenizer": tuple(sorted(taken.iterdir()))})
    return vocab.run(stage, inputs, output, runtime(output))


def test_a_tokenizer_is_taken_as_it_is(tmp_path, taken):
    other = analyzed(tmp_path / "other", VERSIONS, typos="basic")
    with pytest.raises(SettingsError) as refusal:
        run_with(taken, other, tmp_path / "refused", {})
    assert str(refusal.value) == (
        f"{taken}: was made with other options of Kiwi than analyze.options, so its pieces would not match "
        "these morphemes: typos: 'basic', not 'none': change it in the recipe"
    )
    assert list((tmp_path / "refused").iterdir()) == []
    morphemes = analyzed(tmp_path / "analyze", VERSIONS)
    counts = run_with(taken, morphemes, tmp_path / "out", {})
    made, given = (
        {file.name: file.read_bytes() for file in of.iterdir()} for of in (tmp_path / "out/tokenizer", taken)
    )
    assert made == given
    assert (counts["size"], counts["added"]) == (410, 0)
    coverage = json.loads((tmp_path / "out" / "coverage.json").read_text(encoding="utf-8"))
    assert coverage["used"]["entries"] == 410 - 384
    assert (tmp_path / "out" / "counts.parquet").exists()


def test_words_are_added_to_it(tmp_path, taken):
    """Those of the recipe first, then those that this text needs most."""
    morphemes = analyzed(tmp_path / "analyze", VERSIONS)
    counts = run_with(taken, morphemes, tmp_path / "out", {"words": ("갓생", "다"), "add": 2})
    base = Tokenizer.load(taken)
    made = Tokenizer.load(tmp_path / "out" / "tokenizer")
    assert (counts["size"], counts["added"]) == (413, 3)
    first, *chosen = made.settings.words
    assert (first, len(chosen)) == ("갓생", 2)
    assert chosen == frequent_cut_forms(tmp_path / "out" / "counts.parquet", base, 2)
    assert made.parts.base == base.digest
    assert made.compare_probe() is not None
    assert made.tokens(range(410, 413)) == ["갓생", *chosen]

    assert run_with(tmp_path / "out" / "tokenizer", morphemes, tmp_path / "again", {})["added"] == 0
    assert Tokenizer.load(tmp_path / "again" / "tokenizer").digest == made.digest


# --- pretrain ---


def settings(**changes):
    encoder = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    needed = {"encoder": encoder, "phases": [{"length": 64, "steps": 10}], "optimizer": {"learning_rate": 1e-3}}
    return PretrainStage.model_validate({**needed, **changes})


@pytest.mark.parametrize(
    "objectives", [["mlm"], ["mlm", "sop"], ["mlm", "nsp", "spans"], ["rtd"], ["rtd", "sop"]], ids="-".join
)
def test_objectives_that_fit_have_a_model_and_a_loss(objectives):
    made = settings(objectives=objectives, compile=True)
    assert list(made.objectives) == objectives
    model, loss = model_and_loss(made, 500)
    assert isinstance(model, ReplacementModel) == isinstance(loss, ReplacementLoss) == ("rtd" in objectives)
    assert all(module.compiled for module in model.modules() if isinstance(module, Layer))


@pytest.mark.parametrize(("objectives", "more", "message"), [
    *((wrong, {}, "do not go together") for wrong in (["nsp"], ["mlm", "rtd"], ["mlm", "mlm"], ["rtd", "spans"])),
    (["mlm", "nsp", "sop"], {}, "do not go together"),
    (["mlm"], {"init": "a", "embeddings": "kiwi"}, "they have their own"),
    (["mlm"], {"frozen_embeddings": True}, "would freeze random ones"),
    (["rtd"], {"frozen_embeddings": True, "embeddings": "kiwi"}, "rtd learns its embeddings"),
    (["rtd"], {"head": {"kind": "sampled"}}, "rtd and distill need the whole vocabulary: take kind = 'full'"),
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


@pytest.mark.slow
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
def test_frozen_embeddings_stay_and_all_else_learns(pretraining, tmp_path, monkeypatch, head):
    vectors = []  # of Kiwi, which takes seconds to tell them; those of the first run serve all three
    real = pretrain.piece_vectors

    def vectors_once(*arguments):
        if not vectors:
            vectors.extend(real(*arguments))
        return [array.copy() for array in vectors]

    monkeypatch.setattr(pretrain, "piece_vectors", vectors_once)
    step = {"embeddings": "kiwi", "head": head, "phases": [{"length": 48, "batch_size": 4, "steps": 1}]}
    first, last = (
        trained(pretraining, tmp_path / str(rate), frozen_embeddings=True, optimizer={"learning_rate": rate}, **step)
        for rate in (1e-9, 1e-2)
    )
    changed = {name for name, tensor in last.state_dict().items() if not tensor.equal(first.state_dict()[name])}
    assert changed == last.state_dict().keys() - {"embeddings.token.weight"}
    assert not trained(pretraining, tmp_path / "learned", **step).token_weight.equal(first.token_weight)
