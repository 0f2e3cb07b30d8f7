"""What korbert is founded on: each row is a promise to users, kept by the command or call that they would type.

A row may move, get another name, or become smaller; it is not cut. `pytest -m ""` runs the slow ones, too. The ids of
tests, or their names, say which row they hold.
"""

import json
import re
import shlex
import signal
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
import transformers

import korbert
from korbert.modeling.models import DetectionModel, PretrainingModel
from tests.korbert.huggingface.exported import FAMILIES, compared, small
from tests.pipelines.service.started import started
from tests.pipelines.small_tasks import MOODS, TEXTS, choices, moods, numbers, scores_of, spans, write_table
from tests.running import run_here, wait_until
from tests.whole.conftest import STAGES, Whole

slow = partial(pytest.param, marks=pytest.mark.slow)

ASKED = [["세종은 1443년에 한글을 만들었다.", "한글은 언제 만들었나?", "1443년"], ["산은 높다.", "강은 어떤가?", ""]]
NEAR = [[text, TEXTS[-place], TEXTS[place - 2]] for place, text in enumerate(TEXTS)]
RAW = [  # a near-duplicate, a text of an evaluation set, a short one, personal data
    "어제 비가 와서 학교 앞 도서관에 들러 오래된 책을 세 권 빌려 왔고 저녁에는 동생과 함께 읽었다.",
    "어제 비가 와서 학교 앞 도서관에 들러 오래된 책을 세 권 빌려 왔고 저녁에는 동생과 함께 읽었다. 끝.",
    "이 문장은 평가에만 쓰이는 문장이라서 학습에는 절대로 들어가면 안 되는 글이다.",
    "네.",
    "문의는 a@b.kr 또는 010-1234-5678로 언제든지 주시면 됩니다.",
]
FILLED = [
    ("서울 가는 표", {"가는 곳": {"value": "서울", "start": 0}, "좌석": None}),
    ("아무 데나 앉아 부산까지", {"가는 곳": {"value": "부산", "start": 9}, "좌석": "any"}),
    ("어디든 창가로", {"가는 곳": "any", "좌석": {"value": "창가", "start": 4}}),
]
TABLES = {  # name of a file -> its header and rows
    "moods": moods()[1:],
    "mine": moods(("문장", "감정"))[1:],
    "several": (
        ["text", "labels"],
        [[text, json.dumps([mood, "글"])] for text, mood in zip(TEXTS, MOODS, strict=True)],
    ),
    "pairs": (["text", "pair", "label"], [[*row[:2], mood] for row, mood in zip(NEAR, MOODS, strict=True)]),
    "numbers": numbers()[1:],
    "spans": spans()[1:],
    "choices": choices()[1:],
    "answered": (["context", "question", "answer"], ASKED[:1] * 5),
    "unanswered": (["context", "question", "answer"], ASKED * 5),
    "slots": (["text", "slots"], [[text, json.dumps(slots)] for text, slots in FILLED * 3]),
    "room": (["text", "descriptions"], [["경주에서 묵을 방", json.dumps({"숙소": "묵을 곳이 있는 지역"})]]),
    "near": (["sentence1", "sentence2"], [row[:2] for row in NEAR]),
    "ranked": (["query", "passage", "negative"], NEAR[2:5]),
    "texts": (["id", "text"], [[str(place), text] for place, text in enumerate(TEXTS)]),
    "queries": (["query", "relevant"], [["지루한 이야기", "3"]]),
    "raw": (["id", "text"], list(enumerate(RAW))),
    "tested": (["text"], [[RAW[2]]]),
}
RECIPE = """\
clean.sources = [{ name = "mine", path = "raw.csv" }]
clean.evaluation = [{ name = "test", path = "tested.csv" }]
tasks.mood = { kind = "classification", init = "korbert-mini", train = "moods.csv", features = "last", epochs = 1 }
"""
QUICK = "--epochs 2 --workers 1 --set threads=1 --set max_length=48 --set batch_size=5"
WINDOWS = "--kind question-answering --set stride=8 --set max_query_pieces=12"
PLAN = "--seconds 0 --set vocab.size=30522"


