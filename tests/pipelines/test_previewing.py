"""`korbert clean --preview`: what it prints and the page it writes."""

from pathlib import Path

import pytest

from pipelines import cli
from pipelines.recipes import SHIPPED


def test_a_preview_of_the_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_command(["clean", "demo", "--root", str(tmp_path), "--preview", "150"]) == 0
    said = capsys.readouterr().out
    assert "drawn from" in said
    assert "dropped: too_short" in said
    page = (tmp_path / "demo" / "preview.html").read_text(encoding="utf-8")
    assert page.count("<tr>") == 1 + 150 + sum(
        line.startswith("<tr><th>") and "<td" in line for line in page.split("\n")
    )
    assert "<ins>" in page
    assert not (tmp_path / "demo" / "clean").exists()


def test_text_is_shown_as_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("[red]대괄호와[/red] <태그>가 있는 긴 문장 a@b.kr\n[/] 짧다\n", encoding="utf-8")
    recipe = tmp_path / "mine.toml"
    demo = (SHIPPED / "demo.toml").read_text(encoding="utf-8")
    recipe.write_text(demo.replace("sample:wiki.jsonl", str(tmp_path / "a.txt")), encoding="utf-8")
    assert cli.run_command(["clean", str(recipe), "--root", str(tmp_path), "--preview", "5"]) == 0
    assert "[red]대괄호와[/red]" in capsys.readouterr().out.replace("\n", "")
    page = (tmp_path / "mine" / "preview.html").read_text(encoding="utf-8")
    assert "&lt;태그&gt;" in page
    assert "이메일" in page
