"""Cuts files into chunks of whole records. Text is cut as UTF-8, whatever the encoding of the file."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BufferedReader

from corpus.readers import delimited, tables, wikipedia
from corpus.readers.files import check_name
from corpus.readers.records import SHOWN_BYTES, Chunk, File, Kind, Segment, pass_line
from corpus.settings import LONGEST_RECORD, SourceSettings
from korbert.errors import CorpusError
from korbert.records.encodings import encoding_of, errors_of, utf8
from korbert.records.forms import is_json
from korbert.records.frames import PACKED, open_bytes
from korbert.records.jsons import read_json
from korbert.records.table import TextFile, beginning, open_text

__all__ = ["chunks"]

_KINDS: dict[str, Kind] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".txt": "text",
    ".text": "text",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".xml": "wikipedia",
}
_HEAD_BYTES = 1 << 12  # that tell JSON from JSON lines
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PASSED_BYTES = 1 << 20  # of a record that is too long, read at a time
_KORQUAD_RECORDS = 8  # maximum size of a KorQuAD file in maximum records: it is parsed whole, with many contexts


def chunks(
    source: SourceSettings,
    files: Sequence[File],
    part_bytes: int,
    longest: int = LONGEST_RECORD,
    *,
    only: Sequence[File] | None = None,
) -> Iterator[Chunk]:
    """The files in order, cut between records as soon as a chunk holds `part_bytes`.

    longest: maximum bytes of a record, raised to `part_bytes`. A longer record is a segment of its own that holds only
    its beginning. only: cuts those alone, with ids and places as among all files.
    """
    longest = max(longest, part_bytes)
    segments: list[Segment] = []
    size, kind = 0, None
    for path, name in zip(files, _names(files), strict=True):
        if only is not None and path not in only:
            continue
        previous, kind = kind, _kind(source, path)
        if segments and previous is not None and previous != kind:
            yield Chunk(source, previous, tuple(segments), len(files) > 1, longest)
            segments, size = [], 0
        for segment in _segments(source, kind, path, name, part_bytes, longest):
            segments.append(segment)
            size += len(segment.data)
            if size >= part_bytes:
                yield Chunk(source, kind, tuple(segments), len(files) > 1, longest)
                segments, size = [], 0
    if segments and kind is not None:
        yield Chunk(source, kind, tuple(segments), len(files) > 1, longest)


def _names(files: Sequence[File]) -> list[str]:
    """The names of the files in ids and messages: paths below the deepest folder that they share."""
    for path in files:
        check_name(path)
    paths = [path.parts for path in files]
    shared = 0
    while len(files) > 1 and len({parts[: shared + 1] for parts in paths}) == 1 and shared < min(map(len, paths)) - 1:
        shared += 1
    return ["/".join(parts[shared:]) if shared else path.name for path, parts in zip(files, paths, strict=True)]


def _kind(source: SourceSettings, path: File) -> Kind:
    name = path.with_suffix("") if path.suffix.lower() in PACKED else path
    kind = source.kind if source.kind != "auto" else _KINDS.get(name.suffix.lower())
    if kind is None:
        raise CorpusError(
            f"{path}: its kind cannot be told from its name: set kind of source {source.name!r} in the recipe"
        )
    if kind == "jsonl":  # or JSON, as its first lines tell
        with open_bytes(path) as file:
            *_, lines = beginning(file.read(_HEAD_BYTES))
        kind = "json" if is_json(lines) else "jsonl"
    return kind


def _segments(
    source: SourceSettings, kind: Kind, path: File, name: str, part_bytes: int, longest: int
) -> Iterator[Segment]:
    """The segments of one file, by its kind, without its byte order mark."""
    if kind in ("parquet", "arrow"):
        yield from tables.segments(source, kind, path, name, part_bytes, longest)
        return
    encoding = encoding_of(path) if source.encoding == "auto" else source.encoding
    if kind == "json":
        yield from _json_segments(replace(open_text(path), encoding=encoding), name, part_bytes, longest)
        return
    with open_bytes(path) as packed, utf8(packed, encoding, path) as file:
        if kind == "wikipedia":
            segments = wikipedia.segments(file, path, name, part_bytes, longest)
        elif kind in ("csv", "tsv"):
            segments = delimited.segments(source, kind, file, path, name, part_bytes, longest)
        elif kind == "korquad":
            segments = _whole_file(file, name, longest * _KORQUAD_RECORDS)
        elif kind == "text" and source.documents == "file":
            segments = _whole_file(file, name, longest)
        else:
            to_blank = kind == "text" and source.documents == "blank"
            segments = _line_segments(file, name, part_bytes, longest, to_blank=to_blank)
        for segment in segments:
            data = segment.data.removeprefix(_BYTE_ORDER_MARK) if segment.first == 1 else segment.data
            yield replace(segment, data=data, encoding=encoding)


def _json_segments(text: TextFile, name: str, part_bytes: int, longest: int) -> Iterator[Segment]:
    """The records of a JSON file, one per line, about `part_bytes` in a segment. CorpusError if it is not JSON."""
    table = read_json(text)
    assert table.objects
    lines: list[bytes] = []
    first, size = 1, 0
    for number, (_, value) in enumerate(table.objects(), 1):
        try:  # an undecodable byte is one again
            line = json.dumps(value, ensure_ascii=False).encode("utf-8", errors_of(text.encoding))
        except UnicodeEncodeError:
            line = json.dumps(value).encode()
        if lines and (size >= part_bytes or len(line) > longest):
            yield Segment(name, first, b"\n".join(lines), text.encoding)
            first, size, lines = number, 0, []
        if len(line) > longest:
            yield Segment(name, number, line[:SHOWN_BYTES], text.encoding, record_bytes=len(line))
            first = number + 1
        else:
            lines.append(line)
            size += len(line)
    if lines:
        yield Segment(name, first, b"\n".join(lines), text.encoding)


def _whole_file(file: BufferedReader, name: str, longest: int) -> Iterator[Segment]:
    blocks: list[bytes] = []
    size = 0
    for block in iter(lambda: file.read(_PASSED_BYTES), b""):
        blocks.append(block)
        size += len(block)
        if size > longest:
            del blocks[1:]
    data = b"".join(blocks)
    if size <= longest:
        yield Segment(name, 1, data)
    else:
        yield Segment(name, 1, data[:SHOWN_BYTES], record_bytes=size)


def _line_segments(
    file: BufferedReader, name: str, part_bytes: int, longest: int, *, to_blank: bool
) -> Iterator[Segment]:
    """Whole lines, about `part_bytes` in a segment. to_blank: up to a blank line, so that no document is cut."""
    first = 1
    while data := file.read(part_bytes) + file.readline(longest + 1):
        if to_blank and data.endswith(b"\n"):
            data += b"".join(_lines_to_blank(file, longest))
        begin = _last_record(data, to_blank) if len(data) > longest else len(data)
        if len(data) - begin <= longest:
            yield Segment(name, first, data)
            first += data.count(b"\n")
            continue
        if begin:
            yield Segment(name, first, data[:begin])
            first += data.count(b"\n", 0, begin)
        size, lines = _pass_over(file, data[begin:], to_blank)
        yield Segment(name, first, data[begin : begin + SHOWN_BYTES], record_bytes=size)
        first += lines


def _lines_to_blank(file: BufferedReader, longest: int) -> Iterator[bytes]:
    """The lines up to a blank one, or up to `longest` bytes, where the last line may be cut."""
    left = longest
    while left >= 0 and (line := file.readline(left + 1)):
        yield line
        left -= len(line)
        if not line.strip():
            return


def _last_record(data: bytes, to_blank: bool) -> int:
    """Start of the last record: the last line, or the paragraph after the last blank line."""
    begin = data.rfind(b"\n", 0, -1) + 1
    while to_blank and begin and data[(before := data.rfind(b"\n", 0, begin - 1) + 1) : begin].strip():
        begin = before
    return begin


def _pass_over(file: BufferedReader, record: bytes, to_blank: bool) -> tuple[int, int]:
    """Skips the rest of a record that is too long. Returns its size in bytes and its number of lines."""
    size, lines = len(record), record.count(b"\n")
    if not record.endswith(b"\n"):
        size, lines = size + pass_line(file), lines + 1
    elif not to_blank or not record[record.rfind(b"\n", 0, -1) + 1 :].strip():
        return size, lines
    while to_blank and (line := file.readline(_PASSED_BYTES)):
        rest = 0 if line.endswith(b"\n") else pass_line(file)
        size, lines = size + len(line) + rest, lines + 1
        if not rest and not line.strip():
            break
    return size, lines
