"""`korbert clean --preview`: what it prints and the page it writes."""

import re
from collections import Counter

from korbert.corpus.cleaning.preview import Preview, Shown
from korbert.pipelines.recipes.files import SHIPPED
from korbert.pipelines.reports import index
from korbert.pipelines.reports.pages.preview import write_page
from korbert.pipelines.stages.table import STAGES


def test_preview_of_the_demo(tmp_path, command):
    said = command("clean", "demo", "--root", tmp_path, "--preview", "150").out
    assert "sampled from" in said
    assert "dropped: too short" in said
    page = (tmp_path / "demo" / "preview.html").read_text(encoding="utf-8")
    assert '<a href="preview.html">' in index(tmp_path / "demo", STAGES).read_text(encoding="utf-8")
    assert len(re.findall(r'<li class="row', page)) == 150
    assert "<ins>" in page
    assert not (tmp_path / "demo" / "clean").exists()
    (tmp_path / "demo" / "preview.html").unlink()
    assert "preview.html" not in index(tmp_path / "demo", STAGES).read_text(encoding="utf-8")


def test_text_is_escaped_in_terminal_and_page(tmp_path, command):
    (tmp_path / "a.txt").write_text("[red]대괄호와[/red] <태그>가 있는 긴 문장 a@b.kr\n[/] 짧다\n", encoding="utf-8")
    recipe = tmp_path / "mine.toml"
    demo = (SHIPPED / "demo.toml").read_text(encoding="utf-8")
    recipe.write_text(demo.replace("sample:talk.jsonl", str(tmp_path / "a.txt")), encoding="utf-8")
    assert "[red]대괄호와[/red]" in command("clean", recipe, "--root", tmp_path, "--preview", "5").out.replace("\n", "")
    page = (tmp_path / "mine" / "preview.html").read_text(encoding="utf-8")
    assert "&lt;태그&gt;" in page
    assert "이메일" in page


def _row(before, after, number=1, reason=None):
    return Shown(f"wiki:{number}", f"wiki.jsonl:{number}", before, after, reason, "3 characters" if reason else None)


def _page(tmp_path, *rows):
    write_page(tmp_path / "preview.html", "시험", Preview(list(rows), Counter(email=1), {"wiki": 9}))
    return (tmp_path / "preview.html").read_text(encoding="utf-8")


def _open(page):
    """What is seen before anything is unfolded, as text."""
    folded = re.sub(r"(<details[^>]*>\s*<summary>.*?</summary>).*?</details>", r"\1", page, flags=re.DOTALL)
    return re.sub(r"<style>.*?</style>|<[^>]*>", "", folded, flags=re.DOTALL)


LONG = "".join(f"문장 {number}번이다. " for number in range(400))


def test_changes_are_shown_with_some_context(tmp_path):
    page = _page(tmp_path, _row(f"{LONG}a@b.kr로 보내라.{LONG}", f"{LONG}<이메일>로 보내라.{LONG}"))
    assert re.search(r"<del>a@b.kr로</del><ins>&lt;이메일&gt;로</ins> 보내라", page)
    shown = _open(page)
    assert shown.count("문장") < 20
    assert LONG[-38:] in shown
    assert LONG[-60:] not in shown
    assert LONG[:60] not in shown
    page = _page(tmp_path, _row("높이 47\u00a0cm이다.\n\n\n둘\t셋", "높이 47 cm이다.\n\n둘 셋"))
    assert r"<del>\xa0</del><ins>␣</ins>cm" in page
    assert "<del>⏎⏎⏎</del><ins>⏎⏎</ins>둘<del>⇥</del><ins>␣</ins>셋" in page
    page = _page(tmp_path, *(_row(f"{LONG}{LONG}\x07{LONG}", f"{LONG}{LONG}{LONG}", number) for number in range(6)))
    assert re.findall(r"<(del|ins)>(.*?)</", page) == [("del", "\\x07")] * 6  # a late one; the cut is none
    assert len(_open(page)) < 6 * 250


def test_only_the_first_changes_of_a_row_are_shown(tmp_path):
    before = "".join(f"{LONG[:150]}  둘{number}  {LONG[:150]}" for number in range(12))
    page = _page(tmp_path, _row(before, re.sub("  +", " ", before)))
    assert _open(page).count("문장") < 120
    assert re.search(r"and \d+ more changes", page)


def test_unchanged_rows_are_one_folded_list(tmp_path):
    page = _page(tmp_path, *(_row(LONG, LONG, number) for number in range(30)))
    assert "30 rows unchanged" in _open(page)
    assert "문장" not in _open(page)
    assert page.count("<details") == 1


def test_dropped_rows_are_below_their_reason(tmp_path):
    rows = [_row(LONG, "", number, "too_little_hangul") for number in range(3)] + [_row("굿", "굿", 9, "too_short")]
    shown = _open(_page(tmp_path, *rows))
    assert shown.index("too little Hangul") < shown.index("too short")
    assert LONG[:100] in shown
    assert LONG[:300] not in shown
