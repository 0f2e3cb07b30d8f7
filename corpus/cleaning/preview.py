"""What a recipe would do to some documents, before anyone waits for gigabytes."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice

from corpus.cleaning.contamination import make_index
from corpus.cleaning.screening import Screened, screen
from corpus.documents import document_id
from corpus.readers import SourceRow, chunks, rows
from corpus.readers.records import File
from corpus.settings import CleanSettings, SourceSettings
from korbert.errors import CorpusError

__all__ = ["Preview", "Shown", "preview"]

_CHUNK_BYTES = 1 << 20
_MAX_FILES = 4  # of a source, evenly apart


@dataclass(frozen=True)
class Shown:
    """A row before and after. id: None where none could be read."""

    id: str | None
    place: str
    before: str
    after: str
    reason: str | None
    detail: str | None

    @property
    def changed(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True)
class Preview:
    """A sample of rows. masked: personal data by kind. read: rows that the sample was drawn from, by source."""

    rows: list[Shown]
    masked: Counter[str]
    read: dict[str, int]

    @property
    def reasons(self) -> Counter[str]:
        """How many rows of the sample are dropped for each reason."""
        return Counter(row.reason for row in self.rows if row.reason is not None)


def preview(settings: CleanSettings, sources: Mapping[str, Sequence[File]], count: int) -> Preview:
    """About `count` rows, as many of each source, drawn by the hash of their place from the beginnings of some files.

    Normalising, masks, filters and evaluation sets are those of `clean`; what only the whole corpus shows, such as
    equal texts, is not looked at. sources: name of a source or evaluation set -> its files. Raises CorpusError where a
    source has no rows, or an evaluation set no text.
    """
    shown: list[Shown] = []
    masked: Counter[str] = Counter()
    read: dict[str, int] = {}
    index = make_index(settings, sources) if settings.evaluation else None
    each = -(-count // len(settings.sources))
    for source in settings.sources:
        found = list(_beginnings(source, sources[source.name], settings.filters.max_record_bytes))
        if not found:
            raise CorpusError(f"source {source.name!r}: no rows in the beginnings of its files: see its path and kind")
        read[source.name] = len(found)
        chosen = sorted(sorted(range(len(found)), key=lambda place: _draw(found[place]))[:each])
        sample = [found[place] for place in chosen]
        screened, counts, _ = screen(sample, settings, index)
        kinds = {name: number for name, number in counts.items() if name.startswith("masked.")}
        masked.update({name.removeprefix("masked."): number for name, number in kinds.items()})
        shown += [_shown(source.name, row, one) for row, one in zip(sample, screened, strict=True)]
    return Preview(shown, masked, read)


def _beginnings(source: SourceSettings, files: Sequence[File], longest: int) -> Iterator[SourceRow]:
    step = -(-len(files) // _MAX_FILES)
    for path in files[::step]:
        for chunk in islice(chunks(source, [path], _CHUNK_BYTES, longest), 1):
            yield from rows(chunk)


def _draw(row: SourceRow) -> bytes:
    return blake2b(row.place.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _shown(source: str, row: SourceRow, screened: Screened) -> Shown:
    local = None if row.id is None else document_id(source, row.id)
    return Shown(local, row.place, row.text, screened.text, screened.reason, screened.detail)
