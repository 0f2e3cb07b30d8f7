import bz2
import gzip
import io
import lzma
import struct
import tracemalloc

import pytest
import zstandard

from korbert.errors import CorpusError
from korbert.records.compression import open_bytes

FIRST = "첫째 줄\n".encode() * 5_000
SECOND = "둘째 줄\n".encode() * 3_000
SKIPPABLE = struct.pack("<II", 0x184D2A50, 5) + b"about"


def zst(data, **options):
    return zstandard.ZstdCompressor(**options).compress(data)


PACKS = [("a.gz", gzip.compress), ("a.zst", zst), ("a.bz2", bz2.compress), ("a.xz", lzma.compress)]


def read(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(data)
    with open_bytes(path) as file:
        return file.read()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.txt", FIRST + SECOND),
        ("a.gz", gzip.compress(FIRST) + gzip.compress(SECOND)),
        ("padded.gz", gzip.compress(FIRST) + b"\0" * 99_999 + gzip.compress(SECOND) + b"\0"),
        ("a.zst", zst(FIRST) + zst(SECOND, write_checksum=True)),
        ("a.bz2", bz2.compress(FIRST) + bz2.compress(SECOND)),
        ("a.xz", lzma.compress(FIRST) + lzma.compress(SECOND)),
        ("padded.xz", lzma.compress(FIRST) + b"\0" * 8 + lzma.compress(SECOND) + b"\0" * 4),
        ("seekable.zst", SKIPPABLE + zst(FIRST) + SKIPPABLE + zst(b"") + zst(SECOND) + SKIPPABLE),
    ],
)
def test_all_frames_are_read(tmp_path, name, data):
    assert read(tmp_path, name, data) == FIRST + SECOND


@pytest.mark.parametrize("window_log", [27, 28, 31])
def test_zstandard_frames_with_large_windows_are_read(tmp_path, window_log):
    parameters = zstandard.ZstdCompressionParameters(window_log=window_log, hash_log=6, chain_log=6, strategy=1)
    packed = io.BytesIO()
    with zstandard.ZstdCompressor(compression_params=parameters).stream_writer(packed, closefd=False) as writer:
        writer.write(FIRST)  # of unknown length, or the window would shrink to it
    assert zstandard.get_frame_parameters(packed.getvalue()).window_size == 1 << window_log
    assert read(tmp_path, "a.zst", packed.getvalue()) == FIRST


@pytest.mark.parametrize(("name", "pack"), PACKS)
def test_a_truncated_or_damaged_frame_is_an_error(tmp_path, name, pack):
    first = pack(FIRST)
    second = pack(SECOND)
    faults = [(first[:-5] + second, "frame 1 is damaged .*get the file again")]
    faults += [(first + b"not packed at all", "frame 2 is damaged .*get the file again"), (b"", "ends inside frame 1")]
    for cut in (1, 3, 10, -1):
        faults += [(first + second[:cut], "ends inside frame 2: the file is cut off")]
        faults += [(first[:cut], "ends inside frame 1: the file is cut off")]
    for data, said in faults:
        with pytest.raises(CorpusError, match=f"{name}: {said}"):
            read(tmp_path, name, data)


@pytest.mark.parametrize(("name", "pack"), PACKS)
def test_a_thousandfold_expansion_is_decompressed_in_blocks(tmp_path, name, pack):
    path = tmp_path / name
    path.write_bytes(pack(b"\0" * (1 << 27)))
    tracemalloc.start()
    with open_bytes(path) as file:
        assert sum(map(len, iter(lambda: file.read(1 << 16), b""))) == 1 << 27
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 100_000_000


def test_absent_and_unreadable_files_and_devices_are_refused(tmp_path):
    (tmp_path / "texts.txt").symlink_to("/dev/zero")
    for path, said in (
        (tmp_path / "none.jsonl", r"none.jsonl: no such file: check the source's path"),
        (tmp_path, r"cannot be opened \(Is a directory\)"),
        (tmp_path / "texts.txt", r"texts\.txt: is a device: name a file, a pipe, or - for standard input"),
    ):
        with pytest.raises(CorpusError, match=said):
            open_bytes(path)
