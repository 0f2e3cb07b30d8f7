"""Texts from files, for benchmarks."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from korbert.corpus.corpus_settings import SourceSettings
from korbert.corpus.readers import chunks, rows


def read_texts(paths: list[Path]) -> Iterator[str]:
    """Texts of all files, interleaved fifty at a time."""
    streams = []
    for path in paths:
        source = SourceSettings(name="s", path=path.name)
        streams.append(row.text for chunk in chunks(source, [path], 1 << 20) for row in rows(chunk))
    while streams:
        for stream in list(streams):
            batch = list(islice(stream, 50))
            if not batch:
                streams.remove(stream)
            yield from batch
