"""Files cut into chunks of whole records. Text is cut as UTF-8, whatever the file's encoding."""

from collections.abc import Iterator, Sequence
from io import BufferedReader

from corpus.readers import delimited, tables, wikipedia
from corpus.readers.encodings import encoding_of, utf8
from corpus.readers.frames import PACKED, open_bytes
from corpus.readers.records import Chunk, File, Kind, Segment
from corpus.settings import SourceSettings
from korbert.errors import CorpusError

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
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def chunks(source: SourceSettings, files: Sequence[File], part_bytes: int) -> Iterator[Chunk]:
    """The files in their order, cut between records once a chunk holds `part_bytes` or more."""
    segments: list[Segment] = []
    size, kind = 0, None
    for path, name in zip(files, _names(files), strict=True):
        previous, kind = kind, _kind(source, path)
        if segments and previous is not None and previous != kind:
            yield Chunk(source, previous, tuple(segments), len(files) > 1)
            segments, size = [], 0
        for segment in _segments(source, kind, path, name, part_bytes):
            segments.append(segment)
            size += len(segment.data)
            if size >= part_bytes:
                yield Chunk(source, kind, tuple(segments), len(files) > 1)
                segments, size = [], 0
    if segments and kind is not None:
        yield Chunk(source, kind, tuple(segments), len(files) > 1)


def _names(files: Sequence[File]) -> list[str]:
    """What a file is called in ids and messages: its path below the folder that all have in common."""
    paths = [path.parts for path in files]
    shared = 0
    while len(files) > 1 and len({parts[: shared + 1] for parts in paths}) == 1 and shared < min(map(len, paths)) - 1:
        shared += 1
    return ["/".join(parts[shared:]) if shared else path.name for path, parts in zip(files, paths, strict=True)]


def _kind(source: SourceSettings, path: File) -> Kind:
    if source.kind != "auto":
        return source.kind
    name = path.with_suffix("") if path.suffix in PACKED else path
    if name.suffix not in _KINDS:
        raise CorpusError(
            f"{path}: its name does not tell what it is: set kind of source {source.name!r} in the recipe"
        )
    return _KINDS[name.suffix]


def _segments(source: SourceSettings, kind: Kind, path: File, name: str, part_bytes: int) -> Iterator[Segment]:
    if kind in ("parquet", "arrow"):
        yield from tables.segments(source, kind, path, name, part_bytes)
        return
    encoding = encoding_of(path) if source.encoding == "auto" else source.encoding
    with open_bytes(path) as packed, utf8(packed, encoding, path) as file:
        if kind == "wikipedia":
            found = wikipedia.segments(file, path, name, part_bytes)
        elif kind in ("csv", "tsv"):
            found = delimited.segments(source, kind, file, path, name, part_bytes)
        elif kind == "korquad" or (kind == "text" and source.documents == "file"):
            found = iter([Segment(name, 1, file.read())])
        else:
            found = _line_segments(file, name, part_bytes, to_blank=kind == "text" and source.documents == "blank")
        for segment in found:
            data = segment.data.removeprefix(_BYTE_ORDER_MARK) if segment.first == 1 else segment.data
            yield Segment(name, segment.first, data, encoding, segment.columns)


def _line_segments(file: BufferedReader, name: str, part_bytes: int, to_blank: bool) -> Iterator[Segment]:
    """Whole lines of about `part_bytes`. to_blank: go on to the next blank line, so that no document is cut."""
    first = 1
    while data := file.read(part_bytes) + file.readline():
        if to_blank:
            data += b"".join(_lines_to_blank(file))
        yield Segment(name, first, data)
        first += data.count(b"\n")


def _lines_to_blank(file: BufferedReader) -> Iterator[bytes]:
    for line in file:
        yield line
        if not line.strip():
            return