@pytest.fixture
def here(tmp_path, sample, monkeypatch):
    """The working folder, with a file of each table, a recipe and eight articles."""
    monkeypatch.chdir(tmp_path)
    for name, rows in TABLES.items():
        write_table(Path(f"{name}.csv"), *rows)
    Path("mine.toml").write_text(RECIPE, encoding="utf-8")
    with (sample / "wiki.jsonl").open(encoding="utf-8") as articles:
        Path("wiki.jsonl").write_text("".join(islice(articles, 8)), encoding="utf-8")
    return tmp_path


@pytest.fixture
def command(here, whole, data, foreign):
    """(command line) -> what it prints. PRETRAINED: a small model; NSMC, KORQUAD: it after these stages."""

    def printed(line):
        paths = {"PRETRAINED": whole.folder / "pretrain", "DATA": data, "ROOT": whole.root}
        paths |= {name: whole.folder / name.lower() for name in ("NSMC", "KORQUAD")}
        line = re.sub("|".join(paths), lambda found: str(paths[found[0]]), line)
        line = re.sub(r"THEIR-([\w-]+)", lambda found: str(foreign(found[1])), line)
        done = run_here(shlex.split(line), here, seconds=300)
        assert done.code == 0, done.err
        return done.out + done.err

    return printed


def row(name, expected, *lines, **more):
    return pytest.param(lines, expected, id=name, **more)


def kind(name, file, metric, options=""):
    """A kind of task: learned from a file, and scored."""
    learn = (
        f"finetune PRETRAINED --train {file}.csv --valid {file}.csv --test {file}.csv --output out {QUICK} {options}"
    )
    return row(f"kinds of tasks: {name}", f'"{metric}": {{\\s+"score"', learn, f"evaluate out {file}.csv --json")


def foreign_encoder(name, **more):
    learn = f"finetune theirs --train moods.csv --test moods.csv --output out {QUICK}"
    return row(f"encoders of transformers: {name}", "accuracy", f"import THEIR-{name} theirs", learn, **more)


def of_paper(name, count, **more):
    return row(f"by the paper: {name}", f"encoder and pooler +{count}", f"plan {name} {PLAN}", **more)


SLOW = {"marks": pytest.mark.slow}
# What a user types, and what the last line of it prints, as a regular expression.
ROWS = [
    row("stages: status", r"(fresh[\s\S]*){7}", "status DATA/tiny.toml --root ROOT"),
    row("cleaning: preview", "dropped: too short", "clean mine.toml --preview 9"),
    of_paper("base", "109,482,240"), of_paper("large", "335,141,888", **SLOW), of_paper("albert", "11,750,400", **SLOW),
    of_paper("roberta", "109,482,240", **SLOW), of_paper("electra", "13,548,800", **SLOW),
    foreign_encoder("longformer"),
    *(foreign_encoder(name, **SLOW) for name in ("convbert", "flaubert", "funnel", "xlm", "xlm-roberta")),
    row("tasks of a recipe", "pretrained", "tasks mine.toml mood --workers 1"),
    row("nsmc: evaluated", "accuracy .* 100 rows", "evaluate NSMC DATA/ratings_test.txt"),
    row("one's own labelled file", '"label": "(긍정|부정)"',
        f"finetune PRETRAINED --train mine.csv --text 문장 --label 감정 --output mood {QUICK}",
        "evaluate mood mine.csv", "predict mood mine.csv"),
    row("korquad: n-best", "look.html", "look KORQUAD '어디로 갔나?' '학교로 갔다.' --html look.html"),
    row("korquad: a rehearsed submission", '"exact_match"', "submit --check KORQUAD --dataset DATA/valid.json --json"),
    kind("one label", "moods", "accuracy"), kind("several labels", "several", "micro_f1", "--several"),
    kind("pairs", "pairs", "accuracy"), kind("numbers", "numbers", "pearson"), kind("tagging", "spans", "entity_f1"),
    kind("choices", "choices", "accuracy"), kind("reading", "answered", "exact_match", WINDOWS),
    kind("reading without answers", "unanswered", "no_answer_accuracy", WINDOWS),
    kind("sentence vectors", "near", "mrr", "--kind embedding"), kind("reranking", "ranked", "mrr", "--kind rerank"),
    row("20 known sets", r"(\n\S[^\n]*\n    [\s\S]*){19}", "tasks"),
    row("features: every layer probed", "concat of last",
        f"layers korbert-mini --train moods.csv --test moods.csv --output out --seeds 1 {QUICK}"),
    row("rates, seeds, paired comparisons", '"p_value"',
        *(f"finetune PRETRAINED --train moods.csv --test moods.csv --output {name} --seeds 2 --learning-rate 1e-3 "
          f"--learning-rate {rate} {QUICK}" for name, rate in (("one", "1e-4"), ("two", "1e-5"))),
        "compare one two --json"),
    *(row(f"search: {way}", "1 +[0-9.]+ .*이야기가 지루했다", "index korbert-mini-embed texts.csv --output texts.index",
          f"similar korbert-mini-embed texts.index '지루한 이야기' --way {way} --top 1")
      for way in ("words", "vectors", "both")),
    row("search: evaluated", r"recall@1 +100.0 .* 100.0 .* 100.0",
        "search-eval korbert-mini-embed queries.csv texts.csv"),
    row("attention", "look.html", "look korbert-mini '나는 너를 사랑했다' --html look.html"),
    row("gaps filled", "미국", "fill korbert-mini '그는 [MASK]에서 태어났다.'"),
    row("questions", "5 questions in made.json", "questions wiki.jsonl --count 5 --output made.json --workers 1"),
    kind("slots", "slots", "unseen_slot_f1", WINDOWS.replace("question-answering", "slots")),
    row("kinds of tasks: a slot that training did not have", r'"slots": {"숙소": (null|"any"|{"value")',
        f"finetune PRETRAINED --train slots.csv --output out {QUICK} --set stride=8 --set max_query_pieces=12",
        "predict out room.csv"),
    # A BiLSTM on features and one word in many sentences have their rows here.
]  # fmt: skip


