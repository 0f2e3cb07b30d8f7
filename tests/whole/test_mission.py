"""What korbert is founded on: each row is a promise to users, kept by the command or call that they would type.

A row may move, get another name, or become smaller; it is not cut. `pytest -m ""` runs the slow ones, too.
"""

import json
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
import transformers

import korbert
from korbert.modeling.models import DetectionModel, PretrainingModel
from tests.korbert.huggingface.exported import FAMILIES, compared, small
from tests.korbert.tiny import json_lines
from tests.pipelines.service.started import started
from tests.pipelines.small_tasks import MOODS, TEXTS, choices, moods, numbers, scores_of, spans, write_table
from tests.running import run_here
from tests.whole.conftest import STAGES, Whole

slow = partial(pytest.param, marks=pytest.mark.slow)
QUICK = ["--epochs", "2", "--workers", "1", "--set", "threads=1", "--set", "max_length=48", "--set", "batch_size=5"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The working folder, which is empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def command(here):
    """(arguments) -> what `korbert` prints on standard output in that folder."""

    def ran(*arguments, code=0):
        done = run_here([*map(str, arguments)], here, seconds=300)
        assert done.code == code, done.err
        return done.out

    return ran


@pytest.fixture(scope="module")
def encoder(whole):
    """A pretrained model of a few seconds, to begin from."""
    return whole.folder / "pretrain"


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("last", ["vocab", slow("korquad")])
def test_stages_run_in_order_resume_and_give_the_same_bytes(whole, tmp_path, last):
    """run, clean, analyze, vocab, shard, pretrain, nsmc, korquad, status."""
    assert [line.split()[:2] for line in whole.run("status").out.splitlines() if "fresh" in line] == [
        [stage, "fresh"] for stage in STAGES
    ]
    made = whole.copy(tmp_path, ["clean"])
    with made.start("analyze") as running:
        while not any((made.folder / "analyze.partial").glob("work/*/part-*.json")):
            assert running.poll() is None
        running.send_signal(signal.SIGKILL)
    assert "interrupted" in made.run("status").out
    for stage in STAGES[1 : STAGES.index(last) + 1]:
        made.run(stage)
        assert made.record(stage)["digest"] == whole.record(stage)["digest"]


def test_tasks_of_a_recipe(whole, tmp_path):
    """tasks."""
    task = '[tasks.mood]\nkind = "classification"\ntrain = "mine.csv"\nepochs = 1\n\n'
    made = whole.changed(tmp_path, [("[korquad]\n", f"{task}[korquad]\n")], STAGES[:5])
    write_table(made.recipe.parent / "mine.csv", *moods()[1:])
    made.run("tasks", "mood", "--workers", "1")
    assert "pretrained" in scores_of(made.folder / "tasks.mood")


def test_cleaning_says_what_it_dropped_and_why(here, command):
    """Near-duplicates, evaluation texts, personal data; clean --preview; reports."""
    story = "어제 비가 와서 학교 앞 도서관에 들러 오래된 책을 세 권 빌려 왔고 저녁에는 동생과 함께 읽었다."
    asked = "이 문장은 평가에만 쓰이는 문장이라서 학습에는 절대로 들어가면 안 되는 글이다."
    texts = [story, f"{story} 끝.", asked, "네.", "문의는 a@b.kr 또는 010-1234-5678로 언제든지 주시면 됩니다."]
    write_lines(here / "mine.jsonl", [{"id": str(number), "text": text} for number, text in enumerate(texts)])
    write_lines(here / "test.jsonl", [{"text": asked}])
    sources = '[[clean.sources]]\nname = "mine"\npath = "mine.jsonl"\n'
    (here / "mine.toml").write_text(f'{sources}[[clean.evaluation]]\nname = "test"\npath = "test.jsonl"\n', "utf-8")
    assert "too short" in command("clean", "mine.toml", "--preview", "9")
    command("clean", "mine.toml", "--workers", "1")
    folder = here / "artifacts" / "mine" / "clean"
    dropped = {row["id"]: row["reason"] for row in pq.read_table(folder / "dropped").to_pylist()}
    assert dropped == {"mine:0": "near_duplicate", "mine:2": "contaminated", "mine:3": "too_short"}
    kept = {row["id"]: row["text"] for row in pq.read_table(folder / "documents").to_pylist()}
    assert kept["mine:4"] == "문의는 <이메일> 또는 <전화번호>로 언제든지 주시면 됩니다."
    assert "near duplicate" in (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("text", ["나는 너를 사랑했다.", "Ελλάδα 漢字 👍🏻", "\u1100\u1161\u11a8 뷁쉛  \u200b꿹"])
def test_pieces_of_any_text_have_exact_spans_and_none_is_unknown(command, text):
    """Morphemes by Kiwi, a vocabulary of 100,000 and more, tokenize, Tokenizer."""
    pieces = json.loads(command("tokenize", "korbert-mini", text, "--json"))["pieces"]
    tokenizer = korbert.Tokenizer.load("korbert-mini")
    assert tokenizer.vocab_size >= 100_000
    assert tokenizer.unk_id not in [piece["id"] for piece in pieces]
    covered = {place for piece in pieces for place in range(*piece["span"])}
    assert covered == {place for place, char in enumerate(text) if char.isprintable() and not char.isspace()}
    assert [piece["piece"] for piece in pieces][:5] == ["나", "는", "너", "를", "사랑"] or "사랑" not in text


@pytest.mark.parametrize(("objectives", "more"), [
    (["mlm", "nsp"], ""), slow(["mlm", "sop"], ""), slow(["rtd"], ""),
    slow(["mlm", "distill"], '[pretrain.distill]\nteacher = "before/pretrain"\n'),
])  # fmt: skip
def test_pretraining_objectives(whole, tmp_path, objectives, more):
    """MLM and NSP (whole morphemes, masks anew, real and matched pairs); SOP, replaced tokens, distillation."""
    changes = {"[pretrain]\n": f"[pretrain]\nobjectives = {objectives}\n".replace("'", '"')}
    made = whole.changed(tmp_path, [*changes.items(), ("[pretrain.encoder]", f"{more}[pretrain.encoder]")], STAGES[:4])
    made.run("pretrain")
    scores = json.loads((made.folder / "pretrain" / "scores.json").read_text(encoding="utf-8"))
    assert {f"{name}_loss" for name in objectives} <= scores.keys()


@pytest.mark.parametrize(("recipe", "parameters"), [
    ("base", 109_482_240), slow("large", 335_141_888), slow("albert", 11_750_400),
    slow("roberta", 109_482_240), slow("electra", 13_548_800),
])  # fmt: skip
def test_architectures_of_the_papers(command, recipe, parameters):
    """BERT base and large, RoBERTa, ALBERT, ELECTRA, DistilBERT by the paper."""
    plan = json.loads(command("plan", recipe, "--seconds", "0", "--set", "vocab.size=30522", "--json"))
    assert sum(plan["parameters"][part] for part in ("token embedding", "encoder", "pooler")) == parameters


@pytest.mark.parametrize("family", [*FAMILIES, "electra"])
def test_equal_to_transformers_with_copied_weights(tiny_tokenizer, tmp_path, family):
    """Recipes, tests."""
    head = DetectionModel if family == "electra" else PretrainingModel
    config = small(tiny_tokenizer, "bert" if family == "electra" else family)
    assert compared(tmp_path, head(config, generator=torch.Generator().manual_seed(1)), tiny_tokenizer)


@pytest.mark.parametrize(
    "model_type", ["longformer", *map(slow, ("convbert", "flaubert", "funnel", "xlm", "xlm-roberta"))]
)
def test_encoders_of_transformers_learn_our_tasks(here, command, foreign, model_type):
    """XLM, XLM-R, FlauBERT, ConvBERT, Funnel, Longformer: import, finetune."""
    command("import", foreign(model_type), "theirs")
    for kind, header, rows in (moods(), spans()):
        write_table(here / "mine.csv", header, rows)
        command("finetune", "theirs", "--train", "mine.csv", "--kind", kind, "--output", kind, *QUICK)
        assert scores_of(here / kind)["pretrained"]


@pytest.mark.slow
def test_several_processes_share_the_work(whole, tmp_path, free_port):
    """torchrun for training, Ray for the corpus."""
    made = whole.copy(tmp_path, STAGES[:4])
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(free_port)]
    subprocess.run([*torchrun, *made.command("pretrain")[1:]], check=True)
    assert json.loads((made.folder / "pretrain" / "stage.json").read_text())["numerics"]["processes"] == 2
    other = Whole(whole.recipe, tmp_path / "ray")
    other.run_outside("run", "--to", "analyze", "--runner", "ray", "--workers", "2")
    assert other.record("analyze")["digest"] == whole.record("analyze")["digest"]


def test_nsmc_is_scored_next_to_baselines(whole):
    """Fine-tuned, honestly chosen."""
    scores = json.loads((whole.folder / "nsmc" / "scores.json").read_text(encoding="utf-8"))
    assert {"pretrained", "scratch", "majority", "tfidf"} <= {row["name"] for row in scores["rows"]}
    assert all("validation_accuracy" in row for row in scores["rows"] if row["name"] == "pretrained")
    assert scores["counts"]["test"] == 100


def test_ones_own_labelled_file(here, command, encoder):
    """finetune, evaluate, predict."""
    write_table(here / "mine.csv", *moods(("문장", "감정"))[1:])
    command("finetune", encoder, "--train", "mine.csv", "--text", "문장", "--label", "감정", "--output", "mood", *QUICK)
    scored = json.loads(command("evaluate", "mood", "mine.csv", "--json"))
    assert {"score", "low", "high"} <= scored["accuracy"].keys()
    predicted = [json.loads(line) for line in command("predict", "mood", "mine.csv").splitlines()]
    assert [line["text"] for line in predicted] == TEXTS
    assert {line["label"] for line in predicted} <= set(MOODS)


def test_korquad_from_training_to_a_rehearsed_submission(here, whole, data, command):
    """Exact match and F1, n-best, misses by cause, predictions in the official form: korquad, submit, score."""
    folder = whole.folder / "korquad"
    command("submit", folder, data / "valid.json", "answers.json")
    scored = json.loads(command("score", data / "valid.json", "answers.json"))
    assert scored["f1"] == pytest.approx(100 * scores_of(folder)["pretrained"]["f1"])
    command("look", folder, "한글은 언제 만들었나?", "세종은 1443년에 한글을 만들었다.", "--html", "look.html")
    page = (here / "look.html").read_text(encoding="utf-8")
    assert page.partition('"answers":[')[2].partition("]")[0].count('"score"') > 1
    assert "Errors by cause" in (folder / "report.html").read_text(encoding="utf-8")
    checked = json.loads(command("submit", "--check", folder, "--dataset", data / "valid.json", "--json"))
    assert checked["scores"]["f1"] == pytest.approx(scored["f1"])


ASKED = [["세종은 1443년에 한글을 만들었다.", "한글은 언제 만들었나?", "1443년"], ["산은 높다.", "강은 어떤가?", ""]]
NEAR = [[text, TEXTS[-place], TEXTS[place - 2]] for place, text in enumerate(TEXTS)]
PAIRS = [[*row[:2], mood] for row, mood in zip(NEAR, MOODS, strict=True)]
READS = ["--set", "stride=8", "--set", "max_query_pieces=12"]
SEVERAL = [[text, json.dumps(["영화", mood])] for text, mood in zip(TEXTS, MOODS, strict=True)]
KINDS = {
    "one label": (*moods(), []),
    "several labels": ("classification", ["text", "labels"], SEVERAL, ["--several"]),
    "pairs": ("classification", ["sentence1", "sentence2", "label"], PAIRS, []),
    "numbers": (*numbers(), []),
    "tagging": (*spans(), []),
    "choices": (*choices(), []),
    "reading": ("question-answering", ["context", "question", "answer"], ASKED[:1] * 5, READS),
    "reading without answers": ("question-answering", ["context", "question", "answer"], ASKED * 5, READS),
    "sentence vectors": ("embedding", ["sentence1", "sentence2"], [row[:2] for row in NEAR], []),
    "reranking": ("rerank", ["query", "passage", "negative"], NEAR[2:5], []),
}


@pytest.mark.parametrize("name", KINDS)
def test_kinds_of_tasks(here, command, encoder, name):
    """Classification, numbers, tagging, choices, reading, sentence pairs and vectors, reranking: finetune --kind."""
    kind, header, rows, options = KINDS[name]
    write_table(here / "mine.csv", header, rows)
    task = ["--kind", kind, *options, "--train", "mine.csv", "--valid", "mine.csv", "--test", "mine.csv"]
    command("finetune", encoder, *task, "--output", "model", *QUICK)
    assert len(json_lines(here / "model" / "predictions.jsonl")) == len(rows)
    assert {"pretrained"} < scores_of(here / "model").keys()


def test_known_sets(command):
    """20 known sets."""
    assert len([line for line in command("tasks").splitlines() if line[0] != " "]) >= 20


@pytest.mark.parametrize("features", ["last", "sum of last four", "concat of last four", "weighted sum of all, mlp"])
def test_features_from_chosen_layers(here, command, features):
    """A linear head, one hidden layer: --features."""
    write_table(here / "mine.csv", *moods()[1:])
    learn = ["finetune", "korbert-mini", "--train", "mine.csv", "--output", "mood", "--features", features, *QUICK]
    command(*learn)
    ours, theirs = (korbert.load(one).network.encoder.state_dict() for one in (here / "mood", "korbert-mini"))
    assert all(torch.equal(weight, theirs[name]) for name, weight in ours.items())


def test_every_layer_is_probed(here, command, encoder):
    """layers."""
    write_table(here / "mine.csv", *moods()[1:])
    probe = ["--train", "mine.csv", "--test", "mine.csv", "--output", "layers", "--seeds", "1"]
    command("layers", encoder, *probe, *QUICK)
    assert {"0", "1"} <= {row["name"] for row in json.loads((here / "layers" / "layers.json").read_text())["rows"]}


def test_rates_seeds_intervals_and_paired_comparisons(here, command, encoder):
    """finetune, compare."""
    write_table(here / "mine.csv", *moods()[1:])
    for name, rates in (("one", ["--learning-rate", "1e-3", "--learning-rate", "1e-4"]), ("two", [])):
        task = ["--train", "mine.csv", "--test", "mine.csv", "--output", name, "--seeds", "2"]
        command("finetune", encoder, *task, *rates, *QUICK)
    rows = json.loads((here / "one" / "scores.json").read_text(encoding="utf-8"))["rows"]
    assert [row["seed"] for row in rows if row["name"] == "pretrained"] == [0, 1]
    (compared,) = json.loads(command("compare", "one", "two", "--json"))["comparisons"]
    assert {"p_value", "difference"} <= compared.keys()


def test_sentence_vectors_and_their_cosines(here, command):
    """embed, and cosines."""
    (here / "texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    command("embed", "korbert-mini-embed", "texts.txt", "--output", "vectors.npy")
    vectors, model = np.load(here / "vectors.npy"), korbert.load("korbert-mini-embed")
    np.testing.assert_allclose(vectors, model.embed(TEXTS), atol=1e-5)
    assert model.similarity("대출을 받고 싶다", "돈을 빌리고 싶다") > model.similarity("대출을 받고 싶다", "눈이 온다")


def test_a_service_for_vectors():
    """serve."""
    with started("korbert-mini-embed") as service:
        (answer,) = service.ask("/v1/embeddings", {"model": "korbert-mini-embed", "input": TEXTS[0]}).json["data"]
    cosine = np.dot(answer["embedding"], korbert.load("korbert-mini-embed").embed(TEXTS[0], normalize=True))
    assert cosine / np.linalg.norm(answer["embedding"]) == pytest.approx(1, abs=1e-3)


def test_search_by_words_vectors_and_both_and_its_evaluation(here, command):
    """index, similar, search-eval."""
    write_lines(here / "texts.jsonl", [{"id": str(number), "text": text} for number, text in enumerate(TEXTS)])
    write_lines(here / "asked.jsonl", [{"query": "지루한 이야기", "relevant": "3"}])
    command("index", "korbert-mini-embed", "texts.jsonl", "--output", "texts.index")
    for way in ("words", "vectors", "both"):
        ask = ["similar", "korbert-mini-embed", "texts.index", "지루한 이야기", "--way", way, "--json"]
        assert json.loads(command(*ask))["hits"][0]["id"] == "3"
    measured = json.loads(command("search-eval", "korbert-mini-embed", "asked.jsonl", "texts.index", "--json"))
    assert {way: figures["recall@1"]["value"] for way, figures in measured["ways"].items()} == dict.fromkeys(
        ("words", "vectors", "both"), 1.0
    )


def test_attention_as_a_page(here, command):
    """Over morphemes, heads and neurons, layer by layer: look."""
    command("look", "korbert-mini", "나는 너를 사랑했다", "--html", "look.html")
    page = (here / "look.html").read_text(encoding="utf-8")
    assert [name for name in ('"weights"', '"neurons"', '"morpheme"', '"eojeol"') if name not in page] == []


def test_gaps_are_filled(command):
    """fill."""
    (gap,) = json.loads(command("fill", "korbert-mini", "그는 [MASK]에서 태어났다.", "--json"))["gaps"]
    assert "미국" in [guess["piece"] for guess in gap]


def test_questions_are_made_from_text_without_labels(here, command, sample):
    """questions."""
    command("questions", sample / "wiki.jsonl", "--count", "20", "--output", "made.json", "--workers", "1")
    made = korbert.tasks.korquad.read(here / "made.json")
    assert made
    assert all(row["context"][slice(*row["answers"][0].span)] == row["answers"][0].text for row in made)


@pytest.mark.usefixtures("remote_code_aside")
def test_out_to_transformers_and_in_from_it(here, command, encoder):
    """export, import."""
    command("export", encoder, "theirs", "--accept-kiwi")
    pipe = transformers.pipeline("fill-mask", str(here / "theirs"), trust_remote_code=True, device="cpu")
    assert len(pipe("오늘 [MASK] 좋다")) == 5


def test_out_to_onnx(here, command, encoder):
    """export --onnx."""
    command("export", encoder, "fast", "--onnx")
    np.testing.assert_allclose(korbert.load(here / "fast").embed(TEXTS), korbert.load(encoder).embed(TEXTS), atol=1e-4)


@pytest.mark.parametrize("name", [
    "korbert-mini", "korbert-mini-embed", "korbert-mini-korquad", "korbert-mini-ner", "korbert-mini-nsmc",
])  # fmt: skip
def test_models_that_come_with_it_and_how_each_was_made(name):
    """Box, model card."""
    assert korbert.load(name).embed("글").shape == (256,)
    card = (Path(korbert.__file__).parent / "box" / "README.md").read_text(encoding="utf-8")
    assert f"| `{name}` |" in card.partition("\n## ")[0]
    assert name in card.partition("\n## ")[2]


# The tests of slots, of the BiLSTM head, and of one word in many sentences belong here, in this order.
