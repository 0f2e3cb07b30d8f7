"""`make box`: the steps that make the models of the box, and the smallest of them made by them, from a sample."""

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
import zstandard

import korbert
from benchmarks.box.make import folders, read_steps, table_of
from benchmarks.box.sentences import drawn
from korbert.corpus.documents import SAMPLE_FOLDER
from korbert.folders import models_in_the_box
from korbert.pipelines.cli import cli
from korbert.pipelines.recipes import loading

ROOT = Path(__file__).resolve().parents[2]
MODULES = {"benchmarks.box.nsmc_words", "benchmarks.box.sentences"}


def made(*arguments, **options):
    command = [sys.executable, "-m", "benchmarks.box.make", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, **options)


def test_the_steps_are_printed_and_their_commands_are_ours(tmp_path):
    steps, values, teachers = read_steps()
    printed = made("--dry-run", check=True).stdout
    assert printed.startswith(table_of(steps))
    assert {model for step in steps for model in step.models} == {"all", *models_in_the_box()}
    named = folders(tmp_path, tmp_path, None, {}) | values | dict.fromkeys(teachers, "korbert-mini-embed")
    for step in steps:
        program, *arguments = step.command(named)
        if program == "python":
            assert arguments[0] == "-m"
            assert arguments[1] in MODULES
        elif arguments[0] != "run":  # its recipe is read below
            command = cli.commands[arguments[0]]
            with click.Context(cli) as context, command.make_context(arguments[0], arguments[1:], parent=context):
                pass
    recipe = loading.load(str(ROOT / "benchmarks" / "box" / "encoder.toml"))
    assert recipe.section("pretrain").init == ""


def test_an_encoder_that_is_there_is_not_made_and_reader_and_tagger_go_on():
    goes_on = ("--encoder", "korbert-mini", "--reader", "korbert-mini-korquad", "--tagger", "korbert-mini-ner")
    printed = made("--dry-run", *goes_on, check=True).stdout
    assert printed.count("korbert finetune korbert-mini-korquad ") == 3  # two of three teachers, and the reader
    assert printed.count("korbert finetune korbert-mini-ner ") == 2  # one of four teachers, and the tagger
    assert "korbert run" not in printed
    assert "korbert finetune korbert-mini " in printed
    assert "--base korbert-mini\n" in printed
    steps, _, _ = read_steps(["korbert-mini-nsmc"], pretrains=False)
    assert {step.facts["model"] for step in steps} == {"korbert-mini-nsmc"}


def test_what_is_not_there_is_said():
    assert "--set e6: there are sentences" in made("--dry-run", "--set", "e6=x").stderr
    assert "no such model" in made("--dry-run", "--only", "korbert-maxi").stderr
    assert "name the teacher's folder" in made("--data", "x", "--work", "y", "--only", "korbert-mini-embed").stderr


def test_sentences_are_drawn_by_themselves():
    sentences = [f"{number}번째 문장이다." for number in range(50)]
    found = drawn(sentences, 10)
    assert len(set(found)) == 10
    assert drawn([*sentences[::-1], *sentences], 10) == found
    assert set(drawn(sentences[:40], 10)) >= set(found) & set(sentences[:40])
    assert sorted(drawn(sentences, 99)) == sorted(sentences)


@pytest.mark.slow
def test_the_smallest_model_is_made_from_a_sample(tmp_path):
    data, work = tmp_path / "data", tmp_path / "work"
    (data / "corpus" / "more").mkdir(parents=True)
    for name, file, lines in (
        ("wiki-0", "wiki", 30), ("more/wiki-2", "wiki", 15), ("reviews", "reviews", 200), ("news-comments", "talk", 50),
    ):  # fmt: skip
        text = "".join((SAMPLE_FOLDER / f"{file}.jsonl").read_text("utf-8").splitlines(keepends=True)[:lines])
        ending = "txt" if name == "news-comments" else "jsonl"
        (data / "corpus" / f"{name}.{ending}.zst").write_bytes(zstandard.compress(text.encode()))
    values = ["e5=korbert-mini-embed", "sentences=300", "epochs=1", "batch=32"]
    only = ["--only", "korbert-mini-embed", "--encoder", "korbert-mini"]
    asked = ["--data", data, "--work", work, *only, "--set", *values]
    made(*asked, check=True)
    record = json.loads((work / "made.json").read_text("utf-8"))
    assert list(record) == ["sentences", "taught", "pairs", "vectors", "korbert-mini-embed"]
    model = korbert.load(work / "box" / "korbert-mini-embed")
    assert model.network.config.num_hidden_layers == 6
    assert model.similarity("영화가 재미있다", "재미있는 영화") > model.similarity("영화가 재미있다", "법원의 판결")
    again = made(*asked, check=True).stdout.splitlines()
    assert [line.split(": ")[1].split(",")[0] for line in again] == ["is there"] * 5
    assert "was made by" in made(*asked[:-1], "batch=16").stderr
