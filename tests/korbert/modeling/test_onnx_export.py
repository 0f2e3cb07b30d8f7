"""Folders with an encoder in an ONNX file, of 32 and of 8 bits: vectors and labels of the model, and refusals."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st

import korbert
from korbert.errors import ModelError, SettingsError
from korbert.huggingface import export
from korbert.modeling import (
    ClassificationModel,
    PretrainingModel,
    export_onnx,
    load_model,
    pack,
    read_config,
    save_model,
)
from korbert.modeling.adapters.onnx_export import TOLERANCE, graph_of
from korbert.modeling.files.storage import write_files
from korbert.tasks.kinds.classification import Classification
from tests.korbert.tiny import tiny_config

for name in ("onnx", "onnxruntime"):
    pytest.importorskip(name)

from korbert.modeling.adapters.onnx_encoder import _groups  # noqa: E402

TEXTS = ["영화가 정말 재미있다.", "", "나는 어제 학교에 갔다. " * 60, "별로", "아버지가 방에 들어가신다. " * 8]
ENCODERS = {
    "modern": {"local_attention": 4, "boundary_embedding": True, "piece_weights": True},
    "narrow": {"embedding_size": 8, "layer_groups": 2, "local_attention": 8},
}


def saved(kind, tokenizer, folder, **more):
    """Saves a randomly initialized model, its weights scaled up so that numerical differences show; its folder."""
    config = tiny_config(vocab_size=tokenizer.vocab_size, num_hidden_layers=4, max_position_embeddings=128, **more)
    model = kind(config, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.mul_(4)
    labels = getattr(model, "labels", None)
    task = Classification(metrics=("accuracy",), max_length=64, labels=labels).task() if labels else {}
    save_model(folder, model, tokenizer, task)
    return folder


@pytest.fixture(scope="module")
def folders(tiny_tokenizer, tmp_path_factory):
    """A classifier, and its export in 32 bits."""
    place = tmp_path_factory.mktemp("onnx")
    source = saved(ClassificationModel, tiny_tokenizer, place / "model", boundary_embedding=True, local_attention=4)
    export_onnx(source, place / "fast")
    return source, place / "fast"


@pytest.mark.parametrize("encoder", ENCODERS)
def test_vectors_are_those_of_the_model(encoder, tiny_tokenizer, tmp_path):
    source = saved(PretrainingModel, tiny_tokenizer, tmp_path / "model", **ENCODERS[encoder])
    assert export_onnx(source, tmp_path / "fast")["vectors"] <= TOLERANCE
    model = korbert.load(source, "cpu")
    exported = korbert.load(tmp_path / "fast", "cpu")
    np.testing.assert_allclose(exported.embed(TEXTS), model.embed(TEXTS), atol=1e-4)
    np.testing.assert_allclose(exported.embed(TEXTS[2]), model.embed(TEXTS[2]), atol=1e-4)


@pytest.mark.parametrize("more", [{"architecture": "bert"}, {"overlap_embedding": True}], ids=["types", "overlap"])
def test_pairs_have_their_segments(more, tiny_tokenizer, tmp_path):
    source = saved(ClassificationModel, tiny_tokenizer, tmp_path / "model", **more)
    export_onnx(source, tmp_path / "fast")
    ours, theirs = load_model(source)[0], load_model(tmp_path / "fast")[0]
    encoding = tiny_tokenizer.encode("영화가 재미있다.", "영화는 별로였다.")
    ids, segments = (torch.tensor([row]) for row in (encoding.input_ids, encoding.token_type_ids))
    with torch.inference_mode():
        scores, expected = theirs(ids, token_type_ids=segments), ours(ids, token_type_ids=segments)
        torch.testing.assert_close(scores, expected, atol=1e-4, rtol=0)
        assert not torch.allclose(theirs(ids), scores, atol=1e-3)


def test_labels_are_those_of_the_model_in_order(folders):
    ours, theirs = (korbert.load(folder, "cpu").predict(TEXTS * 3) for folder in folders)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.label == other.label
        assert other.probabilities == pytest.approx(mine.probabilities, abs=1e-4)


@given(st.lists(st.integers(0, 40), max_size=50), st.integers(1, 500))
def test_every_row_is_in_one_group(lengths, most):
    lengths = np.array(lengths, np.int64)
    groups = list(_groups(lengths, most))
    assert sorted(np.concatenate([*groups, []])) == np.flatnonzero(lengths).tolist()
    assert all(len(rows) == 1 or len(rows) * lengths[rows].max() <= most for rows in groups)


def test_many_long_rows_are_computed_in_parts(folders, monkeypatch):
    monkeypatch.setattr("korbert.modeling.adapters.onnx_encoder._PLACES_AT_ONCE", 40)
    ours, theirs = (korbert.load(folder, "cpu").embed(TEXTS * 3, batch_size=15) for folder in folders)
    np.testing.assert_allclose(theirs, ours, atol=1e-4)


@pytest.mark.parametrize("bits", [32, 8, 7])
def test_a_graph_imports_the_sets_of_its_operators(bits, folders):
    import onnx

    graph = onnx.load_from_string(graph_of(korbert.load(folders[0], "cpu").network.encoder, bits))
    assert {node.domain for node in graph.graph.node} == {opset.domain for opset in graph.opset_import}


def test_8_bits_change_vectors_little(folders, tmp_path):
    differences = export_onnx(folders[0], tmp_path / "small", bits=8)
    assert differences["cosine"] > 0.98
    assert differences["vectors"] > 1e-4
    both = (folders[0], tmp_path / "small")
    ours, theirs = (korbert.load(folder, "cpu").embed(TEXTS) for folder in both)
    assert ((ours * theirs).sum(axis=1) > 0.98).all()


@pytest.mark.parametrize("more", [*ENCODERS.values(), {"architecture": "bert", "overlap_embedding": True}])
def test_int8_needs_no_export_and_no_row_depends_on_others(more, tiny_tokenizer, tmp_path):
    source = saved(ClassificationModel, tiny_tokenizer, tmp_path / "model", **more)
    exact, fast = (korbert.load(source, "cpu", precision) for precision in ("fp32", "int8"))
    ours, theirs = exact.embed(TEXTS), fast.embed(TEXTS)
    assert not np.allclose(ours, theirs, atol=1e-5)
    assert (ours * theirs).sum(axis=1).min() > 0.98
    np.testing.assert_allclose([fast.embed(text) for text in TEXTS], theirs, atol=1e-6)
    for one, other in zip(exact.predict(TEXTS), fast.predict(TEXTS), strict=True):
        assert other.probabilities == pytest.approx(one.probabilities, abs=0.05)
    np.testing.assert_array_equal(fast.embed(TEXTS, layer=1), exact.embed(TEXTS, layer=1))
    fast.save(tmp_path / "saved")  # as exact as it was
    np.testing.assert_array_equal(korbert.load(tmp_path / "saved", "cpu").embed(TEXTS), exact.embed(TEXTS))
    assert fast.digest == exact.digest


def test_auto_is_int8_where_it_is_fastest_and_the_command_says_so(folders, tmp_path, monkeypatch, command):
    texts = tmp_path / "texts.txt"
    texts.write_text("영화가 정말 재미있다.\n", encoding="utf-8")
    monkeypatch.delenv("KORBERT_PRECISION")
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_vnni": True})
    assert korbert.load(folders[0], "cpu", "auto").precision == "int8"
    assert korbert.load(folders[1], "cpu", "auto").precision != "int8"  # an ONNX file is what it is
    assert "runs in int8; exact: --precision fp32" in command("predict", folders[0], texts, "--device", "cpu").err
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_vnni": False})
    assert korbert.load(folders[0], "cpu", "auto").precision != "int8"
    with pytest.raises(SettingsError, match="precision 'int8': is for encoders of korbert on a CPU"):
        korbert.load(folders[1], "cpu", "int8")


def test_the_command_prints_the_difference(folders, tmp_path, command):
    assert "largest difference" in command("export", folders[0], tmp_path / "new", "--onnx").out
    assert "already exists" in command("export", folders[0], tmp_path / "new", "--onnx", code=2).err
    assert "--bits needs --onnx" in command("export", folders[0], tmp_path / "more", "--bits", "8", code=2).err


def test_changed_broken_and_missing_files_are_refused(folders, tmp_path):
    broken = shutil.copytree(folders[1], tmp_path / "broken")
    file = broken / "encoder.onnx"
    content = file.read_bytes()
    file.write_bytes(content[:-1])
    with pytest.raises(ModelError, match=r"encoder\.onnx: SHA-256 \w+, config\.json says"):
        korbert.load(broken, "cpu")
    config = read_config(broken)
    config["onnx"]["sha256"] = hashlib.sha256(content[:-1]).hexdigest()
    write_files(broken, config, safetensors.torch.load_file(broken / "model.safetensors"))
    with pytest.raises(ModelError, match="ONNX Runtime cannot run it"):
        korbert.load(broken, "cpu")
    file.unlink()
    with pytest.raises(ModelError, match="the model folder is incomplete"):
        korbert.load(broken, "cpu")


def test_without_the_extra_the_error_names_it(folders, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(SettingsError, match=r"needs onnxruntime: pip install 'korbert\[onnx\]'"):
        korbert.load(folders[1], "cpu")


def test_nothing_calls_home(folders, tmp_path):
    """ONNX Runtime reports models and machines to its maker, unless the environment forbids it, and keeps an id."""
    program = f"import korbert; print(*korbert.load({str(folders[1])!r}, 'cpu').can)"
    asking = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("ORT_")}
    run = [sys.executable, "-c", program]
    assert "predict" in subprocess.check_output(run, text=True, env=asking | {"HOME": str(tmp_path)})
    assert list(tmp_path.iterdir()) == []


def test_other_layers_and_weights_are_refused(folders, tiny_tokenizer, tmp_path):
    fast = folders[1]
    assert b"/" + Path(korbert.__file__).parts[1].encode() + b"/" not in (fast / "encoder.onnx").read_bytes()  # no path
    loaded = korbert.load(fast, "cpu")
    assert loaded.digest == korbert.load(fast, "cpu").digest != korbert.load(folders[0], "cpu").digest
    plain = saved(ClassificationModel, tiny_tokenizer, tmp_path / "plain")
    export_onnx(plain, tmp_path / "plainer")
    for act, error, said in (
        (lambda: loaded.embed("가", layer=1), SettingsError, "has only its last layer: omit layer"),
        (lambda: pack(fast, tmp_path / "a"), ModelError, "no weights to save or to train"),
        (lambda: export(tmp_path / "plainer", tmp_path / "b"), ModelError, "no weights to save or to train"),
        (lambda: export_onnx(fast, tmp_path / "c"), ModelError, "already an ONNX file"),
        (lambda: load_model(fast, device="cuda"), ModelError, "runs on CPU only"),
    ):
        with pytest.raises(error, match=said):
            act()
