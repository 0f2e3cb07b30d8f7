import json

import pytest

from korbert.errors import ArtifactError
from korbert.training.records import JsonLines


def test_lines_after_the_step_are_removed(tmp_path):
    path = tmp_path / "new" / "metrics.jsonl"
    lines = JsonLines(path, 0)
    for step in (1, 2, 2, 3):
        lines.write({"step": step})
    lines.close()
    with path.open("a") as file:
        file.write('{"step": 2, "half-writ')
    lines = JsonLines(path, 2)
    lines.write({"step": 3, "이름": "새로"})
    lines.close()
    assert [json.loads(line)["step"] for line in path.read_text(encoding="utf-8").splitlines()] == [1, 2, 2, 3]
    assert path.read_text(encoding="utf-8").endswith('{"step": 3, "이름": "새로"}\n')


@pytest.mark.parametrize("line", [b'{"step": 2', b"\xff", b"[]", b"null", b"{}", b'{"step": "2"}', b"[" * 99_999, b""])
def test_a_damaged_line_is_named(tmp_path, line):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 1}\n' + line + b'\n{"step": 3}\n')
    with pytest.raises(ArtifactError, match=r"metrics\.jsonl: line 2 is damaged: remove the file and the checkpoints"):
        JsonLines(path, 5)


def test_a_new_run_clears_its_file_and_unfinished_lines_go(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text("anything", encoding="utf-8")
    lines = JsonLines(path, 0)
    lines.write({"step": 1, "nsp_loss": float("nan"), "loss": 0.5})
    lines.close()
    whole = '{"step": 1, "nsp_loss": null, "loss": 0.5}\n'
    assert path.read_text() == whole
    path.write_text(whole + '{"step": 2', encoding="utf-8")
    JsonLines(path, 5).close()
    assert path.read_text(encoding="utf-8") == whole
