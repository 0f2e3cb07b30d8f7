"""Reads source files of any kind, compressed or not, as rows. A faulty record never stops the others.

How a record is read:

1. `files.py` finds the files that a pattern names, local or remote.
2. `korbert/records/` opens and decompresses a file, detects its encoding and turns it into UTF-8.
3. `cutting.py` cuts the stream into chunks of whole records, with `korbert/records/` and with `wikipedia.py` for dumps.
   This is sequential, cheap, and done by one process.
4. `parsing.py` parses a chunk into rows, again with `korbert/records/`, and with `wikitext.py` for articles. Workers
   do this.

`segments.py` holds what passes between them: Segment, Chunk and SourceRow.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
