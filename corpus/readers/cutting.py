"""Cuts files into chunks of whole records. Text is cut as UTF-8, whatever the encoding of the file."""

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BufferedReader
from itertools import chain
from typing import Any, cast

from corpus.readers import wikipedia
from corpus.readers.files import check_name
from corpus.readers.records import SHOWN_BYTES, Cells, Chunk, File, Kind, Segment, needed_columns, too_long
from corpus.settings import LONGEST_RECORD, SourceSettings
from korbert.errors import CorpusError
from korbert.names import nfc
from korbert.records.encodings import decoded, encoding_of, utf8
from korbert.records.form import FORMS, Form
from korbert.records.forms import form_of, is_json, open_table
from korbert.records.frames import PACKED, open_bytes
from korbert.records.jsons import cell_of, fault_of
from korbert.records.lines import batches
from korbert.records.table import Fault, beginning

__all__ = ["chunks"]

_OTHERS: dict[str, Kind] = {
    ".txt": "text",
    ".text": "text",
    ".md": "markdown",
    ".markdown": "markdown",
    ".xml": "wikipedia",
}
_HEAD_BYTES = 1 << 12  # that tell JSON from JSON lines
_PASSED_BYTES = 1 << 20  # of a file that is too long, read at a time
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
            size += segment.size
            if size >= part_bytes:
                yield Chunk(source, kind, tuple(segments), len(files) > 1, longest)
                segments, size = [], 0
    if segments and kind is not None:
        yield Chunk(source, kind, tuple(segments), len(files) > 1, longest)


def _names(files: Sequence[File]) -> list[str]:
    """The names of the files in ids and messages: paths below the deepest folder that they share, in NFC."""
    for path in files:
        check_name(path)
    paths = [path.parts for path in files]
    shared = 0
    while len(files) > 1 and len({parts[: shared + 1] for parts in paths}) == 1 and shared < min(map(len, paths)) - 1:
        shared += 1
    named = ("/".join(parts[shared:]) if shared else path.name for path, parts in zip(files, paths, strict=True))
    return list(map(nfc, named))


def _kind(source: SourceSettings, path: File) -> Kind:
    kind: str = source.kind
    if kind == "auto":
        name = path.with_suffix("") if path.suffix.lower() in PACKED else path
        kind = _OTHERS.get(name.suffix.lower()) or form_of(b"", path.name)
        if kind not in ("json", "jsonl", "text", "csv", "tsv", "parquet", "arrow", "wikipedia", "markdown"):
            raise CorpusError(
                f"{path}: its kind cannot be told from its name: set kind of source {source.name!r} in the recipe"
            )
    if kind in ("json", "jsonl"):  # as its first lines tell
        with open_bytes(path) as file:
            *_, lines = beginning(file.read(_HEAD_BYTES))
        kind = "json" if is_json(lines) else "jsonl"
    return cast(Kind, kind)


def _segments(
    source: SourceSettings, kind: Kind, path: File, name: str, part_bytes: int, longest: int
) -> Iterator[Segment]:
    """The segments of one file, by its kind, without its byte order mark."""
    if kind in FORMS and kind != "jsonl":
        yield from _table_segments(source, cast(Form, kind), path, name, part_bytes, longest)
        return
    encoding = encoding_of(path) if source.encoding == "auto" else source.encoding
    with open_bytes(path) as packed, utf8(packed, encoding, path) as file:
        if kind == "wikipedia":
            segments = wikipedia.segments(file, path, name, part_bytes, longest)
        elif kind == "korquad":
            segments = _whole_file(file, name, longest * _KORQUAD_RECORDS)
        elif kind == "markdown" or (kind == "text" and source.documents == "file"):
            segments = _whole_file(file, name, longest)
        else:
            to_blank = kind == "text" and source.documents == "blank"
            segments = _line_segments(file, name, part_bytes, longest, to_blank=to_blank)
        for segment in segments:
            yield replace(segment, encoding=encoding)