@pytest.mark.parametrize(("lines", "expected"), ROWS)
def test_commands(lines, expected, command):
    printed = [command(line) for line in lines]
    assert re.search(expected, printed[-1])


@pytest.mark.parametrize("last", ["vocab", slow("korquad")])
def test_stages_resume_and_give_the_same_bytes(whole, tmp_path, last):
    made = whole.copy(tmp_path, ["clean"])
    with made.start("analyze") as running:
        while not any((made.folder / "analyze.partial").glob("work/*/part-*.json")):
            assert running.poll() is None
        running.send_signal(signal.SIGKILL)
    for stage in STAGES[1 : STAGES.index(last) + 1]:
        made.run(stage)
        assert made.record(stage)["digest"] == whole.record(stage)["digest"]


def test_cleaning_says_what_it_dropped_and_why(here, command):
    """Near-duplicates, evaluation texts, personal data."""
    command("clean mine.toml --workers 1")
    folder = here / "artifacts" / "mine" / "clean"
    dropped = {row["id"]: row["reason"] for row in pq.read_table(folder / "dropped").to_pylist()}
    assert dropped == {"mine:0": "near_duplicate", "mine:2": "contaminated", "mine:3": "too_short"}
    kept = [row["text"] for row in pq.read_table(folder / "documents").to_pylist()]
    assert kept[-1] == "문의는 <이메일> 또는 <전화번호>로 언제든지 주시면 됩니다."


@pytest.mark.parametrize("text", ["나는 너를 사랑했다.", "Ελλάδα 漢字 👍🏻", "\u1100\u1161\u11a8 뷁쉛  \u200b꿹"])
def test_exact_spans_into_any_text_and_no_unknown_piece(text):
    """By a vocabulary of 100,000 and more."""
    tokenizer = korbert.Tokenizer.load("korbert-mini")
    assert tokenizer.vocab_size >= 100_000
    pieces = tokenizer.encode_pieces(text)
    assert tokenizer.unk_id not in pieces.ids
    covered = {place for span in pieces.spans for place in range(*span)}
    assert covered == {place for place, char in enumerate(text) if char.isprintable() and not char.isspace()}


