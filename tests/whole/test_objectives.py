"""What a recipe's `pretrain.objectives` make, from the shards of the whole chain to a classifier."""

import json
from functools import partial

import pyarrow.parquet as pq
import pytest
import torch

import korbert
from korbert.modeling.files.storage import load_model, read_config
from korbert.pipelines.artifacts.figures import OBJECTIVES
from korbert.tokenization.kiwi_vectors import piece_vectors
from tests.whole.conftest import STAGES

slow = partial(pytest.param, marks=pytest.mark.slow)  # test_stages trains each objective


@pytest.mark.parametrize(
    ("objectives", "more", "figures"),
    [
        slow(["mlm", "sop"], "", {"mlm", "sop"}),
        slow(["mlm", "spans"], "[pretrain.spans]\nrarity = 0.0\n", {"mlm", "spans"}),
        (["rtd", "nsp"], "", {"mlm", "rtd", "nsp"}),
        slow(["mlm", "distill"], '[pretrain.distill]\nteacher = "before/pretrain"\n', {"mlm", "distill"}),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_objectives(objectives, more, figures, whole, tmp_path):
    changes = {"[pretrain]\n": f"[pretrain]\nobjectives = {json.dumps(objectives)}\n"}
    changes["[pretrain.encoder]"] = f"{more}[pretrain.encoder]"
    made = whole.changed(tmp_path, changes.items(), STAGES[:4])
    made.run("run", "--workers", "1", "--to", "nsmc")

    scores = json.loads((made.folder / "pretrain" / "scores.json").read_text(encoding="utf-8"))
    assert {name.removesuffix("_loss") for name in scores if name.endswith("_loss")} == figures | {"unigram"}
    assert scores["mlm_loss"] < scores["unigram_loss"] + 2  # of 60 steps nothing more is asked
    page = (made.folder / "pretrain" / "report.html").read_text(encoding="utf-8")
    for name, words in OBJECTIVES.items():
        assert (f"{words} accuracy" in page) == (name in figures)

    model = made.folder / "pretrain" / "model"
    if "rtd" in objectives:
        assert read_config(model)["kind"] == "detection"
        model = made.folder / "pretrain" / "generator"
        token = load_model(made.folder / "pretrain" / "model")[0].encoder.token_weight
        assert load_model(model)[0].encoder.token_weight.equal(token)
        assert korbert.load(made.folder / "pretrain" / "model").embed("오늘 정말 좋다").ndim == 1  # and nothing more
    assert len(korbert.load(model).fill("오늘 [MASK] 좋다")[0]) == 5
    assert "korbert fill" in page


@pytest.mark.slow
def test_embeddings_begin_as_vectors_of_kiwi(whole, tmp_path):
    made = whole.copy(tmp_path, STAGES[:4])
    barely = ("pretrain.embeddings=kiwi", "pretrain.optimizer.learning_rate=1e-9", "pretrain.evaluate_every=100")
    options = [word for change in barely for word in ("--set", change)]
    made.run("run", "--to", "pretrain", *options)

    model, tokenizer = load_model(made.folder / "pretrain" / "model")
    counts = pq.read_table(made.folder / "vocab" / "counts.parquet").select(["form", "tag", "count"]).to_pylist()
    ids, vectors = piece_vectors(tokenizer, [(row["form"], row["tag"], row["count"]) for row in counts])
    learned = model.encoder.token_weight.detach()[torch.from_numpy(ids)]
    strongest = torch.linalg.svdvals(torch.from_numpy(vectors))[: learned.shape[1]]
    found = torch.linalg.svdvals(learned)
    assert (found / found[0]).tolist() == pytest.approx((strongest / strongest[0]).tolist(), abs=1e-3)