def _table_segments(
    source: SourceSettings, form: Form, path: File, name: str, part_bytes: int, longest: int
) -> Iterator[Segment]:
    """Records with id and text, about `part_bytes` in a segment. CorpusError if the file is not in its format."""
    table = open_table(path, form, encoding=source.encoding, longest=longest)
    encoding = table.encoding or "utf-8"
    records: Iterator[tuple[int, Any]]
    if table.objects is None:
        wanted = needed_columns(source, table.columns, path)
        records = table.read(wanted)
    else:  # the records of a list may share a line, and be of other keys
        wanted = [*filter(None, (source.id, source.text))]
        records = (
            (number, [cell_of(value, key) for key in wanted] if isinstance(value, dict) else value)
            for number, (_, value) in enumerate(table.objects(), 1)
        )
    held: list[Cells] = []
    size = 0
    for number, found in records:
        cells: Sequence[Any] | Fault = found
        if isinstance(found, list):
            cells = [decoded(cell, "utf-8") if isinstance(cell, bytes) else cell for cell in found]
        elif not isinstance(found, Fault):
            cells = fault_of(found)
        text = _encoded("\n".join(str(cell) for cell in reversed(cells)))
        if len(text) > longest:
            cells = too_long(text, len(text), "utf-8", longest)
        held.append((number, cells))
        size += min(len(text), longest) + 1
        if size >= part_bytes:
            yield Segment(name, 0, tuple(held), encoding, table_bytes=size)
            held, size = [], 0
    if held:
        yield Segment(name, 0, tuple(held), encoding, table_bytes=size)


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half a surrogate pair, which JSON may hold
        return text.encode("utf-8", "surrogatepass")


def _whole_file(file: BufferedReader, name: str, longest: int) -> Iterator[Segment]:
    blocks: list[bytes] = []
    size = 0
    for block in iter(lambda: file.read(_PASSED_BYTES), b""):
        blocks.append(block)
        size += len(block)
        if size > longest:
            del blocks[1:]
    data = b"".join(blocks).removeprefix(codecs.BOM_UTF8)
    if size <= longest:
        yield Segment(name, 1, data)
    else:
        yield Segment(name, 1, data[:SHOWN_BYTES], record_bytes=size)


def _line_segments(
    file: BufferedReader, name: str, part_bytes: int, longest: int, *, to_blank: bool
) -> Iterator[Segment]:
    """Whole lines, more than `part_bytes` in a segment. to_blank: up to a blank line, so that no document is cut."""
    held: list[bytes] = []
    size, first, last = 0, 1, 1  # numbers of the first line and of the first line of the record
    for lines, record, record_bytes in _line_records(file, longest, to_blank=to_blank):
        is_too_long = record_bytes > longest
        if held and (is_too_long or size > part_bytes):
            yield Segment(name, first, b"\n".join(held))
            held, size, first = [], 0, last
        if is_too_long:
            yield Segment(name, last, record[:SHOWN_BYTES], record_bytes=record_bytes)
            first = last + lines
        else:
            held.append(record)
            size += len(record) + 1
        last += lines
    if held:
        yield Segment(name, first, b"\n".join(held))


def _line_records(file: BufferedReader, longest: int, *, to_blank: bool) -> Iterator[tuple[int, bytes, int]]:
    """(number of lines, content, bytes) of each line; with to_blank, of lines up to a blank one, which is not measured.

    Of more than `longest` bytes, the content is only the beginning.
    """
    held: list[bytes] = []
    lines = size = 0
    for line in chain.from_iterable(batches(file, longest=longest)):
        lines += 1
        is_inside = to_blank and bool(line.data.strip())
        if size <= longest:
            held.append(line.data)
        if is_inside or not to_blank:
            size += line.size + bool(size)
        if not is_inside:
            yield lines, b"\n".join(held), size
            held, lines, size = [], 0, 0
    if lines:
        yield lines, b"\n".join(held), size
