"""What an index folder holds beside the index stays there."""

from pathlib import Path

import pytest

from korbert.errors import ArtifactError
from korbert.vectors.storage import Record, delete_strays, write_words

OURS = ["part-00007.arrow", "part-00007.npy", ".korbert-part-00007.npy.tmp", "part-123456.usearch"]
THEIRS = ["notes.txt", "part-1.npy", "part-00007.csv", "correction.txt", "words.txt", "words-00003", ".git"]


def test_only_our_leftovers_are_removed(tmp_path: Path) -> None:
    for name in [*OURS, *THEIRS, "index.json", "lock"]:
        (tmp_path / name).write_text(name)
    for folder, file in (("words-00001", "rows.npy"), ("words-00002", "thesis.hwp"), ("images", "rows.npy")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / file).write_text(file)
    (tmp_path / "part-00009.npy").symlink_to("notes.txt")
    delete_strays(tmp_path, Record(model={}, settings={}, size=2))
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}
    assert left == {
        *THEIRS, "index.json", "lock", "words-00002", "words-00002/thesis.hwp", "images", "images/rows.npy",
        "part-00009.npy",
    }  # fmt: skip


def test_a_ranker_is_not_written_over_files_of_others(tmp_path: Path) -> None:
    (tmp_path / "words-00001").mkdir()
    (tmp_path / "words-00001" / "thesis.hwp").write_text("of someone")
    with pytest.raises(ArtifactError, match=r"words-00001: is not a folder of korbert"):
        write_words(tmp_path, "words-00001", None)  # type: ignore[arg-type]
    assert (tmp_path / "words-00001" / "thesis.hwp").read_text() == "of someone"
