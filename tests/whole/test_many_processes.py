"""Real stages under torchrun, two processes on this machine: the same losses as one, and what is left when one dies."""

import socket
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import korbert
from tests.korbert.tiny import json_lines as lines
from tests.pipelines.test_rungs import ROWS
from tests.whole.conftest import Whole, environment

FAULTY = Path(__file__).with_name("faulty_rank.py")
BEFORE = ("clean", "analyze", "vocab", "shard")
SECONDS = 120  # within which a run ends whose rank died; without care it would be half an hour


@dataclass(frozen=True)
class Many(Whole):
    """The same as Whole under torchrun. fault: of faulty_rank.py, and the rank that has it."""

    processes: int = 2
    port: int = 0
    fault: tuple[str, str] | None = None

    def command(self, name, *arguments):
        return self.torchrun(*super().command(name, *arguments)[3:])

    def run(self, name, *arguments, code=0):
        return self.run_outside(name, *arguments, code=code)

    def torchrun(self, *arguments):
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(self.processes)]
        torchrun += ["--master-addr", "127.0.0.1", "--master-port", str(self.port)]
        ours = [str(FAULTY), *self.fault] if self.fault else ["-m", "korbert"]
        return [*torchrun, *ours, *arguments]

    def ended(self, *arguments, **variables):
        """The command, which fails in time. One line of all ranks says why."""
        command = self.command("pretrain", *arguments)
        variables = {**environment(), **variables}
        done = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=SECONDS)
        assert done.returncode != 0, done.stderr
        # torchrun shows where it noticed, once; the ranks show no trace.
        assert done.stderr.count("Traceback (most recent call last)") <= 1, done.stderr
        return done


def said(done):
    return [line for line in done.stderr.splitlines() if line.startswith("korbert: ")]


@pytest.fixture
def many(whole, tmp_path, free_port):
    made = whole.copy(tmp_path / "artifacts", BEFORE)
    return Many(made.recipe, made.root, port=free_port)


@pytest.fixture(scope="session")
def straight(whole, tmp_path_factory):
    """pretrain by two processes that nothing has ended. The second one writes nothing."""
    made = whole.copy(tmp_path_factory.mktemp("straight") / "artifacts", BEFORE)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    Many(made.recipe, made.root, port=port, fault=("writes", "1")).run("pretrain")
    return made


def same_figures(one, two):
    first, second = lines(one), lines(two)
    assert len(first) == len(second) > 1
    for a, b in zip(first, second, strict=True):
        assert a.keys() == b.keys()
        for name, value in a.items():
            if name == "padding":  # which rows attention takes together depends on who has them
                continue
            assert b[name] == (pytest.approx(value, rel=1e-5) if isinstance(value, float) else value), (name, a, b)


def same_metrics(one, two, stages):
    for stage in stages:
        found = [*(one.folder / stage).glob("metrics.jsonl"), *(one.folder / stage / "metrics").glob("*.jsonl")]
        assert found
        for path in found:
            same_figures(path, two.folder / path.relative_to(one.folder))


@pytest.mark.slow
def test_two_processes_have_the_losses_of_one(whole, straight):
    same_metrics(whole, straight, ["pretrain"])
    made, alone = straight.record("pretrain"), whole.record("pretrain")
    assert (made["numerics"]["processes"], alone["numerics"]["processes"]) == (2, 1)
    assert {**made, "numerics": {}, "files": {}, "digest": ""} == {**alone, "numerics": {}, "files": {}, "digest": ""}
    assert made["files"].keys() == alone["files"].keys()
    shown = straight.run("status").out
    assert "pretrain fresh" in shown
    assert "note: trained by 2 processes: another number gives other bits" in shown
    assert "processes" not in whole.run("status").out
    assert sorted(path.name for path in straight.folder.glob("pretrain*")) == ["pretrain", "pretrain.lock"]


@pytest.mark.slow
@pytest.mark.parametrize("objectives", ['["rtd"]', '["mlm"]'])
def test_objectives_that_leave_heads_unused(many, tmp_path, objectives):
    """The pieces that a generator draws depend on the last bits of its scores, so losses drift apart a little."""
    alone = Whole(many.recipe, tmp_path / "alone")
    many.copy(alone.root, BEFORE)
    found = []
    for run in (alone, many):
        run.run("pretrain", "--set", f"pretrain.objectives={objectives}")
        found.append(lines(run.folder / "pretrain" / "metrics.jsonl"))
    for one, two in zip(*found, strict=True):
        for name in (name for name in one if name.endswith("loss")):
            assert two[name] == pytest.approx(one[name], rel=1e-5 if one["step"] == 1 else 0.01), (name, one, two)


