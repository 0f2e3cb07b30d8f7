"""Reads source files of any kind, compressed or not, as rows. A faulty record never stops the others.

How a record is read:

1. `files.py` finds the files that a pattern names, local or remote.
2. `korbert/records/` opens and decompresses a file, detects its encoding and turns it into UTF-8.
3. `cutting.py` cuts the stream into chunks of whole records, with `korbert/records/` and with `wikipedia.py` for dumps.
   This is sequential, cheap, and done by one process.
4. `parsing.py` parses a chunk into rows, again with `korbert/records/`, with `wikitext.py` for articles and
   `markdown.py`. Workers do this.

`records.py` holds the records that pass between them: Segment, Chunk and SourceRow.
"""

from typing import TYPE_CHECKING

from korbert._lazy import attach

if TYPE_CHECKING:
    from corpus.readers.cutting import chunks
    from corpus.readers.parsing import count_records, rows
    from corpus.readers.records import Chunk, Segment, SourceRow

__all__ = ["Chunk", "Segment", "SourceRow", "chunks", "count_records", "rows"]

__getattr__ = attach(
    __name__,
    {
        "Chunk": "records",
        "SourceRow": "records",
        "Segment": "records",
        "chunks": "cutting",
        "count_records": "parsing",
        "rows": "parsing",
    },
)
