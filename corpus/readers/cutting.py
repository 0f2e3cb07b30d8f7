"""Cuts files into chunks of whole records. Text is cut as UTF-8, whatever the encoding of the file."""

import codecs
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from io import BufferedReader
from itertools import chain, groupby
from operator import itemgetter
from typing import cast

from korbert.corpus.corpus_settings import LONGEST_RECORD, FileKind, SourceSettings
from korbert.corpus.documents import group_by_size
from korbert.corpus.readers import wikipedia
from korbert.corpus.readers.segments import SHOWN_BYTES, Chunk, IdAndText, Segment, too_long
from korbert.errors import CorpusError
from korbert.messages import Message
from korbert.names import nfc
from korbert.records import (
    FORMS,
    PACKED,
    Delimited,
    File,
    Form,
    Format,
    Line,
    Table,
    beginning,
    blocks,
    encoding_in,
    form_by_content,
    form_of,
    head_of,
    open_bytes,
    open_plain,
    refuse_foreign,
    rows_in,
    utf8,
)
from korbert.records.table import BLANK_BYTES, text_file

_OTHERS: dict[str, FileKind] = {".txt": "text", ".text": "text", ".xml": "wikipedia"}
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

    longest: maximum bytes of a record, but at least `part_bytes`. A longer record is a segment of its own that holds
    only its beginning. only: the files to cut; ids and places stay those that they have among all `files`.
    """
    longest = max(longest, part_bytes)
    # The names of the files in ids and messages: paths below the deepest folder that they share, in NFC.
    parts = [path.parts for path in files]
    num_shared = 0
    while (
        len(files) > 1
        and len({names[: num_shared + 1] for names in parts}) == 1
        and num_shared < min(map(len, parts)) - 1
    ):
        num_shared += 1
    first_name = num_shared if len(files) > 1 else -1
    file_names = {path: nfc("/".join(path.parts[first_name:])) for path in files}
    opened_files = (
        _open_segments(source, path, file_names[path], part_bytes, longest)
        for path in files
        if only is None or path in only
    )
    for (file_source, kind), alike_files in groupby(opened_files, key=itemgetter(0, 1)):
        segments = chain.from_iterable(file_segments for *_, file_segments in alike_files)
        for group in group_by_size(segments, part_bytes, lambda segment: segment.size):
            yield Chunk(file_source, kind, tuple(group), len(files) > 1, longest)


def _open_segments(
    source: SourceSettings, path: File, name: str, part_bytes: int, longest: int
) -> tuple[SourceSettings, FileKind, Iterator[Segment]]:
    """Returns the settings of the source, the kind of the file, and its segments.

    If the source has the default field of the id, and the file lacks it, the settings get id "": records are numbered.
    """
    head = head_of(path)
    kind: str = source.kind
    if kind == "auto":
        unpacked = path.with_suffix("") if path.suffix.lower() in PACKED else path
        kind = _OTHERS.get(unpacked.suffix.lower()) or form_of(b"", path.name)
        if kind not in ("json", "jsonl", "text", "csv", "tsv", "parquet", "arrow", "wikipedia"):
            raise CorpusError(
                "{path}: its kind cannot be told from its name: set kind of source {source!r}",
                path=path,
                source=source.name,
            )
    if kind in ("json", "jsonl"):
        _, lines = beginning(head[:_HEAD_BYTES])
        kind = form_by_content(cast(Form, kind), lines)
    refuse_foreign(head, str(path), cast(Format, kind))
    encoding: str = source.encoding
    if encoding == "auto":
        encoding = encoding_in(head)
    if kind == "text" and source.documents != "file" and head.strip(BLANK_BYTES):
        text_file(path, head, encoding)  # refuses line ends in CR
    table = None
    if kind in FORMS:
        try:
            table = open_plain(path, cast(Form, kind), source.encoding, longest)
        except CorpusError:
            if kind != "jsonl":  # of which each line may be faulty by itself
                raise
    if table and source.id == SourceSettings.model_fields["id"].default and source.id not in table.columns:
        source = source.model_copy(update={"id": ""})
    if table is None or table.delimited or kind == "jsonl":
        delimited = table.delimited if table else None
        segments = _text_segments(source, kind, path, name, encoding, delimited, part_bytes, longest)
    else:
        segments = _table_segments(source, table, path, name, part_bytes, longest)
    return source, cast(FileKind, kind), segments


def _text_segments(
    source: SourceSettings,
    kind: str,
    path: File,
    name: str,
    encoding: str,
    delimited: Delimited | None,
    part_bytes: int,
    longest: int,
) -> Iterator[Segment]:
    """The segments of a text file, by its kind, without its byte order mark."""
    with open_bytes(path) as packed, utf8(packed, encoding, path) as file:
        if delimited is not None:
            segments = _delimited_segments(source, delimited, file, path, name, part_bytes, longest)
        elif kind == "wikipedia":
            segments = wikipedia.segments(file, path, name, part_bytes, longest)
        elif kind == "korquad":
            segments = _whole_file(file, name, longest * _KORQUAD_RECORDS)
        elif kind == "text" and source.documents == "file":
            segments = _whole_file(file, name, longest)
        elif kind == "text" and source.documents == "blank":
            segments = _paragraph_segments(file, path, name, part_bytes, longest)
        else:
            segments = (Segment.of(name, block) for block in blocks(file, part_bytes, longest))
        for segment in segments:
            yield replace(segment, encoding=encoding)


def _delimited_segments(
    source: SourceSettings, table: Delimited, file: BufferedReader, path: File, name: str, part_bytes: int, longest: int
) -> Iterator[Segment]:
    """Yields the lines below the header. CorpusError if the header lacks a column of the source."""
    columns = tuple(needed_columns(source, table.columns, path))
    for block in blocks(file, part_bytes, longest, table.ends_inside):
        num_header_lines = max(0, table.header_lines + 1 - block.number)
        data = block.data.split(b"\n", num_header_lines)[num_header_lines:]
        if data:
            size = block.size if block.cut else len(data[0])
            body = Line(block.number + num_header_lines, data[0], size)
            yield replace(Segment.of(name, body), columns=columns, delimited=table)


def _table_segments(
    source: SourceSettings, table: Table, path: File, name: str, part_bytes: int, longest: int
) -> Iterator[Segment]:
    """Records with id and text, about `part_bytes` in a segment. CorpusError if the file is not in its format."""
    if table.batches is None:  # JSON: the records of a list may share a line, and be of other keys
        records = (cells for _, cells in table.read(source.fields))
        yield from _record_segments(records, name, 1, part_bytes, longest, table.encoding)
        return
    columns = needed_columns(source, table.columns, path)
    first = 1
    for is_long, batch_run in groupby(table.batches(columns), key=lambda batch: bool(batch.nbytes > longest)):
        amount = 1 if is_long else part_bytes
        for batches in group_by_size(batch_run, amount, lambda batch: batch.nbytes):
            records = (cells for batch in batches for cells in rows_in(batch, columns, {}))
            if is_long:  # a cell of it may be too long
                yield from _record_segments(records, name, first, part_bytes, longest, "utf-8")
            else:
                size = sum(batch.nbytes for batch in batches)
                yield Segment(name, first, tuple(records), table_bytes=size)
            first += sum(batch.num_rows for batch in batches)


def _record_segments(
    records: Iterable[IdAndText], name: str, first: int, part_bytes: int, longest: int, encoding: str
) -> Iterator[Segment]:
    """Cuts records into segments of about `part_bytes`. records: the cells of id and text of each, or its fault."""

    def sized() -> Iterator[tuple[IdAndText, int]]:
        for cells in records:
            text = "\n".join(str(cell) for cell in reversed(cells))
            try:
                data = text.encode("utf-8", "surrogateescape")
            except UnicodeEncodeError:  # half a surrogate pair, which JSON may hold
                data = text.encode("utf-8", "surrogatepass")
            size = min(len(data), longest) + 1
            yield (cells if len(data) <= longest else too_long(data, len(data), "utf-8", longest)), size

    for group in group_by_size(sized(), part_bytes, itemgetter(1)):
        size = sum(size for _, size in group)
        yield Segment(name, first, tuple(cells for cells, _ in group), encoding, table_bytes=size)
        first += len(group)


def _whole_file(file: BufferedReader, name: str, longest: int) -> Iterator[Segment]:
    data = file.read(longest + 1)
    size = len(data) + sum(map(len, iter(lambda: file.read(_PASSED_BYTES), b"")))
    data = data.removeprefix(codecs.BOM_UTF8)
    yield Segment(name, 1, data) if size <= longest else Segment(name, 1, data[:SHOWN_BYTES], record_bytes=size)


def _paragraph_segments(
    file: BufferedReader, path: File, name: str, part_bytes: int, longest: int
) -> Iterator[Segment]:
    """Yields whole paragraphs with the blank lines after them. CorpusError for one of more than about 16 MiB."""

    def ends_inside(lines: bytes, _: bool) -> bool:
        return bool(lines[lines.rfind(b"\n", 0, -1) + 1 :].strip())

    is_inside = False
    for block in blocks(file, part_bytes, longest, ends_inside):
        if is_inside:
            raise CorpusError(
                '{path}, line {number}: no blank line before it, and documents = "blank" needs them between documents: '
                'set "line" or "file"',
                path=path,
                number=block.number,
            )
        yield Segment.of(name, block)
        is_inside = ends_inside(block.data, False)


def needed_columns(source: SourceSettings, present: Sequence[str], path: File) -> list[str]:
    """The columns of id and text, as the file spells them. Raises CorpusError if one is not present."""
    spellings = {nfc(column): column for column in present}
    columns = []
    for column in source.fields:
        if (spelling := spellings.get(nfc(column))) is None:
            hint = Message(' (id = "" takes the number of the line)') if column == source.id else ""
            raise CorpusError(
                "{path}: no column {column!r} among {present}: set id and text of {source!r}{hint}",
                path=path,
                column=column,
                present=", ".join(present),
                source=source.name,
                hint=hint,
            )
        columns.append(spelling)
    return columns