@pytest.mark.slow
def test_tasks_have_the_losses_of_one(whole, many):
    """By one command, of which some stages train and others are fresh."""
    done = replace(many, fault=("writes", "1")).run("run")
    assert done.err.count("nsmc: done") == 1
    same_metrics(whole, many, ["pretrain", "nsmc", "korquad"])
    for name in ("nsmc", "korquad"):
        made, alone = many.record(name), whole.record(name)
        assert made["counts"] == pytest.approx(alone["counts"], rel=1e-5)
        assert made["files"].keys() == alone["files"].keys()
    again = many.run("run")
    assert again.err.count("fresh, skipped") == 7
    assert again.out.count("pages: ") == 1


@pytest.mark.slow
def test_a_teacher_is_asked_by_both(many, tmp_path):
    """What it says of each row is what it says to one process, and so are the losses."""
    rows = [(f"{text} {number}", label) for number in range(8) for text, label in ROWS]
    teacher = korbert.finetune("korbert-mini", ROWS, quick=True, baselines=False, output=tmp_path / "teacher")
    table = "".join(f"{text},{label}\n" for text, label in rows)
    (tmp_path / "t.csv").write_text(f"text,label\n{table}", encoding="utf-8")
    (tmp_path / "more.txt").write_text("정말 지루하다\n음악이 참 좋다\n배우가 훌륭하다\n", encoding="utf-8")
    asked = ["finetune", "korbert-mini", "--train", "t.csv", "--teacher", str(teacher.folder), "--only", "encoder"]
    asked += ["--unlabelled", "more.txt", "--epochs", "1", "--set", "baselines=false", "--set", "precision=fp32"]
    for command in (
        many.torchrun(*asked, "--output", "two"),
        [sys.executable, "-m", "korbert", *asked, "--output", "one"],
    ):
        subprocess.run(command, check=True, cwd=tmp_path, env=environment(), timeout=3 * SECONDS)
    one, two = (next((tmp_path / name / "metrics").glob("*.jsonl")) for name in ("one", "two"))
    same_figures(one, two)


@pytest.mark.slow
def test_a_rank_is_killed_and_one_process_goes_on(straight, many):
    done = replace(many, fault=("step-23", "1")).ended()
    assert len(said(done)) <= 1  # torchrun may end rank 0 before it has spoken
    partial = many.folder / "pretrain.partial"
    assert sorted(path.name for path in (partial / "checkpoints").iterdir()) == ["step-00000015", "step-00000020"]
    alone = Whole(many.recipe, many.root)
    alone.run("pretrain")
    same_metrics(straight, alone, ["pretrain"])
    assert "trained by 2, then by 1 processes" in alone.run("status").out
    starts = [line["step"] for line in lines(many.folder / "pretrain" / "timing.jsonl") if line["kind"] == "start"]
    assert starts == [0, 20]


@pytest.mark.slow
def test_killed_again_and_again(straight, many):
    """One rank and all, twice in a row, in a checkpoint's writing, behind the last step: the bits are the same."""
    for fault in (("step-13", "1"), ("step-13", "0"), ("step-39", "all"), ("checkpoint", "0"), ("end", "0")):
        done = replace(many, fault=fault).ended()
        assert len(said(done)) <= 1
        assert not (many.folder / "pretrain").exists()
    many.run("pretrain")
    assert many.record("pretrain")["digest"] == straight.record("pretrain")["digest"]
    starts = [line["step"] for line in lines(many.folder / "pretrain" / "timing.jsonl") if line["kind"] == "start"]
    assert starts == [0, 10, 10, 35, 40, 60]


@pytest.mark.slow
def test_a_signal_to_one_rank_stops_all_at_one_step(straight, many):
    done = replace(many, fault=("stop-23", "1")).ended()
    assert said(done) == ["korbert: ended by SIGTERM: pretrain: step 24 is saved; the same command resumes there"]
    many.run("pretrain")
    assert many.record("pretrain")["digest"] == straight.record("pretrain")["digest"]


@pytest.mark.slow
def test_an_error_of_one_rank_is_told_once(many):
    done = replace(many, fault=("error-3", "1")).ended()
    assert said(done) == [
        "korbert: of 2 processes, rank 1 failed:",
        "korbert: /far/away: No space left on device: make room, then run the same command: it resumes",
    ]


@pytest.mark.slow
def test_what_is_refused_is_said_by_rank_0(many):
    (said_once,) = said(many.ended("--set", "pretrain.phases.0.batch_size=1"))
    assert said_once == (
        "korbert: pretrain.phases.0.batch_size 1: a batch has fewer rows than the 2 processes sharing them: "
        "start at most 1, as with `torchrun --nproc_per_node 1`, or raise pretrain.phases.0.batch_size"
    )


@pytest.mark.slow
def test_a_rank_that_never_comes_is_named(many):
    done = replace(many, fault=("absent", "1")).ended(KORBERT_WAIT_FOR_RANKS="1")
    assert said(done)[0].startswith("korbert: 1 of 2 processes did not come within 1 s (rank 1): look at how they")
    assert len(said(done)) == 1
    assert not (many.folder / "pretrain.partial").exists()
