"""A folder is removed only if korbert made it, whatever its name."""

import re
from pathlib import Path

import pytest

from korbert.errors import ArtifactError, SettingsError
from korbert.system.scratch import MARK, claim, is_marked, new_folder, remove

ROOT = Path(__file__).parents[3]


def test_a_claimed_folder_is_used_again_and_removed_with_its_files(tmp_path):
    folder = claim(tmp_path / "new" / "work")
    (folder / "below").mkdir()
    (folder / "below" / "part").write_text("x")
    assert claim(folder) == folder
    for _ in range(2):  # the second time there is nothing to do
        remove(folder)
        assert not folder.exists()
    (tmp_path / "empty").mkdir()
    assert is_marked(claim(tmp_path / "empty"))
    known = re.compile(r".*\.part").fullmatch
    folder = claim(tmp_path / "work", known)
    for name in ("a.part", ".DS_Store", "Thumbs.db"):  # the others are nobody's fault
        (folder / name).write_text("x")
    claim(folder, known)
    (folder / "thesis.hwp").write_text("of someone")
    with pytest.raises(ArtifactError, match=r"work: holds thesis\.hwp, not korbert's: move it away"):
        claim(folder, known)
    assert (folder / "thesis.hwp").read_text() == "of someone"


@pytest.mark.parametrize("of_others", ["file", "thesis.hwp", MARK, "link", "loop"])
def test_folders_and_files_of_others_are_neither_claimed_nor_removed(tmp_path, of_others):
    """A folder with a file, also one of the mark's name; a link to a folder of ours, or to itself."""
    work = tmp_path / "work"
    if of_others == "file":
        work.write_text("of someone")
    elif of_others in ("link", "loop"):
        work.symlink_to(claim(tmp_path / "elsewhere") if of_others == "link" else work)
    else:
        work.mkdir()
        (work / of_others).write_text("of someone")
    before = sorted(map(str, tmp_path.rglob("*")))
    for use in (claim, remove):
        with pytest.raises(ArtifactError, match=r"work: .*move it away"):
            use(work)
    assert sorted(map(str, tmp_path.rglob("*"))) == before


def test_folders_are_removed_in_one_module_alone():
    """Elsewhere, `shutil.rmtree` would forget to look for the mark."""
    removing = re.compile(r"\brmtree\b|os\.removedirs")
    files = [path for package in ("korbert", "corpus", "pipelines") for path in (ROOT / package).rglob("*.py")]
    modules = [path.relative_to(ROOT).as_posix() for path in files if removing.search(path.read_text(encoding="utf-8"))]
    assert modules == ["korbert/system/scratch.py"]


def test_a_file_that_is_put_into_an_empty_folder_meanwhile_is_kept(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()

    def work():
        with new_folder(folder) as new:
            (new / "model").write_text("ours")
            (folder / "thesis.hwp").write_text("of someone")

    with pytest.raises(SettingsError, match="out: already exists: name a new folder"):
        work()
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "thesis.hwp"]
