"""Source files of any kind, packed or not, as rows. One bad row never stops the others.

`files` finds them. `cutting` cuts them into chunks of whole records, which is sequential, cheap, and done by one
process; `parsing` reads the records of a chunk, which the workers do.
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
