"""Hostile input, which every real corpus has: it is kept or dropped with a reason, and nothing stops the run."""

import errno
import json
import os
import random
import subprocess

import pyarrow.parquet as pq
import pytest
import zstandard
from programs import started

from korbert.corpus.cleaning.clean import clean
from korbert.corpus.corpus_settings import CleanSettings
from korbert.corpus.execution import parts


def settings(**changed):
    return CleanSettings(**({"sources": [{"name": "a", "path": "x"}]} | changed))


def read(folder, name):
    return [row for path in sorted((folder / name).glob("*.parquet")) for row in pq.read_table(path).to_pylist()]


PROSE = "강가에는 포구가 생겨 쌀과 소금, 생선이 모였다. 배로 실어 나르는 상인들은 큰돈을 벌었다."
ODD = [*"\0\u202e\u2066\ufeff\u200d\u200b\u0300\ufffd\ufff9\x85\u2028𠀀", "🇰🇷", "👩‍👩‍👧"]
LINES = [
    b'{"id": "x", "text": ', b"[" * 20_000, b'{"id": {"a": {"b": [1, 2]}}, "text": "t"}',
    b'{"id": "NUMBER", "text": ["a", "b"]}', b'{"id": 3.5, "text": "t"}', b"null", b'"text"', b"\xff\xfe\x00\x01",
    b'{"id": "NUMBER", "text": "\\ud83d"}', b'{"id": "\\udc00", "text": "t"}', b"{}", b"\x00\x00\x00",
    b'{"id": NaN, "text": Infinity}', "{'id': '작은따옴표', 'text': '글'}".encode(),
]  # fmt: skip


def hostile(generator, number):
    """One line of a JSONL file, valid or not."""
    kind = number % 20
    if kind < 5:
        return generator.choice(LINES).replace(b"NUMBER", str(number).encode())
    text = PROSE
    if kind < 12:
        for _ in range(generator.randint(1, 30)):
            middle = generator.randrange(len(text) + 1)
            text = text[:middle] + generator.choice(ODD) * generator.choice((1, 1, 50)) + text[middle:]
    elif kind < 15:
        text = "".join(chr(generator.randrange(0x20, 0xD800)) for _ in range(generator.randint(0, 300)))
    elif kind < 17:
        text = generator.choice((*"7ㅋ가a. \n<@", "&amp;", "010-1234-5678 ")) * generator.choice((10, 5000))
    elif kind == 17:
        lines = ("", " ", "목록", "- 하나", "http://a.b/c", PROSE)
        text = "\n".join(generator.choices(lines, k=generator.randint(0, 200)))
    line = json.dumps({"id": f"h{number}", "text": text}, ensure_ascii=generator.random() < 0.5)
    return line.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("count", [600, pytest.param(10_000, marks=pytest.mark.slow)])
def test_hostile_documents_are_kept_or_dropped(tmp_path, count):
    generator = random.Random(0)
    lines = [hostile(generator, number) for number in range(count)]
    lines[count // 2] = json.dumps({"id": "syllables", "text": "가" * (1 << 20)}).encode()
    lines[count // 2 + 1] = json.dumps({"id": "digits", "text": "1" * (1 << 20)}).encode()
    lines[count // 2 + 2] = json.dumps({"id": "lines", "text": "가\n" * (1 << 19)}).encode()
    path = tmp_path / "hostile.jsonl"
    path.write_bytes(b"\n".join(lines))
    evaluation = [{"name": "prose", "path": "x", "kind": "text"}]
    (tmp_path / "prose.txt").write_text("상인들은 큰돈을 벌었다고 적혀 있는 전혀 다른 글이 여기에 있다.", "utf-8")
    some = settings(sources=[{"name": "a", "path": "x", "max_undecodable": 1}], evaluation=evaluation)
    counts = clean(some, {"a": [path], "prose": [tmp_path / "prose.txt"]}, tmp_path / "out", workers=2)
    kept = read(tmp_path / "out", "documents")
    dropped = read(tmp_path / "out", "dropped")
    assert len(kept) + len(dropped) == counts["read"] == len(lines)
    assert all(row["reason"] for row in dropped)
    assert all(row["text"] and "\0" not in row["text"] and "\u202e" not in row["text"] for row in kept)
    reasons = {row["reason"] for row in dropped}
    assert reasons >= {"bad_json", "bad_text", "bad_id", "bad_encoding", "too_short", "exact_duplicate"}
    assert len(kept) > count / 200


def memory_of_clean(path, folder):
    """The most that a process of a run by itself takes, in MiB, and its dropped rows.

    ru_maxrss of a process counts what its parent held when it started it; VmHWM does not.
    """
    program = (
        "import re, resource; from pathlib import Path; from korbert.corpus.cleaning.clean import clean\n"
        "from korbert.corpus.corpus_settings import CleanSettings\n"
        "if __name__ == '__main__':\n"
        "    settings = CleanSettings(sources=[{'name': 'a', 'path': 'x'}])\n"
        f"    clean(settings, {{'a': [Path({str(path)!r})]}}, Path({str(folder / 'out')!r}), workers=1)\n"
        "    own = int(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1])\n"
        "    print(max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) >> 10)\n"
    )
    with started(folder, program, stdout=subprocess.PIPE) as process:
        told, _ = process.communicate()
    return int(told), read(folder / "out", "dropped")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["zeros.jsonl.zst", "line.txt"])
def test_a_zip_bomb_and_a_line_of_51_megabytes_take_little_memory(tmp_path, name):
    path = tmp_path / name
    if path.suffix == ".zst":
        line = json.dumps({"id": 1, "text": PROSE}).encode()
        path.write_bytes(zstandard.compress(line + b"\n" + b"\0" * 200_000_000))
        assert path.stat().st_size < 20_000
    else:
        path.write_text(PROSE + "\n" + PROSE * (51_000_000 // len(PROSE.encode())), "utf-8")
    memory, dropped = memory_of_clean(path, tmp_path)
    assert [row["reason"] for row in dropped][-1] == "too_long"
    assert memory < 600


def test_a_run_on_a_full_disk_can_be_resumed(tmp_path, monkeypatch, bytes_below):
    lines = [json.dumps({"id": number, "text": f"{number}번째 글이다. {PROSE}"}) for number in range(60)]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(lines), "utf-8")
    some = settings(part_bytes=2048, duplicates={"near": 0})
    clean(some, {"a": [path]}, tmp_path / "reference", workers=1)
    real = parts.written_aside
    left = [3]

    def write(path, write, output):
        left[0] -= path.suffix == ".parquet"
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return real(path, write, output)

    with monkeypatch.context() as patch:
        patch.setattr("korbert.corpus.execution.parts.written_aside", write)
        with pytest.raises(OSError, match="No space left on device") as caught:
            clean(some, {"a": [path]}, tmp_path / "out", workers=1)
    assert str(tmp_path / "out") in str(caught.value)
    assert not list((tmp_path / "out").glob("documents/*"))
    clean(some, {"a": [path]}, tmp_path / "out", workers=1)
    assert bytes_below(tmp_path / "out") == bytes_below(tmp_path / "reference")
