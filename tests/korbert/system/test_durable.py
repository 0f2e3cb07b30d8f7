"""What is never written over, and that nothing half written is ever seen."""

import contextlib
import errno
import os
import socket
import stat
import tempfile
from pathlib import Path

import pytest

from korbert.errors import SettingsError
from korbert.system import durable


def kinds_of_things(folder):
    """What may be there in place of a file, and what an error calls it."""
    os.mkfifo(folder / "pipe")
    yield folder / "pipe", "is a named pipe"
    (folder / "target").write_text("남의 글", encoding="utf-8")
    (folder / "link").symlink_to(folder / "target")
    yield folder / "link", "is a symbolic link"
    (folder / "dangling").symlink_to(folder / "nowhere")
    yield folder / "dangling", "is a symbolic link"
    (folder / "folder").mkdir()
    yield folder / "folder", "is a folder"
    yield folder / "target" / "below", "there is no folder"
    yield folder / ("가" * 86), "File name too long"
    with contextlib.suppress(OSError, ValueError), socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "socket"))  # too long a path on some systems
        yield folder / "socket", "is a socket"
    with contextlib.suppress(PermissionError):
        os.mknod(folder / "device", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        yield folder / "device", "is a device"


def test_only_a_regular_file_is_written_over(tmp_path):
    for path, said in kinds_of_things(tmp_path):
        before = path.lstat() if os.path.lexists(path) else None
        with pytest.raises(SettingsError, match=said) as caught:
            durable.check_output(path)
        assert str(path) in str(caught.value)
        if before:
            with pytest.raises(SettingsError, match=said):
                durable.write_bytes_atomically(path, b"1")
            assert path.lstat() == before
    assert (tmp_path / "target").read_text(encoding="utf-8") == "남의 글"


@pytest.mark.parametrize("read", [durable.read_json, durable.sha256_of])
def test_only_a_regular_file_is_read(tmp_path, read):
    for path, _ in kinds_of_things(tmp_path):
        if path.name not in ("link", "below"):
            with pytest.raises(OSError, match=r"is a |No such|too long"):
                read(path)


def test_a_large_record_is_not_read(tmp_path):
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(OSError, match="has more than 16,777,216 bytes"):
        durable.read_json(tmp_path / "large.json")


def test_an_input_is_not_written_over(tmp_path):
    asked, other = tmp_path / "asked.json", tmp_path / "folder" / ".." / "asked.json"
    asked.write_text("{}")
    (tmp_path / "folder").mkdir()
    (tmp_path / "hard.json").hardlink_to(asked)
    for path in (asked, other, tmp_path / "hard.json"):
        with pytest.raises(SettingsError, match="is the file that is read: name another one for the result"):
            durable.check_output(path, tmp_path / "nowhere", asked)
    with pytest.raises(SettingsError, match=r"new\.json: lies in .*folder, which is read: name another place"):
        durable.check_output(tmp_path / "folder" / "new.json", asked, tmp_path / "folder")
    durable.check_output(tmp_path / "new.json", asked, tmp_path / "folder")


@pytest.fixture
def open_folder():
    """One that another user may enter, as pytest's are not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


def test_write_protected_folders_and_files_are_refused(open_folder):
    closed, kept = open_folder / "closed", open_folder / "kept.json"
    closed.mkdir(mode=0o555)
    kept.write_text("{}")
    kept.chmod(0o444)
    was = os.geteuid()
    if was == 0:
        os.seteuid(65534)  # root may write anywhere
    try:
        for path, said in (
            (closed / "out.json", r"out\.json: the folder .*closed may not be written to: name another"),
            (kept, r"kept\.json: is protected from writing: name another file"),
        ):
            with pytest.raises(SettingsError, match=said):
                durable.check_output(path)
    finally:
        os.seteuid(was)


def test_lone_surrogates_are_escaped_and_what_was_changed_is_refused(tmp_path):
    durable.write_json(tmp_path / "a.json", {"q\ud800": "가"})
    assert (tmp_path / "a.json").read_bytes() == '{\n "q\\ud800": "가"\n}\n'.encode()
    with pytest.raises(ValueError, match="JSON compliant"):
        durable.write_json(tmp_path / "a.json", float("nan"))
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
    data = durable.add_checksum({"step": 3, "이름": "값"})
    assert durable.verify_checksum(data) == {"step": 3, "이름": "값"}
    with pytest.raises(ValueError, match="is not as it was written"):
        durable.verify_checksum(data.replace(b"3", b"4", 1))


@pytest.mark.parametrize("number", [errno.ENOSPC, None])
def test_an_error_while_writing_aside_leaves_the_old_file_and_names_it(tmp_path, number):
    (tmp_path / "a").write_text("old", encoding="utf-8")

    def fail(file):
        file.write(b"half")
        raise OSError(number, "full") if number else ValueError("broken")

    with pytest.raises((OSError, ValueError)) as raised:
        durable.write_atomically(tmp_path / "a", fail)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text(encoding="utf-8") == "old"
    assert number is None or raised.value.filename == str(tmp_path / "a")


@pytest.mark.parametrize("text", ["{", "[" * 100_000, '{"a": NaN}', '{"a": 1e999}', '{"a": -Infinity}'])
def test_invalid_json_is_explained(tmp_path, text):
    """Valid JSON that is no object is an empty one to `read_object`."""
    (tmp_path / "a.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"^Expecting|is nested too deeply|is not a finite number"):
        durable.read_object(tmp_path / "a.json")
    (tmp_path / "a.json").write_text("[1]", encoding="utf-8")
    assert (durable.read_json(tmp_path / "a.json"), durable.read_object(tmp_path / "a.json")) == ([1], {})
