"""What the command says, and with which code it leaves, when something goes wrong that no stage foresaw."""

import errno
import io
import json
import logging
import os
import signal
from pathlib import Path
from unittest.mock import Mock

import pytest
from click.shell_completion import ShellComplete

from korbert.modeling import ClassificationModel, save_model
from korbert.pipelines import cli
from korbert.pipelines.artifacts.stage import Runtime
from korbert.pipelines.commands import options

FULL = "artifacts/demo/clean.partial/x: full: make room, then run the same command: it resumes"


@pytest.mark.parametrize(("error", "said"), [
    *((OSError(number, "full", "artifacts/demo/clean.partial/x"), FULL)
      for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)),
    (ZeroDivisionError("division\nby zero"),
     "ZeroDivisionError: division by zero: the same command with --debug shows where"),
    # click takes both an end of file and Ctrl-C for an abort
    (EOFError("cut short"), "EOFError: cut short: the same command with --debug shows where"),
])  # fmt: skip
def test_an_unforeseen_error_is_one_line_with_a_way_out(error, said, monkeypatch, command):
    monkeypatch.setattr("korbert.pipelines.runs.pipeline.load", Mock(side_effect=error))
    assert command("clean", "demo", code=1).err.splitlines()[-1] == f"korbert: {said}"
    if "resumes" in said:
        assert "it starts over" in command("status", "demo", code=1).err
    if isinstance(error, ZeroDivisionError):
        with pytest.raises(ZeroDivisionError):
            cli.run_command(["status", "demo", "--debug"])


@pytest.mark.parametrize(
    ("number", "code", "said"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "ended by SIGTERM")]
)
@pytest.mark.parametrize("turned", [False, True], ids=["as it is", "turned into an error by a library"])
@pytest.mark.parametrize(
    ("name", "then"),
    [("run", "finished work is kept; the same command resumes"), ("status", "the same command starts over")],
)
def test_a_signal_gives_its_code_whatever_a_library_makes_of_it(
    number, code, said, turned, name, then, monkeypatch, command
):
    def ended(*_, **__):
        try:
            signal.raise_signal(number)
        except KeyboardInterrupt as error:
            if turned:
                raise RuntimeError("Query interrupted") from error
            raise

    monkeypatch.setattr("korbert.pipelines.runs.pipeline.load", ended)
    before = signal.getsignal(signal.SIGTERM)
    assert command(name, "demo", code=code).err.splitlines()[-1] == f"korbert: {said}: {then}"
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.parametrize("name", ["embed", "predict"])
@pytest.mark.parametrize(("option", "kept"), [((), False), (("--output", "out/"), True), (("--output=out",), True)])
def test_work_on_a_corpus_resumes_if_parts_were_written(name, option, kept, here, monkeypatch, command):
    def ended(*_, **__):
        (here / "out.partial").mkdir()
        if kept:
            (here / "out.partial" / "part-000000-0.parquet").touch()
        signal.raise_signal(signal.SIGINT)

    (here / "texts.txt").write_text("글\n", encoding="utf-8")
    monkeypatch.setattr(cli.cli.commands[name], "callback", ended)
    said = command(name, "korbert-mini-nsmc", "texts.txt", *option, code=130).err
    then = "finished work is kept; the same command resumes" if kept else "the same command starts over"
    assert said.splitlines()[-1] == f"korbert: interrupted: {then}"


def test_a_model_without_a_usable_task_does_not_end_the_list(here, tiny_tokenizer, tiny_config, command):
    model = ClassificationModel(tiny_config(num_hidden_layers=1), 2, labels=["부정", "긍정"])
    for name, task in (("empty", {}), ("new", {"kind": "newer"}), ("other", {"kind": "encoder"})):
        save_model(here / name, model, tiny_tokenizer, task)
    shown = command("models", ".").out.splitlines()[-3:]
    said = (
        "empty  empty/config.json: task.metrics: ",
        "new  new: was not fine-tuned by",
        "other  encoder: vectors of texts  ",
    )
    assert all(map(str.startswith, shown, said)), shown


