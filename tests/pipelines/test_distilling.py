"""Vectors learned from a teacher: one of ours, one of sentence-transformers, and one behind a server."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pyarrow.parquet as pq
import pytest
from foreign_folders import CONFIGS, foreign_tokenizer

import korbert
from korbert.errors import ModelError, SettingsError
from korbert.modeling.adapters.transformers_config import class_of
from korbert.pipelines.experiments.evaluating import evaluate_file
from korbert.pipelines.inference.teachers import Cut, principal_axes, teacher_of
from korbert.vectors.encoder import to_unit_length
from tests.korbert.tiny import json_lines
from tests.pipelines.small_tasks import TEXTS, scores_of, write_table

SETTINGS = ["learning_rates=5e-3", "batch_size=5", "max_length=32", "threads=1", "sizes=[8]", "precision=fp32"]


@pytest.fixture(scope="module")
def folders(untrained):
    """The folders of a small student, and of a wider teacher."""
    small = untrained(architecture="modern", hidden_size=16, intermediate_size=16)
    return small, untrained(architecture="modern", hidden_size=32, intermediate_size=32)


@pytest.fixture
def server(folders):
    """The address of a server with OpenAI's form of embeddings: vectors of the teacher, in reverse order."""
    teacher = korbert.load(folders[1], "cpu")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            vectors = teacher.embed(asked["input"]).tolist()
            if asked["model"] == "moved":
                self.send_response(302)
                self.send_header("Location", f"http://localhost:{self.server.server_port}/v1/embeddings")
                self.end_headers()
                return
            data = [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)][::-1]
            body = json.dumps({"data": data}).encode()
            self.send_response(200 if asked["model"] == "wide" else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{found.server_port}/v1"
        found.shutdown()


def test_an_encoder_learns_vectors(folders, tmp_path, command):
    small, wide = folders
    texts = tmp_path / "texts.txt"
    output = tmp_path / "out"
    lines = [f"{one} {other}" for one in TEXTS for other in TEXTS]
    texts.write_text("\n".join([*lines, lines[0]]), encoding="utf-8")
    options = [part for setting in SETTINGS for part in ("--set", setting)]
    distill = ["distill", small, texts, "--teacher", wide, "--output", output, "--epochs", "30", *options]
    command(*distill)
    kept = pq.read_table(tmp_path / "out.teacher.parquet")
    assert kept["text"].to_pylist() == lines  # each once
    # Cut to the student's size, the inner products are the nearest that so few dimensions allow.
    theirs = korbert.load(wide, "cpu").embed(lines)
    cut = np.array(kept["vector"].to_pylist())
    best = np.linalg.svd(theirs, full_matrices=False)
    nearest = best[0][:, :16] * best[1][:16]
    assert np.allclose(cut @ cut.T, to_unit_length(nearest) @ to_unit_length(nearest).T, atol=1e-4)
    scores = scores_of(output)
    assert scores["pretrained"]["teacher_cosine"] > 0.9 > scores["pretrained-untuned"]["teacher_cosine"]
    student = korbert.load(output, "cpu")
    rows = json_lines(output / "predictions.jsonl")
    own = student.embed([row["text"] for row in rows])
    expected = [float(vector @ cut[lines.index(row["text"])]) for vector, row in zip(own, rows, strict=True)]
    assert [row["predictions"]["pretrained"][0] for row in rows] == pytest.approx(expected, abs=1e-4)
    # Pairs with scores are scored by their correlation, though it was validated by the teacher's vectors.
    rows = [[*TEXTS[:2], "1"], [*TEXTS[2:4], "3"]]
    pairs = write_table(tmp_path / "sts.csv", ["sentence1", "sentence2", "score"], rows)
    assert list(evaluate_file(student, pairs, {}).scores) == ["spearman", "pearson"]
    # The vectors are kept for another run, and refused for another teacher.
    command(*distill)
    texts.write_text("다른 글", encoding="utf-8")
    assert "out.teacher.parquet: holds the vectors of other texts or another teacher" in command(*distill, code=2).err


def test_teachers_in_other_forms(folders, server, tmp_path):
    wide = folders[1]
    assert np.allclose(teacher_of(f"{server}#wide", "cpu")(TEXTS), teacher_of(str(wide), "cpu")(TEXTS), atol=1e-5)
    for name, error, said in (
        ("#narrow", ModelError, r"gave no vectors .*404.*: start it, or check"),
        ("#moved", ModelError, r"redirects to http://localhost:\d+, another origin"),
        ("", SettingsError, "names no model of the server: write"),
    ):
        with pytest.raises(error, match=said):
            teacher_of(f"{server}{name}", "cpu")(TEXTS)
    model = class_of("bert")(class_of("bert").config_class(vocab_size=300, **CONFIGS["bert"]))
    model.save_pretrained(tmp_path)
    foreign_tokenizer("wordpiece").save_pretrained(tmp_path)
    theirs = teacher_of(str(tmp_path), "cpu")
    cut = Cut(theirs, principal_axes(theirs(TEXTS), theirs(TEXTS).shape[1]))
    assert np.allclose(cut(TEXTS) @ cut(TEXTS).T, theirs(TEXTS) @ theirs(TEXTS).T, atol=1e-4)  # nothing is lost
    before = theirs.digest().hexdigest()
    (tmp_path / "config.json").write_text((tmp_path / "config.json").read_text() + " ")
    assert theirs.digest().hexdigest() != before
