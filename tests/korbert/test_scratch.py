"""A folder is removed only if korbert made it, whatever its name."""

import re
from pathlib import Path

import pytest

from korbert.errors import ArtifactError
from korbert.scratch import MARK, claim, is_marked, remove

ROOT = Path(__file__).parents[2]


def test_a_claimed_folder_is_used_again_and_removed_with_its_files(tmp_path):
    folder = claim(tmp_path / "new" / "work")
    (folder / "below").mkdir()
    (folder / "below" / "part").write_text("x")
    assert claim(folder) == folder
    remove(folder)
    assert not folder.exists()
    remove(folder)  # nothing to do
    (tmp_path / "empty").mkdir()
    assert is_marked(claim(tmp_path / "empty"))


def test_a_flat_folder_holds_only_known_files(tmp_path):
    def known(name):
        return name.endswith(".part")

    folder = claim(tmp_path / "work", known)
    (folder / "a.part").write_text("x")
    claim(folder, known)
    (folder / "thesis.hwp").write_text("of someone")
    with pytest.raises(ArtifactError, match=r"work: holds thesis\.hwp, which korbert did not write: move it away"):
        claim(folder, known)
    assert (folder / "thesis.hwp").read_text() == "of someone"


def _folder_with(path, name):
    path.mkdir()
    (path / name).write_text("of someone")


FOREIGN = {
    "file": lambda path: path.write_text("of someone"),
    "folder": lambda path: _folder_with(path, "thesis.hwp"),
    "other mark": lambda path: _folder_with(path, MARK),
    "link": lambda path: path.symlink_to(claim(path.with_name("elsewhere"))),
    "loop": lambda path: path.symlink_to(path.name),
}


@pytest.mark.parametrize("make", FOREIGN.values(), ids=FOREIGN)
def test_folders_and_files_of_others_are_neither_claimed_nor_removed(tmp_path, make):
    make(tmp_path / "work")
    before = sorted(map(str, tmp_path.rglob("*")))
    for use in (claim, remove):
        with pytest.raises(ArtifactError, match=r"work: .*move it away"):
            use(tmp_path / "work")
    assert sorted(map(str, tmp_path.rglob("*"))) == before


def test_folders_are_removed_in_one_module_alone():
    """Elsewhere, `shutil.rmtree` would forget to look for the mark."""
    removing = re.compile(r"\brmtree\b|os\.removedirs")
    files = [path for package in ("korbert", "corpus", "pipelines") for path in (ROOT / package).rglob("*.py")]
    modules = [path.relative_to(ROOT).as_posix() for path in files if removing.search(path.read_text(encoding="utf-8"))]
    assert modules == ["korbert/scratch.py"]