def test_text_of_others_in_an_error_moves_no_cursor(tmp_path, command):
    assert "\\x1b[2J.json: no such file" in command("score", tmp_path / "\x1b[2J.json", "nowhere", code=2).err


def test_a_long_message_is_cut(command):
    name = "가" * 5_000
    said = command("embed", "korbert-mini", "-", "--output", name, code=2).err
    assert max(map(len, said.splitlines())) <= 2_100
    assert said.rstrip().endswith(("use .npy or .parquet", "name another file"))


@pytest.mark.parametrize(("arguments", "code", "said"), [
    ("embed", 2, "Missing argument 'MODEL'"),
    ("run demo --dry-run --set vocab.sise=3", 2, "no such key"),
    ("run fifo.toml --dry-run", 2, "cannot be read (is a named pipe, not a file)"),
    ("run zero.toml --dry-run", 2, "cannot be read (is a device, not a file)"),
    ("run keys.toml --dry-run", 2, "cannot be read (has more than 524,288 bytes)"),
    ("run deep.toml --dry-run", 2, "a line has more than 100 dots"),
    ("status absent", 2, "no such recipe"),
    ("fill absent 가", 2, "absent: no such folder: name a model folder"),
    ("fill korbert-mini-nsmc [MASK]", 2, "it can predict and embed"),
    ("export korbert-mini loop", 2, "loop: already exists"),
    ("embed korbert-mini text.txt --output http://host/a.npy", 2, "is an address, and results are written to files"),
    ("embed korbert-mini gone://host/a.txt", 2, "cannot be read (Unsupported filesystem: 'gone')"),
    ("distill korbert-mini text.txt --teacher korbert-mini --output .", 2, "names no folder of its own"),
    ("finetune korbert-mini --train text.txt --output mood", 2, "tells its format: name it with --form"),
    ("serve --token=", 2, "--token: is empty"),
    ("embed korbert-mini odd.jsonl --precision fp32", 1, "1 of 2 lines failed: see the messages above"),
    ("clean broken.toml", 1, "text.gz"),
    ("embed korbert-mini text.txt --output odd.npy", 1, "unforeseen"),
])  # fmt: skip
def test_what_can_be_mended_before_it_begins_leaves_with_2_and_a_failure_with_1(
    arguments, code, said, here, monkeypatch, command
):
    os.mkfifo(here / "fifo.toml")
    (here / "zero.toml").symlink_to("/dev/zero")
    (here / "loop").symlink_to("loop")
    (here / "keys.toml").write_text("a" + ".a" * 1_000_000 + " = 1", encoding="utf-8")
    (here / "deep.toml").write_text("a" + ".a" * 200 + " = 1", encoding="utf-8")
    (here / "text.txt").write_text("가나다\n라마바\n", encoding="utf-8")
    (here / "text.gz").write_bytes(b"no gzip")
    (here / "odd.jsonl").write_text('{"text": "가"}\n{\n', encoding="utf-8")
    (here / "broken.toml").write_text('extends = "demo"\nclean.sources = [{name = "a", path = "text.gz"}]', "utf-8")
    unforeseen = OSError(errno.EIO, "unforeseen")
    monkeypatch.setattr("korbert.pipelines.inference.embedding.write_vectors", Mock(side_effect=unforeseen))
    assert said in command(*arguments.split(), code=code).err


def test_options_of_workers_are_refused(command):
    assert "add --runner ray" in command("clean", "demo", "--address", "here:6379", code=2).err
    for stage, option in (("clean", "--workers"), ("pretrain", "--row-workers")):
        assert f"'{option}': 1000000 is not in the range" in command(stage, "demo", option, "1000000", code=2).err


