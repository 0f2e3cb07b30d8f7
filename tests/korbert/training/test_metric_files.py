from contextlib import closing

import pytest

from korbert.errors import ArtifactError
from korbert.training.metric_files import JsonLines


def written(path, first_step, *lines):
    """The text of a file that is opened after `first_step`, and to which these lines are added."""
    with closing(JsonLines(path, first_step)) as file:
        for line in lines:
            file.write(line)
    return path.read_text(encoding="utf-8")


def test_lines_after_the_step_are_removed(tmp_path):
    path = tmp_path / "new" / "metrics.jsonl"
    whole = written(path, 0, *({"step": step} for step in (1, 2, 2, 3)))
    path.write_text(whole + '{"step": 2, "half-writ')
    text = written(path, 2, {"step": 3, "이름": "새로"})
    assert text == '{"step": 1}\n{"step": 2}\n{"step": 2}\n{"step": 3, "이름": "새로"}\n'


@pytest.mark.parametrize("line", [b'{"step": 2', b"\xff", b"[]", b"null", b"{}", b'{"step": "2"}', b"[" * 99_999, b""])
def test_a_damaged_line_is_named(tmp_path, line):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 1}\n' + line + b'\n{"step": 3}\n')
    with pytest.raises(ArtifactError, match=r"metrics\.jsonl: line 2 is damaged: remove the file and the checkpoints"):
        JsonLines(path, 5)


def test_a_new_run_clears_its_file_and_unfinished_lines_go(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text("anything", encoding="utf-8")
    whole = '{"step": 1, "nsp_loss": null, "loss": 0.5}\n'
    assert written(path, 0, {"step": 1, "nsp_loss": float("nan"), "loss": 0.5}) == whole
    path.write_text(whole + '{"step": 2', encoding="utf-8")
    assert written(path, 5) == whole