@pytest.mark.parametrize("objectives", [["mlm", "nsp"], slow(["rtd"])])
def test_pretraining_objectives(whole, tmp_path, objectives):
    """The rows of the others, sop, spans and distill, stand in tests/whole/test_objectives.py."""
    changes = {"[pretrain]\n": f"[pretrain]\nobjectives = {json.dumps(objectives)}\n"}
    made = whole.changed(tmp_path, changes.items(), STAGES[:4])
    made.run("pretrain")
    scores = json.loads((made.folder / "pretrain" / "scores.json").read_text(encoding="utf-8"))
    assert {f"{name}_loss" for name in objectives} <= scores.keys()


@pytest.mark.parametrize("family", [*FAMILIES, "electra"])
def test_equal_to_transformers_with_copied_weights(tiny_tokenizer, tmp_path, family):
    head = DetectionModel if family == "electra" else PretrainingModel
    config = small(tiny_tokenizer, "bert" if family == "electra" else family)
    assert compared(tmp_path, head(config, generator=torch.Generator().manual_seed(1)), tiny_tokenizer)


@pytest.mark.slow
def test_several_processes(whole, tmp_path):
    """Ray for the corpus. What torchrun trains, tests/whole/test_many_processes.py compares with one process."""
    other = Whole(whole.recipe, tmp_path / "ray")
    other.run_outside("run", "--to", "analyze", "--runner", "ray", "--workers", "2")
    assert other.record("analyze")["digest"] == whole.record("analyze")["digest"]


def test_nsmc_next_to_baselines(whole):
    """And to the same encoder from scratch."""
    assert {"pretrained", "majority", "tfidf"} <= scores_of(whole.folder / "nsmc").keys()


def test_korquad_by_the_official_figures(whole, command):
    command("submit KORQUAD DATA/valid.json answers.json")
    scored = json.loads(command("score DATA/valid.json answers.json"))
    assert scored["f1"] == pytest.approx(100 * scores_of(whole.folder / "korquad")["pretrained"]["f1"])
    assert "Errors by cause" in (whole.folder / "korquad" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("features", [
    slow("last"), slow("sum of last four"), "concat of last four", "weighted sum of all, mlp",
])  # fmt: skip
def test_features_from_chosen_layers(here, command, features):
    """A linear head, or one hidden layer, on an encoder that stays as it was."""
    command(f"finetune korbert-mini --train moods.csv --output out --features '{features}' {QUICK}")
    ours, theirs = (korbert.load(model).network.encoder.state_dict() for model in (here / "out", "korbert-mini"))
    assert all(torch.equal(weight, theirs[name]) for name, weight in ours.items())


def test_sentence_vectors_and_a_service_for_them(here, command):
    command("embed korbert-mini-embed texts.csv --output vectors.npy")
    model = korbert.load("korbert-mini-embed")
    assert model.similarity("대출을 받고 싶다", "돈을 빌리고 싶다") > model.similarity("대출을 받고 싶다", "눈이 온다")
    with started() as service:  # all models of the box
        wait_until(lambda: service.ask("/ready").code != 503)
        (answer,) = service.ask("/v1/embeddings", {"model": "korbert-mini-embed", "input": TEXTS[0]}).json["data"]
    cosine = np.corrcoef(answer["embedding"], np.load(here / "vectors.npy")[0])[0, 1]
    assert cosine == pytest.approx(1, abs=1e-3)


@pytest.mark.usefixtures("remote_code_aside")
def test_out_to_transformers_and_onnx(here, whole, command):
    command("export PRETRAINED theirs")
    assert (
        len(
            transformers.pipeline("fill-mask", str(here / "theirs"), device="cpu", trust_remote_code=True)(
                "오늘 [MASK] 좋다"
            )
        )
        == 5
    )
    command("export PRETRAINED fast --onnx")
    ours = korbert.load(whole.folder / "pretrain").embed(TEXTS)
    np.testing.assert_allclose(korbert.load(here / "fast").embed(TEXTS), ours, atol=1e-4)


@pytest.mark.parametrize("name", ["", "-embed", "-korquad", "-ner", "-nsmc"])
def test_models_that_come_with_it_and_how_each_was_made(name):
    assert korbert.load(f"korbert-mini{name}").embed("글").shape == (256,)
    names, made = (Path(korbert.__file__).parent / "box" / "README.md").read_text("utf-8").split("\n## ", 1)
    assert f"| `korbert-mini{name}` |" in names
    assert f"korbert-mini{name}" in made