@pytest.mark.parametrize(("cores", "ranks", "asked", "each"), [
    (3, 1, 7, 7), (3, 1, None, 2), (96, 1, None, 4),
    (96, 8, 16, 2), (96, 8, 15, 1), (96, 8, 3, 1), (96, 8, 0, 0),
    (96, 8, None, 4), (24, 8, None, 2), (8, 8, None, 0), (4, 8, None, 0),
])  # fmt: skip
def test_the_ranks_of_a_machine_share_its_row_workers(cores, ranks, asked, each, monkeypatch):
    """A GPU is fed by processes, a processor by a thread unless workers are asked for."""
    monkeypatch.setattr("korbert.pipelines.artifacts.stage.cores", lambda: cores)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(ranks))
    runtime = Runtime(root=Path(), data=Path(), row_workers=asked)
    assert runtime.rows_by("cuda") == each
    assert asked is not None or runtime.rows_by("cpu") == 0


@pytest.mark.parametrize(
    "line",
    ["plan demo --root .", "compare here there", "clean demo --root .", "run demo --root . --to shard",
     "run demo --root . --dry-run", "nsmc demo --root . --dry-run", "new mine", "--version", ""],
)  # fmt: skip
def test_what_trains_nothing_is_done_by_rank_0(line, here, monkeypatch, command):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    said = command(*line.split())
    assert (said.out, said.err, list(here.iterdir())) == ("", "", [])


@pytest.mark.parametrize("name", ["clean", "analyze", "vocab", "shard", "pretrain", "nsmc", "korquad"])
def test_the_help_of_a_stage_says_what_it_reads_and_writes(name, command):
    said = command(name, "--help").out
    assert [word for word in ("Reads ", "Writes ", f"korbert {name} mine.toml") if word not in said] == []
    assert ("--device" in said) == (name in ("pretrain", "nsmc", "korquad"))
    assert ("--row-workers" in said) == (name == "pretrain")
    assert ("--runner" in said) == (name in ("clean", "analyze", "vocab", "shard"))


def test_help_lists_every_command_in_one_group(command):
    assert sorted(name for names in cli.GROUPS.values() for name in names) == sorted(cli.cli.commands)
    said = command("--help").out
    assert [title for title in cli.GROUPS if f"\n{title}:\n" not in said] == []
    assert [name for name in cli.cli.commands if f"\n  {name} " not in said] == []


@pytest.mark.parametrize(("words", "expected"), [
    (["fill", "korbert-mini-n"], ["korbert-mini-ner", "korbert-mini-nsmc"]),
    (["serve", "korbert-mini", "korbert-mini-e"], ["korbert-mini-embed"]),
    (["run", "dem"], ["demo"]), (["predi"], ["predict"]), (["look", "--ht"], ["--html"]),
])  # fmt: skip
def test_a_shell_completes_commands_options_models_and_recipes(words, expected):
    items = ShellComplete(cli.cli, {}, "korbert", "_KORBERT_COMPLETE").get_completions(words[:-1], words[-1])
    assert [item.value for item in items if item.type == "plain"] == expected


def test_what_a_program_reads_is_json(tmp_path, command):
    stages = json.loads(command("status", "demo", "--root", tmp_path, "--json").out)["stages"]
    assert {"stage": "clean", "state": "absent"}.items() <= stages[0].items()
    assert {"name", "kind", "metric"} < json.loads(command("tasks", "--json").out)["sets"][0].keys()
    assert "leave demo out" in command("tasks", "demo", "--json", code=2).err


def test_a_new_recipe_is_written_over_nothing(here, command):
    (here / "mine.toml").symlink_to(here / "elsewhere.toml")
    assert "mine.toml: is a symbolic link" in command("new", "mine", code=2).err
    assert not (here / "elsewhere.toml").exists()
    assert "there is no folder absent" in command("new", "absent/mine", code=2).err


def test_log_lines_go_to_the_standard_error_of_the_moment(monkeypatch):
    """A progress bar puts its own in place of it, and prints what it gets above the bar."""
    handler = options._AboveBars()
    bar = io.StringIO()
    monkeypatch.setattr("sys.stderr", bar)
    handler.emit(logging.LogRecord("korbert", logging.INFO, "", 0, "step 50: 서울은", None, None))
    assert bar.getvalue() == "step 50: 서울은\n"
