"""What the command says, and with which code it leaves, when something goes wrong that no stage foresaw."""

import errno
from pathlib import Path

import pytest

from korbert.errors import CorpusError
from pipelines import cli
from pipelines.predicting import predict_lines


def _fail_with(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("pipelines.recipes.load", fail)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_names_the_file_and_what_to_do(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _fail_with(OSError(number, "full", "artifacts/demo/clean.partial/x"), monkeypatch)
    assert cli.run_command(["status", "demo"]) == 1
    said = capsys.readouterr().err
    assert said == (
        "korbert: artifacts/demo/clean.partial/x: full: make room, then run the same command: "
        "it goes on behind what is finished\n"
    )


def test_what_nobody_foresaw_is_one_line_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _fail_with(ZeroDivisionError("division\nby zero"), monkeypatch)
    assert cli.run_command(["status", "demo"]) == 1
    said = capsys.readouterr().err
    assert said == "korbert: ZeroDivisionError: division by zero: the same command with --debug shows where\n"
    with pytest.raises(ZeroDivisionError):
        cli.run_command(["status", "demo", "--debug"])


def test_lines_that_are_not_utf8_are_named(tmp_path: Path) -> None:
    from korbert.tasks.classification import Classifier

    model = Classifier.__new__(Classifier)
    lines = ["\ufeff좋다\n".encode(), "나쁘다\n".encode("cp949")]
    with pytest.raises(CorpusError, match=r"reviews\.txt: line 2, byte 1: is not UTF-8: .*iconv"):
        next(predict_lines(model, lines, "reviews.txt"))


def test_an_address_is_of_a_ray_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_command(["status", "demo", "--address", "here:6379"]) == 2
    assert "--address is of a Ray cluster: add --runner ray" in capsys.readouterr().err
